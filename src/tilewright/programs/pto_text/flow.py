"""Flow: loops and branches of a program as those of PTO text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tilewright import dtypes as dt
from tilewright.core.enums import MemorySpace
from tilewright.core.expr import Expr, Var
from tilewright.core.extents import bounds
from tilewright.core.stmt import ForStmt, IfStmt, LoopStmt, SeqStmts, WhileStmt, YieldStmt
from tilewright.core.types import TileType
from tilewright.programs.pto_text.handed_parts import chosen_part, with_part
from tilewright.programs.pto_text.handover import (
    Frame,
    HandOver,
    extents_of,
    is_open,
    numbers_of,
    types_of,
    with_extents,
)
from tilewright.programs.pto_text.scalars import computed, converted
from tilewright.programs.pto_text.sums import is_used_up, sum_of
from tilewright.programs.pto_text.values import Choice, Number, Tensor, Tile, Value, element, room_of
from tilewright.programs.pto_text.words import expanded
from tilewright.programs.pto_text.writer import Writer
from tilewright.records import record


@record
class Count:
    """What a loop counts: from where to where by how much in the text, and how the program does."""

    ends: tuple[Number, Number, Number]
    start: Number
    step: Number
    is_up: bool

    @property
    def is_natural(self) -> bool:
        """Whether what the text counts is known never to be negative."""
        return self.start.is_natural or not self.is_up

    @property
    def is_nothing(self) -> bool:
        """Whether it is known that there is no turn."""
        first, stop, _ = (end.known for end in self.ends)
        return first is not None and stop is not None and first >= stop

    def at(self, w: Writer, turn: Number) -> Number:
        """Return the program's number of a turn of the text."""
        if self.is_up:
            return turn
        return computed(w, "add", [self.start, computed(w, "mul", [turn, self.step], dt.INDEX)], dt.INDEX)


