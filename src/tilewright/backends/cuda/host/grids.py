"""Grids: parallel loops and calls of kernels as launches."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.backends.cpu.compute.addresses import times
from tilewright.backends.cpu.emit.function import FunctionEmitter
from tilewright.backends.cpu.emit.handlers import Bound
from tilewright.backends.cpu.emit.values import Binding, Scalar
from tilewright.backends.cpu.host.calls import argument, where_it_runs
from tilewright.backends.cpu.host.loops import turn_count
from tilewright.backends.cuda.host.capture import captured, extents
from tilewright.backends.cuda.host.given import Given
from tilewright.backends.cuda.host.launches import launch
from tilewright.backends.cuda.host.regions import is_tiny, name_of, nest
from tilewright.backends.cuda.schedule import AHEAD, BAND
from tilewright.backends.cuda.ttir import extents as between
from tilewright.backends.cuda.ttir.control import write_turn
from tilewright.backends.cuda.ttir.facts import ONE_PRODUCT
from tilewright.backends.cuda.ttir.kernel import Kernel
from tilewright.backends.cuda.ttir.parameters import Parameters
from tilewright.backends.cuda.ttir.recipes import recipe_of, refused
from tilewright.backends.cuda.ttir.text import I64, Text, Value
from tilewright.backends.cuda.ttir.values import Extent
from tilewright.core.expr import Call, Invoke, Submit, Var
from tilewright.core.program import Function
from tilewright.core.stmt import ForStmt
from tilewright.core.types import TupleType
from tilewright.core.visitor import statements, used, variables
from tilewright.dtypes import TASK_ID
from tilewright.native import llvm
from tilewright.native.llvm import i64

SHARED = ("tensor.assemble", "tensor.expand_clone")
"""The ops whose work blocks share."""
AT_ONCE = 132 * 32
"""Blocks of a grid of tiny turns, which share them out: as many as an H200 runs at once."""
MOST = 2048
"""Blocks of a kernel that is one op, at most."""


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
        k.facts.look(k.program, loops[-1].body)
        if not is_shared:
            write_one(k, params, block)
            return
        turn, (high, step) = k.t.fresh(I64), (between.held(k.t, each) for each in extents(params, [count, blocks]))
        with k.t.block(f"scf.for {turn} = {block} to {high} step {step} : i64 {{") as tail:
            write_one(k, params, turn)
            if k.facts.is_apart:
                tail.text = AHEAD

    def write_one(k: Kernel, params: Parameters, number: Value) -> None:
        many = extents(params, counts)
        turns = _turns(k, number, many)
        k.turn = lambda: _number(k.t, turns, many)
        for loop, (start, _, step), turn in zip(loops, ends, turns, strict=True):
            first, by = extents(params, [start, step])
            k.bindings[loop.loop_var] = k.counted(between.plus(k.t, first, between.times(k.t, turn, by)))
        write_turn(k, loops[-1].body)

    count, is_shared = _count(e, counts), is_tiny(e.program.program, loops[-1].body)
    blocks = e.b.intrinsic("llvm.smin", count, i64(AT_ONCE)) if is_shared else count
    name = name_of(e.program.program, loops[-1].body) or e.function.name
    grid = " x ".join(f"{loop.loop_var.name_hint} in {loop.start}:{loop.stop}:{loop.step}" for loop in loops)
    launch(e, name, blocks, write, grid, [var.name_hint for var in outside])


def _read_from_outside(e: FunctionEmitter, loop: ForStmt) -> list[Var]:
    found = dict.fromkeys(v for s in statements(loop.body) for v in variables(used(s)) if v in e.bindings)
    if missing := [var for var in found if var in e.bound]:
        help = "bind it before the loop or branch that does, too"
        raise refused(f"`{missing[0].name_hint}`, which may not be bound, in a kernel", missing[0].span, help)
    return list(found)


def _turns(k: Kernel, block: Value, counts: Sequence[Extent]) -> list[Extent]:
    """Return which turn of each loop a block is; those of the innermost are neighbours.

    Where one product is computed, neighbours are in several rows of its blocks, and share what they load.
    """
    if len(counts) > 1 and len(k.facts.factors) == ONE_PRODUCT:
        return _in_bands(k, block, counts)
    return _in_order(k.t, block, counts)


def _in_order(t: Text, number: Value, counts: Sequence[Extent]) -> list[Extent]:
    found: list[Extent] = []
    for count in reversed(counts[1:]):
        number, turn = _divided(t, number, between.held(t, count))
        found.append(turn)
    return [number, *reversed(found)] if counts else []


def _in_bands(k: Kernel, block: Value, counts: Sequence[Extent]) -> list[Extent]:
    """Return which turn of each loop a block is, the last two counted through bands of a few rows, column by column."""
    t, (rows, columns) = k.t, counts[-2:]
    plane = between.held(t, between.times(t, rows, columns))
    outer, spot = _divided(t, block, plane)
    band, inside = _divided(t, spot, between.held(t, between.times(t, columns, BAND)))
    first = between.times(t, band, BAND)
    height = between.held(t, between.least(t, between.minus(t, rows, first), BAND))
    column, row = _divided(t, inside, height)
    before = _in_order(t, outer, counts[:-2])
    return [*before, between.plus(t, first, row), column]


def _number(t: Text, turns: Sequence[Extent], counts: Sequence[Extent]) -> Extent:
    """Return which turn of all loops together one of each is, counted as the program does."""
    found: Extent = 0
    for turn, count in zip(turns, counts, strict=True):
        found = between.plus(t, between.times(t, found, count), turn)
    return found


def _divided(t: Text, number: Value, count: Value) -> tuple[Value, Value]:
    return t.simple("arith.divsi", number, count), t.simple("arith.remsi", number, count)


def launch_call(e: FunctionEmitter, expr: Invoke | Submit, function: Function) -> Binding:
    """Emit a call of a kernel as a launch of its blocks, and what it gives back."""
    results = Given(e, expr, function)
    bindings = [argument(e, arg, param, expr) for arg, param in zip(expr.args, function.params, strict=True)]
    blocks = expr.core_num if isinstance(expr, Submit) else None
    count = i64(1) if blocks is None else e.index(e.scalar(blocks))
    results.ask_for_blocks(e, count)

    def write(k: Kernel, params: Parameters, block: Value) -> None:
        if blocks is not None:
            k.block_index, k.block_count = block, extents(params, [count])[0]
        results.lend(k, params)
        results.put(k, params, k.call(function, [captured(k, params, binding) for binding in bindings]))

    with where_it_runs(e, expr):
        grid = "1" if blocks is None else f"{blocks} blocks"
        launch(e, function.name, count, write, grid, [str(arg) for arg in expr.args])
    given = results.bindings(e, bindings)
    if isinstance(expr, Submit):
        return (*given, Scalar(i64(0), TASK_ID))
    return given[0] if len(given) == 1 and not isinstance(expr.type, TupleType) else tuple(given)


def launch_op(e: FunctionEmitter, call: Call, bound: Bound) -> Binding:
    """Emit an op that writes elements of a tensor as a kernel that does nothing else."""
    spec = call.op.spec
    if recipe_of(call.op) is None or spec.writes is None:
        help = "do it inside of one: with pl.at(level=pl.Level.CORE_GROUP)"
        raise refused(f"`{call.op.name}` outside of a kernel", call.span, help)
    outside = [var for var in variables(call.args) if var in e.bindings]
    target = bound[spec.writes]
    blocks = e.b.intrinsic(
        "llvm.smin", e.b.op("add", e.b.op("lshr", _count(e, target.shape), i64(12)), i64(1)), i64(MOST)
    )
    count = blocks if call.op.name in SHARED else i64(1)

    def write(k: Kernel, params: Parameters, block: Value) -> None:
        k.symbols = {symbol: extents(params, [word])[0] for symbol, word in e.symbols.items()}
        for var in outside:
            k.bindings[var] = captured(k, params, e.bindings[var])
        if call.op.name in SHARED:
            k.share = block, extents(params, [count])[0]
        k.value(call)

    grid = "1" if count.ref == "1" else f"up to {MOST} blocks"
    launch(e, spec.name, count, write, grid, [var.name_hint for var in outside])
    return target


def _count(e: FunctionEmitter, counts: Sequence[llvm.Value]) -> llvm.Value:
    found = i64(1)
    for each in counts:
        found = times(e, found, each)
    return found
