"""Loops: turns counted one by one or in strips, and what loops and branches carry on."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from tilewright.backends.cpu.emit.function import FunctionEmitter, Region
from tilewright.backends.cpu.emit.values import Binding, Scalar, Tile, static
from tilewright.backends.cpu.emit.work import SMALL, SPAN, STRIP
from tilewright.core.expr import Absent, Expr, Var
from tilewright.core.stmt import ForStmt, IterArg, SeqStmts
from tilewright.dtypes import INDEX
from tilewright.native.llvm import I64, Value, i64
from tilewright.records import mutable, record

if TYPE_CHECKING:
    from tilewright.backends.cpu.host.carriers import Carrier

LARGEST = (1 << 63) - 1


@mutable
class Branch(Region):
    """A branch being emitted: where it puts what it yields."""

    carriers: Sequence[Carrier]

    def lend(self, e: FunctionEmitter, value: Binding) -> None:
        """Let a tile that waits be computed where what it is made of is carried, if it may."""
        from tilewright.backends.cpu.host.slots import TileSlot  # few loops carry tiles

        for slot in (carrier.slot for carrier in self.carriers):
            if isinstance(value, Tile) and isinstance(slot, TileSlot) and slot.is_updated(e, value):
                e.destined[value] = slot.place


@mutable
class Loop(Branch):
    """A loop being emitted: what it carries, and the blocks in which its next turn begins and it ends."""

    following: str
    done: str


@record
class Turns:
    """The turns of a loop: the word that counts them and where it stops, the word of the loop's variable and its step.

    Where the step is one they are the same word: two that keep in step would be two to LLVM.
    """

    turn: Value
    stop: Value
    variable: Value
    step: Value

    @staticmethod
    def of(e: FunctionEmitter, first: Value, stop: Value, start: Value, step: Value) -> Turns:
        """Return turns from a first one on, with the loop's variable there."""
        b, variable = e.b, e.b.slot(I64)
        b.store(start, variable, 8)
        if static(step) == 1:
            return Turns(variable, b.op("add", start, b.op("sub", stop, first)), variable, step)
        turn = b.slot(I64)
        b.store(first, turn, 8)
        return Turns(turn, stop, variable, step)

    def advance(self, e: FunctionEmitter) -> None:
        """Emit the step to the next turn."""
        for cell, by in {self.turn: i64(1), self.variable: self.step}.items():
            e.b.store(e.b.op("add", e.b.load(I64, cell, 8), by), cell, 8)


def counted_loop(
    e: FunctionEmitter,
    stmt: ForStmt,
    turns: tuple[Value, Value],
    carriers: Sequence[Carrier],
    stepped: tuple[Value, Value],
) -> None:
    """Emit the turns from one to another, with the loop's variable at the first of them and its step.

    The loop ends with its program; one that surely ends soon does not look.
    """
    b, work = e.b, e.program.work.body(stmt.body)
    loop, units = Loop(carriers, b.label("next"), b.label("done")), 1 + work.units
    is_short = e.program.work.short(stmt) is not None or not e.program.polled
    made = Turns.of(e, *turns, *stepped)
    if is_short or work.looks or units > SMALL:
        _turns_of(e, stmt, made, loop, 0 if is_short else units)
        b.do(f"br label %{loop.done}")
    else:
        _strips(e, stmt, made, loop, units)
    b.begin(loop.done)