class Flow(HandOver):
    """What loops and branches are written with."""

    def loop(self, stmt: ForStmt, start: Number, step: Number) -> None:
        """Write a loop: tiles are carried in a buffer, numbers and how much of a tile is valid as the text's values."""
        self.forget(stmt.body)
        inits = [self._init(arg.var, arg.init) for arg in stmt.iter_args]
        count = self.count(stmt, start, step)
        if count.is_nothing:
            made = zip(stmt.return_vars, inits, strict=True)
            self.values.update({var: init for var, init in made if init is not None})
            return
        ends, turn = count.ends, Number(self.w.name(stmt.loop_var.name_hint), dt.INDEX, counts=count.is_natural)
        carried = [self._sum(stmt, n, init, (turn, ends[0])) for n, init in enumerate(inits)]
        self.values.update(zip((arg.var for arg in stmt.iter_args), carried, strict=True))
        inits = self.chosen_among(inits, carried)
        inside, outside = numbers_of(carried, carried), numbers_of(inits, carried, self.w.constant(0))
        pairs = ", ".join(f"{value.name} = {init.name}" for value, init in zip(inside, outside, strict=True))
        given = f" iter_args({pairs}) -> ({types_of(inside)})" if inside else ""
        shown = f"{turn.name} = {ends[0].name} to {ends[1].name} step {ends[2].name}"
        results = fresh(self.w, inside)
        with self.w.block(f"{given_by(results)}scf.for {shown}{given}"):
            self.values[stmt.loop_var] = count.at(self.w, turn)
            self._region(stmt.body, Frame((*carried,)))
        given = [self._summed(value, (ends[0], ends[1])) for value in with_numbers(carried, results)]
        self.values.update(zip(stmt.return_vars, given, strict=True))

    def count(self, stmt: ForStmt, start: Number, step: Number) -> Count:
        """Return what a loop counts; the text counts up from zero where the program may count down."""
        start, stop, step = (converted(self.w, each, dt.INDEX) for each in (start, self.number(stmt.stop), step))
        is_up = _is_up(stmt.step, step)
        return Count((start, stop, step) if is_up else _counted(self.w, start, stop, step), start, step, is_up)

    def _sum(self, stmt: ForStmt, position: int, start: Value | None, counter: tuple[Number, Number]) -> Value:
        """Return what stands for something carried, an accumulator where all that turns do is add products to it."""
        arg = stmt.iter_args[position]
        added = sum_of(stmt, position, self.uses)
        if not isinstance(start, Tile) or added is None:
            return self._carried(arg.var, start)
        if start.name in self.w.zeros:
            factor = added.args[1].type
            assert isinstance(factor, TileType)
            place = self._place(arg.var, MemorySpace.Acc, room_of(factor.dtype, start.shape, MemorySpace.Acc))
            assert isinstance(place, Tile)
            self.w.sums[place.name] = counter
            return place
        place = self._place_of(arg.var, start)
        if place is None or start.memory is not MemorySpace.Acc or not is_used_up(arg.init, self.uses):
            return self._carried(arg.var, start)
        self.w.sums[place.name] = None
        return place

    def _place_of(self, var: Var, start: Tile) -> Tile | None:
        """Return an accumulator as one that a loop carries, None where its buffer cannot be as valid as that."""
        assert isinstance(var.type, TileType)
        is_open = {isinstance(extent, int) for extent in var.type.valid} != {True}
        known = [number.known for number in start.valid]
        if not is_open:
            return start if None not in known else None
        return self._named(start, var) if known == [None, None] else None

    def _summed(self, value: Value, ends: tuple[Number, Number]) -> Value:
        """Return what a loop gives, zeros where no turn has begun a sum; what is added to that behind it goes on."""
        if not isinstance(value, Tile) or self.w.sums.get(value.name) is None:
            return value
        del self.w.sums[value.name]
        if None not in (ends[0].known, ends[1].known) and (ends[0].known or 0) < (ends[1].known or 0):
            return value
        out = self.w.tile("sum", value.dtype, value.shape, value.valid)
        with self.w.branch(f"scf.if {computed(self.w, 'lt', [*ends], dt.BOOL).name}") as otherwise:
            self.w.op("tmov", [value], out)
            otherwise()
            expanded(self.w, self.w.constant(0, out.dtype), out)
        return out

    def repeat(self, stmt: WhileStmt) -> None:
        """Write a loop that asks before each round whether there is one more."""
        self.rounds(stmt, (), lambda _: self.number(stmt.condition), lambda _: ())

    def rounds(
        self,
        stmt: LoopStmt,
        besides: Sequence[tuple[str, Number]],
        holds: Callable[[Sequence[Number]], Number],
        first: Callable[[Sequence[Number]], tuple[Number, ...]],
    ) -> Sequence[Number]:
        """Write a loop that carries numbers of its own besides, each with a name and what it starts as.

        `holds` writes whether there is one more round, and `first` what each begins with; what it returns is handed
        on by every round. Return what those numbers are in the end.
        """
        self.forget(stmt.body)
        inits = [self._init(arg.var, arg.init) for arg in stmt.iter_args]
        asked = [self._carried(arg.var, init) for arg, init in zip(stmt.iter_args, inits, strict=True)]
        own = tuple(Number(self.w.name(name), start.dtype) for name, start in besides)
        before = numbers_of(self.chosen_among(inits, asked), asked, self.w.constant(0))
        outside, seen = [*before, *(start for _, start in besides)], [*numbers_of(asked, asked), *own]
        inside, results = fresh(self.w, seen), fresh(self.w, seen)
        pairs = ", ".join(f"{value.name} = {init.name}" for value, init in zip(seen, outside, strict=True))
        types = f"({types_of(seen)}) -> ({types_of(seen)})"
        self.values.update(zip((arg.var for arg in stmt.iter_args), asked, strict=True))
        head = f"{given_by(results)}scf.while {f'({pairs}) ' if seen else ''}: {types}"
        count = len(seen) - len(own)
        with self.w.branch(head) as then:
            condition = holds(own)
            given = f" {', '.join(n.name for n in seen)} : {types_of(seen)}" if seen else ""
            self.w.line(f"scf.condition({condition.name}){given}")
            then("do")
            if inside:
                self.w.line(f"^bb0({', '.join(f'{n.name}: {element(n.dtype)}' for n in inside)}):")
            carried = with_numbers(asked, inside[:count])
            self.values.update(zip((arg.var for arg in stmt.iter_args), carried, strict=True))
            within = tuple(inside[count:])
            self._region(stmt.body, Frame((*carried,), within, first(within)))
        self.values.update(zip(stmt.return_vars, with_numbers(asked, results[:count]), strict=True))
        return results[count:]

    def last(self, condition: Number, sides: tuple[SeqStmts, SeqStmts]) -> None:
        """Write a branch with which a region ends: what either side hands on is what the region does."""
        frame = self.frames[-1]
        results = fresh(self.w, [*numbers_of(frame.targets, frame.targets), *frame.besides])
        given = f" -> ({types_of(results)})" if results else ""
        with self.w.branch(f"{given_by(results)}scf.if {condition.name}{given}") as otherwise:
            self.write(sides[0])
            otherwise()
            self.write(sides[1])
        if results:
            self._end(results)

    def branch(self, stmt: IfStmt) -> None:
        """Write a branch."""
        condition = self.number(stmt.condition)
        if condition.known is not None:
            self._taken(stmt, bool(condition.known))
            return
        places = [self._place(var) for var in stmt.return_vars]
        numbers = numbers_of(places, places)
        results = fresh(self.w, numbers)
        given = f" -> ({types_of(numbers)})" if numbers else ""
        with self.w.branch(f"{given_by(results)}scf.if {condition.name}{given}") as otherwise:
            self._region(stmt.then_body, Frame((*places,)))
            if stmt.else_body is not None:
                otherwise()
                self._region(stmt.else_body, Frame((*places,)))
        self.values.update(zip(stmt.return_vars, with_numbers(places, results), strict=True))

    def _taken(self, stmt: IfStmt, holds: bool) -> None:
        """Write the only side that a branch can take."""
        side = [*(stmt.then_body if holds else stmt.else_body or ())]
        handed = next((each.values for each in side if isinstance(each, YieldStmt)), ())
        self.write(SeqStmts((*(each for each in side if not isinstance(each, YieldStmt)),)))
        self.values.update(zip(stmt.return_vars, [self.value(value) for value in handed], strict=True))


