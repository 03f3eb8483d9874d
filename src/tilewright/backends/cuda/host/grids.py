"""Grids: parallel loops and calls of kernels as launches."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.backends.cpu.compute.addresses import times
from tilewright.backends.cpu.emit.function import FunctionEmitter
from tilewright.backends.cpu.emit.values import Binding, Scalar
from tilewright.backends.cpu.host.calls import argument, where_it_runs
from tilewright.backends.cpu.host.loops import turn_count
from tilewright.backends.cuda.host.capture import captured, extents
from tilewright.backends.cuda.host.launches import launch
from tilewright.backends.cuda.host.regions import name_of, nest
from tilewright.backends.cuda.ttir import extents as between
from tilewright.backends.cuda.ttir.control import write_turn
from tilewright.backends.cuda.ttir.kernel import Kernel
from tilewright.backends.cuda.ttir.parameters import Parameters
from tilewright.backends.cuda.ttir.recipes import refused
from tilewright.backends.cuda.ttir.text import Value
from tilewright.backends.cuda.ttir.values import Extent
from tilewright.core.expr import Invoke, Submit, Var
from tilewright.core.program import Function
from tilewright.core.stmt import ForStmt
from tilewright.core.types import TupleType
from tilewright.core.visitor import statements, used, variables
from tilewright.dtypes import TASK_ID
from tilewright.native.llvm import i64


def launch_loop(e: FunctionEmitter, stmt: ForStmt) -> None:
    """Emit a parallel loop, with those that are all of its body, as a kernel of a block for each turn."""
    loops = nest(e.program.program, stmt)
    ends = [
        (e.index(e.scalar(loop.start)), e.index(e.scalar(loop.stop)), e.index(e.scalar(loop.step))) for loop in loops
    ]
    counts = [turn_count(e, *words, loop) for words, loop in zip(ends, loops, strict=True)]
    outside = _read_from_outside(e, loops[-1])

    def write(k: Kernel, params: Parameters, block: Value) -> None:
        k.symbols = {symbol: extents(params, [word])[0] for symbol, word in e.symbols.items()}
        for var in outside:
            k.bindings[var] = captured(k, params, e.bindings[var])
        turns = _turns(k, block, extents(params, counts))
        for loop, (start, _, step), turn in zip(loops, ends, turns, strict=True):
            first, by = extents(params, [start, step])
            k.bindings[loop.loop_var] = k.counted(between.plus(k.t, first, between.times(k.t, turn, by)))
        write_turn(k, loops[-1].body)

    count = i64(1)
    for each in counts:
        count = times(e, count, each)
    name = name_of(e.program.program, loops[-1].body) or e.function.name
    launch(e, name, count, write)


def _read_from_outside(e: FunctionEmitter, loop: ForStmt) -> list[Var]:
    found = dict.fromkeys(v for s in statements(loop.body) for v in variables(used(s)) if v in e.bindings)
    if missing := [var for var in found if var in e.bound]:
        raise refused(f"`{missing[0].name_hint}`, which may not be bound, in a kernel", missing[0].span)
    return list(found)


def _turns(k: Kernel, block: Value, counts: Sequence[Extent]) -> list[Extent]:
    """Return which turn of each loop a block is; those of the innermost are neighbours."""
    found: list[Extent] = []
    rest = block
    for count in reversed(counts[1:]):
        held = between.held(k.t, count)
        found.append(k.t.simple("arith.remsi", rest, held))
        rest = k.t.simple("arith.divsi", rest, held)
    return [rest, *reversed(found)]


def launch_call(e: FunctionEmitter, expr: Invoke | Submit, function: Function) -> Binding:
    """Emit a call of a kernel as a launch of its blocks; what it gives back are arguments."""
    returned = e.program.returned[function.name]
    if None in returned:
        raise refused(f"`{function.name}`, a kernel that gives back what it computes,", expr.span)
    bindings = [argument(e, arg, param, expr) for arg, param in zip(expr.args, function.params, strict=True)]
    blocks = expr.core_num if isinstance(expr, Submit) else None
    count = i64(1) if blocks is None else e.index(e.scalar(blocks))

    def write(k: Kernel, params: Parameters, block: Value) -> None:
        if blocks is not None:
            k.block_index, k.block_count = block, extents(params, [count])[0]
        k.call(function, [captured(k, params, binding) for binding in bindings])

    with where_it_runs(e, expr):
        launch(e, function.name, count, write)
    values = [bindings[position] for position in returned if position is not None]
    if isinstance(expr, Submit):
        return (*values, Scalar(i64(0), TASK_ID))
    return values[0] if len(values) == 1 and not isinstance(expr.type, TupleType) else tuple(values)