def _strips(e: FunctionEmitter, stmt: ForStmt, turns: Turns, loop: Loop, units: int) -> None:
    """Emit small turns in strips, counted between one and the next: in a loop without many turns nothing is counted."""
    b, strip, counted = e.b, e.b.label("strip"), e.b.label("counted")
    size = STRIP if any(isinstance(region, Loop) for region in e.regions) else SPAN
    b.do(f"br label %{strip}")
    b.begin(strip)
    first = b.load(I64, turns.turn, 8)
    left = b.op("sub", turns.stop, first)
    end = b.op("add", first, b.intrinsic("llvm.smin", left, i64(size // units)))
    _turns_of(e, stmt, replace(turns, stop=end), loop, 0)
    b.do(f"br {b.compare('icmp slt', end, turns.stop)}, label %{counted}, label %{loop.done}")
    b.begin(counted)
    e.worked(size)
    b.do(f"br label %{strip}")


def _turns_of(e: FunctionEmitter, stmt: ForStmt, turns: Turns, loop: Loop, units: int) -> None:
    """Emit turns, each counted as so much work, up to where all have been made."""
    b = e.b
    head, body, end = (b.label(hint) for hint in ("head", "body", "end"))
    b.do(f"br label %{head}")
    b.begin(head)
    more = b.compare("icmp slt", b.load(I64, turns.turn, 8), turns.stop)
    b.do(f"br {more}, label %{body}, label %{end}")
    b.begin(body)
    e.bind(stmt.loop_var, Scalar(b.load(I64, turns.variable, 8), INDEX))
    for carrier, arg in zip(loop.carriers, stmt.iter_args, strict=True):
        carrier.bind(e, arg.var)
    inside(e, loop, stmt.body)
    b.do(f"br label %{loop.following}")
    b.begin(loop.following)
    if units:
        e.worked(units)
    turns.advance(e)
    b.do(f"br label %{head}")
    b.begin(end)


@contextmanager
def rows_of_loop(e: FunctionEmitter, stmt: ForStmt, carriers: Sequence[Carrier]) -> Generator[None, None, None]:
    """Emit all turns of a loop for one row after the other, where it works on each by itself."""
    rows = _rows(stmt) if e.row is None and not (e.in_rows or e.in_shares) else None
    if rows is None:
        yield
        return
    starts = [carrier.slot.read(e) for carrier in carriers]
    with e.b.loop(i64(0), i64(rows), i64(1)) as e.row:
        for carrier, start in zip(carriers, starts, strict=True):
            carrier.slot.fill(e, start)  # which lies there, and is known as it was
        yield
    e.row = None


def _rows(stmt: ForStmt) -> int | None:
    from tilewright.passes.row_turns import rows_of_turns  # few kernels have loops

    return rows_of_turns(stmt)


def turns_of(e: FunctionEmitter, stmt: ForStmt) -> tuple[tuple[Value, Value], Value]:
    """Return where the variable of a loop starts and its step, and how many turns there are."""
    start, stop, step = (e.index(e.scalar(x)) for x in (stmt.start, stmt.stop, stmt.step))
    return (start, step), turn_count(e, start, stop, step, stmt)


def turn_count(e: FunctionEmitter, start: Value, stop: Value, step: Value, stmt: ForStmt) -> Value:
    """Return how many turns a loop has; a step of zero is an error and means none."""
    b, known = e.b, static(step)
    first, last = static(start), static(stop)
    if first is not None and last is not None and known:
        return i64(min(max(-((first - last) // known), 0), LARGEST))
    if known is not None and known > 0:
        return _turns(e, b.compare("icmp slt", start, stop), b.op("sub", stop, start), step)
    e.fail(b.compare("icmp eq", step, i64(0)), "a loop's step cannot be zero", stmt)
    up = b.compare("icmp sgt", step, i64(0))
    down = b.compare("icmp slt", step, i64(0))
    rising = b.op("and", up, b.compare("icmp slt", start, stop))
    falling = b.op("and", down, b.compare("icmp sgt", start, stop))
    distance = b.select(up, b.op("sub", stop, start), b.op("sub", start, stop))
    size = b.select(up, step, b.op("sub", i64(0), step))
    return _turns(e, b.op("or", rising, falling), distance, b.intrinsic("llvm.umax", size, i64(1)))


def _turns(e: FunctionEmitter, some: Value, distance: Value, size: Value) -> Value:
    """Return how many steps of a size begin within a distance, which has all 64 bits for its magnitude."""
    b = e.b
    whole = b.op("add", b.op("udiv", b.op("sub", distance, i64(1)), size), i64(1))
    return b.select(some, b.intrinsic("llvm.umin", whole, i64(LARGEST)), i64(0))


def carried(e: FunctionEmitter, args: Sequence[IterArg]) -> list[Carrier]:
    """Return a carrier for each value of a loop, holding what it starts as."""
    starts = [None if isinstance(arg.init, Absent) else _given(e, arg.init) for arg in args]
    carriers: list[Carrier] = []
    if not args:
        return carriers
    from tilewright.backends.cpu.host.carriers import Carrier  # few loops carry anything

    for arg, start in zip(args, starts, strict=True):
        is_sure = start is not None and start[1] is None
        carrier = Carrier.of(e, arg.var, may_be_missing=not is_sure, start=start[0] if start and is_sure else None)
        if start is None:
            carrier.start_missing(e)
        else:
            carrier.fill(e, *start)
        carriers.append(carrier)
    return carriers


def _given(e: FunctionEmitter, expr: Expr) -> tuple[Binding, Value | None]:
    """Return what an expression stands for and, where it may be missing, whether it is there."""
    if isinstance(expr, Var) and expr in e.bound:
        return e.bindings[expr], e.bound[expr]
    return e.value(expr), None


def bind_results(e: FunctionEmitter, results: Sequence[Var], carriers: Sequence[Carrier]) -> None:
    """Let variables stand for what a loop or branch leaves."""
    for var, carrier in zip(results, carriers, strict=True):
        carrier.bind(e, var)
        carrier.slot.settle(e)


def inside(e: FunctionEmitter, region: Branch, body: SeqStmts) -> None:
    """Emit the statements of a region."""
    e.regions.append(region)
    e.body(body)
    e.regions.pop()


def hand_over(e: FunctionEmitter, region: Region, values: Sequence[Expr]) -> None:
    """Emit the filling of what a region carries."""
    assert isinstance(region, Branch)
    if values and region.carriers:
        given = [
            _given(e, value) if carrier.is_bound is not None else (e.value(value), None)
            for value, carrier in zip(values, region.carriers, strict=True)
        ]
        from tilewright.backends.cpu.host.carriers import hand_on

        hand_on(e, region.carriers, given)