def fresh(w: Writer, numbers: Sequence[Number]) -> list[Number]:
    """Return numbers of the same types under names that no value has."""
    return [Number(w.name(number.name[1:]), number.dtype) for number in numbers]


def _counted(w: Writer, start: Number, stop: Number, step: Number) -> tuple[Number, Number, Number]:
    """Write how many turns there are, from zero on by one, of a loop that counts down or may do so."""
    if step.known is None:
        up = computed(w, "gt", [step, w.constant(0)], dt.BOOL)
        sign = w.number("arith.select", [up, w.constant(1), w.constant(-1)], dt.INDEX, "index", hint="sign")
    else:
        sign = w.constant(-1)
    reach = computed(w, "add", [computed(w, "sub", [stop, start], dt.INDEX), step], dt.INDEX)
    turns = computed(w, "floordiv", [computed(w, "sub", [reach, sign], dt.INDEX), step], dt.INDEX)
    return w.constant(0), turns, w.constant(1)


def _is_up(step: Expr, written: Number) -> bool:
    """Return whether a loop is known to count up."""
    pace = bounds(step)
    return written.is_natural or (pace is not None and pace[0] > 0)


def with_numbers(values: Sequence[Value], numbers: Sequence[Number]) -> list[Value]:
    """Return values with other numbers, in the order in which they are handed on."""
    left, found = iter(numbers), list[Value]()
    for value in values:
        if isinstance(value, Number):
            found.append(next(left))
        elif isinstance(value, Choice):
            found.append(chosen_part(replace(value, which=next(left)), left))
        elif isinstance(value, Tensor):
            found.append(with_part(value, left))
        elif isinstance(value, Tile) and is_open(value):
            found.append(with_extents(value, [next(left) for _ in extents_of(value)]))
        else:
            found.append(value)
    return found


def given_by(numbers: Sequence[Number]) -> str:
    """Return the names that an op gives its results, before it."""
    return f"{', '.join(number.name for number in numbers)} = " if numbers else ""
