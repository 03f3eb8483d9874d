"""Calls: functions of the program called and dispatched, once or once per block."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from tilewright.backends.cpu.emit.arena import Part
from tilewright.backends.cpu.emit.function import FunctionEmitter, emits
from tilewright.backends.cpu.emit.signature import Emitted, Prepared, Signature
from tilewright.backends.cpu.emit.values import Array, Binding, Scalar, Tensor, Tile, static
from tilewright.backends.cpu.host.abi import argument_words, invoke, room_bytes, take_result
from tilewright.backends.cpu.host.functions import written
from tilewright.backends.cpu.host.parallel import grid, rounds
from tilewright.backends.cpu.host.tensors import extents_of
from tilewright.core.expr import Expr, Invoke, Submit, Var
from tilewright.core.types import TensorType, TupleType
from tilewright.dtypes import TASK_ID
from tilewright.native.llvm import Value, i64
from tilewright.passes.barriers import has_barrier

NO_BLOCKS = "a grid without blocks gives no values"


@emits(Invoke, Submit)
def _call(e: FunctionEmitter, expr: Invoke | Submit) -> Binding:
    """Emit a call of another function; a dispatch over a grid calls it once per block."""
    sides = e.program.sides.get(e.function.name)
    if sides is not None and sides.has(expr):
        if id(expr) not in e.beside:
            from tilewright.backends.cpu.host.coroutines import run_together  # few programs have groups

            run_together(e, sides, _prepared, _results)
        return e.beside[id(expr)]
    call = _prepared(e, expr)
    blocks = expr.core_num if isinstance(expr, Submit) else None
    count = None if blocks is None else _block_count(e, blocks, needs_one=bool(call.rooms))
    with where_it_runs(e, expr):
        if count is not None:
            together = has_barrier(e.program.program, call.callee.function.body)
            (rounds if together else grid)(e, call.callee, [*call.words, *call.rooms], count)
        else:
            invoke(e, call.callee, e.block_index, e.block_count, [*call.words, *call.rooms])
    return _results(e, expr, call)


def _prepared(e: FunctionEmitter, expr: Invoke | Submit) -> Prepared:
    """Emit what a call is made with."""
    function = e.program.program[expr.op.name]
    bindings = [argument(e, arg, param, expr) for arg, param in zip(expr.args, function.params, strict=True)]
    in_grid = isinstance(expr, Submit) and expr.core_num is not None
    is_concurrent = (in_grid or e.is_concurrent) and bool(e.program.footprints[function.name].adds)
    in_rounds = e.in_rounds or (in_grid and has_barrier(e.program.program, function.body))
    callee = written(e.program, function, Signature.of(bindings, is_concurrent, in_rounds, e.in_shares, e.in_rows))
    words = [w for b, p in zip(bindings, function.params, strict=True) for w in argument_words(e, b, p.type)]
    parts = [e.arena.take(room_bytes(type_)) for type_ in callee.results]
    return Prepared(callee, bindings, words, parts, [e.address(part[0]) for part in parts])


def _results(e: FunctionEmitter, expr: Invoke | Submit, call: Prepared) -> Binding:
    """Return what a call has given."""
    left = zip(call.rooms, call.parts, strict=True)
    made = iter([_result(e, call.callee, k, room, part) for k, (room, part) in enumerate(left)])
    values = [next(made) if p is None else call.bindings[p] for p in call.callee.returned]
    if isinstance(expr, Submit):
        return (*values, Scalar(i64(0), TASK_ID))
    return values[0] if len(values) == 1 and not isinstance(expr.type, TupleType) else tuple(values)


def where_it_runs(e: FunctionEmitter, expr: Invoke | Submit) -> AbstractContextManager[None]:
    """Emit what follows under the condition of a task that may be skipped, which gives nothing it makes itself."""
    if not isinstance(expr, Submit) or expr.predicate is None:
        return nullcontext()
    return e.b.when(e.scalar(expr.predicate).value)


def _block_count(e: FunctionEmitter, blocks: Expr, needs_one: bool) -> Value:
    count = e.index(e.scalar(blocks))
    if not needs_one or (static(count) or 0) > 0:
        return count
    e.fail(e.b.compare("icmp slt", count, i64(1)), NO_BLOCKS, e.at)
    return e.b.intrinsic("llvm.smax", count, i64(1))


def _result(e: FunctionEmitter, callee: Emitted, position: int, room: Value, part: Part) -> Binding:
    """Return one result; a tile or array keeps its room."""
    type_ = callee.results[position]
    binding = take_result(e, type_, room, is_turned=callee.turned_results[position])
    if isinstance(binding, (Tile, Array)):
        e.own(binding, part)
    else:
        e.arena.give_back(part)
    return binding


def argument(e: FunctionEmitter, arg: Expr, param: Var, expr: Invoke | Submit) -> Binding:
    """Return an argument; a tensor that has not the extents its parameter declares is an error and replaced."""
    binding = e.value(arg)
    if not isinstance(binding, Tensor) or not isinstance(param.type, TensorType):
        return binding
    fits: Value | None = None
    for have, want in zip(binding.shape, extents_of(param.type), strict=True):
        if want is not None and static(have) != want:
            same = e.b.compare("icmp eq", have, i64(want))
            fits = same if fits is None else e.b.op("and", fits, same)
    if fits is None or not e.checked:
        return binding
    e.fail(e.negated(fits), f"`{param.name_hint}` has other extents than its parameter declares", expr)
    from tilewright.backends.cpu.host.tensor_views import guarded  # few parameters declare extents

    return guarded(e, fits, binding, param.type)
