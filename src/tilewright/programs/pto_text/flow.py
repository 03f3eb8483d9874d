"""Flow: loops and branches of a program as those of PTO text.

Tiles that are carried or given lie in a buffer, which each round or side writes; numbers are the text's own values, and
so is how much of a tile is valid where only the running program knows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tilewright import dtypes as dt
from tilewright.core.enums import MemorySpace
from tilewright.core.expr import Expr, Var
from tilewright.core.extents import bounds
from tilewright.core.stmt import ForStmt, IfStmt, SeqStmts, WhileStmt
from tilewright.core.types import ArrayType, ScalarType, TileType, is_fully_valid
from tilewright.programs.pto_text.arrays import copied, declared
from tilewright.programs.pto_text.scalars import computed, converted
from tilewright.programs.pto_text.sums import is_used_up, sum_of
from tilewright.programs.pto_text.values import Array, NoPtoError, Number, Tensor, Tile, Value, element, room_of
from tilewright.programs.pto_text.words import expanded, flat, in_vec, refuse_parts
from tilewright.programs.pto_text.writer import Writer


class Flow(ABC):
    """What loops and branches are written with."""

    def __init__(self, writer: Writer, uses: Mapping[Var, int]) -> None:
        self.w = writer
        self.uses = uses
        """How often the program's variables are operands."""
        self.values: dict[Var, Value] = {}
        """What the program's variables are in the text."""
        self.yields: list[tuple[Value, ...]] = []
        """What values that are handed on go to, the innermost loop or branch last."""

    @abstractmethod
    def write(self, body: SeqStmts) -> None:
        """Write statements."""

    @abstractmethod
    def value(self, expr: Any) -> Any:
        """Return an operand as a value of the text."""

    @abstractmethod
    def number(self, expr: Expr) -> Number:
        """Return an operand that is a number."""

    def loop(self, stmt: ForStmt, start: Number, step: Number) -> None:
        """Write a loop: tiles are carried in a buffer, numbers and how much of a tile is valid as the text's values."""
        inits, stop = [self._init(arg.var, arg.init) for arg in stmt.iter_args], self.number(stmt.stop)
        start, stop, step = (converted(self.w, number, dt.INDEX) for number in (start, stop, step))
        is_up = _is_up(stmt.step, step)
        turn = Number(self.w.name(stmt.loop_var.name_hint), dt.INDEX, counts=start.is_natural or not is_up)
        ends = (start, stop, step) if is_up else _counted(self.w, start, stop, step)
        carried = [self._sum(stmt, n, init, (turn, ends[0])) for n, init in enumerate(inits)]
        self.values[stmt.loop_var] = turn
        self.values.update(zip((arg.var for arg in stmt.iter_args), carried, strict=True))
        inside, outside = _numbers(carried, carried), _numbers(inits, carried)
        pairs = ", ".join(f"{value.name} = {init.name}" for value, init in zip(inside, outside, strict=True))
        given = f" iter_args({pairs}) -> ({_types(inside)})" if inside else ""
        shown = f"{turn.name} = {ends[0].name} to {ends[1].name} step {ends[2].name}"
        results = _fresh(self.w, inside)
        with self.w.block(f"{_given(results)}scf.for {shown}{given}"):
            if not is_up:
                gone = computed(self.w, "mul", [turn, step], dt.INDEX)
                self.values[stmt.loop_var] = computed(self.w, "add", [start, gone], dt.INDEX)
            self._region(stmt.body, carried)
        given = [self._summed(value, (ends[0], ends[1])) for value in _with(carried, results)]
        self.values.update(zip(stmt.return_vars, given, strict=True))

    def _init(self, var: Var, init: Expr) -> Any:
        """Return what a loop starts from: zero where that is a number that nobody has given."""
        value = self.value(init)
        if value is None and isinstance(var.type, ScalarType):
            return self.w.constant(0, var.type.dtype)
        return value

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
        """Return what a loop gives, zeros where no turn has begun a sum."""
        if not isinstance(value, Tile) or self.w.sums.get(value.name) is None:
            return value
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
        inits = [self._init(arg.var, arg.init) for arg in stmt.iter_args]
        asked = [self._carried(arg.var, init) for arg, init in zip(stmt.iter_args, inits, strict=True)]
        outside, seen = _numbers(inits, asked), _numbers(asked, asked)
        inside, results = _fresh(self.w, seen), _fresh(self.w, seen)
        pairs = ", ".join(f"{value.name} = {init.name}" for value, init in zip(seen, outside, strict=True))
        types = f"({_types(seen)}) -> ({_types(seen)})"
        self.values.update(zip((arg.var for arg in stmt.iter_args), asked, strict=True))
        head = f"{_given(results)}scf.while {f'({pairs}) ' if seen else ''}: {types}"
        with self.w.branch(head) as then:
            condition = self.number(stmt.condition)
            given = f" {', '.join(n.name for n in seen)} : {_types(seen)}" if seen else ""
            self.w.line(f"scf.condition({condition.name}){given}")
            then("do")
            if inside:
                self.w.line(f"^bb0({', '.join(f'{n.name}: {element(n.dtype)}' for n in inside)}):")
            carried = _with(asked, inside)
            self.values.update(zip((arg.var for arg in stmt.iter_args), carried, strict=True))
            self._region(stmt.body, carried)
        self.values.update(zip(stmt.return_vars, _with(asked, results), strict=True))

    def _region(self, body: SeqStmts, targets: Sequence[Value]) -> None:
        self.yields.append(tuple(targets))
        self.write(body)
        self.yields.pop()

    def _carried(self, var: Var, start: Value | None) -> Value:
        """Return what stands for something carried inside a loop: a buffer, or a value of the loop."""
        if isinstance(start, Number):
            return Number(self.w.name(var.name_hint), start.dtype)
        if isinstance(start, Array):
            assert isinstance(var.type, ArrayType)
            return copied(self.w, start, declared(self.w, var.name_hint, var.type))
        if start is None and isinstance(var.type, TileType) and is_fully_valid(var.type):
            return self._place(var)
        if not isinstance(start, Tile | Tensor):
            message = f"this export carries tiles, numbers, arrays and tensors, and `{var.name_hint}` is none"
            raise NoPtoError(message)
        if isinstance(start, Tensor):
            return start
        source, target = in_vec(self.w, start), self._place(var)
        assert isinstance(target, Tile)
        if None in (number.known for number in target.valid):
            self.w.resize(target, start.valid)
        self.w.op("tmov", [source], target)
        return target

    def hand_on(self, values: Sequence[Value]) -> None:
        """Write what a round or a side ends with: tiles into their buffers, and numbers."""
        targets = self.yields[-1] if self.yields else ()
        apart = _apart(self.w, values, targets)
        for value, target in zip(apart, targets, strict=True):
            if isinstance(target, Tile) and isinstance(value, Tile):
                if value.name != target.name:
                    source = in_vec(self.w, value)
                    if None in (number.known for number in target.valid):
                        self.w.resize(target, value.valid)
                    self.w.op("tmov", [source], target)
            elif isinstance(target, Array) and isinstance(value, Array):
                if value.name != target.name:
                    copied(self.w, value, target)
            elif value != target and not (isinstance(target, Number) and isinstance(value, Number)):
                raise NoPtoError("this export hands on tiles and numbers, not another tensor, from branches and loops")
        pairs = zip(_numbers(apart, targets), _numbers(targets, targets), strict=True)
        numbers = [converted(self.w, value, target.dtype) for value, target in pairs]
        self.w.end()
        if numbers:
            self.w.line(f"scf.yield {', '.join(n.name for n in numbers)} : {_types(numbers)}")

    def branch(self, stmt: IfStmt) -> None:
        """Write a branch."""
        places = [self._place(var) for var in stmt.return_vars]
        condition, numbers = self.number(stmt.condition), _numbers(places, places)
        results = _fresh(self.w, numbers)
        given = f" -> ({_types(numbers)})" if numbers else ""
        with self.w.branch(f"{_given(results)}scf.if {condition.name}{given}") as otherwise:
            self._region(stmt.then_body, places)
            if stmt.else_body is not None:
                otherwise()
                self._region(stmt.else_body, places)
        self.values.update(zip(stmt.return_vars, _with(places, results), strict=True))

    def _place(self, var: Var, memory: MemorySpace = MemorySpace.Vec, room: tuple[int, int] | None = None) -> Value:
        """Return what stands for what branches and rounds give: a value, or a buffer, of which a part may be valid."""
        type_ = var.type
        if isinstance(type_, ScalarType):
            return Number(self.w.name(var.name_hint), type_.dtype)
        if isinstance(type_, ArrayType):
            return declared(self.w, var.name_hint, type_)
        if not isinstance(type_, TileType):
            raise NoPtoError(f"this export has no words for `{var.name_hint}`, which a branch gives and is no tile")
        sizes = [extent if isinstance(extent, int) else None for extent in type_.valid]
        refuse_parts(type_.shape, sizes)
        if None not in sizes:
            rows, cols = flat([size or 0 for size in sizes])
            valid = self.w.constant(rows), self.w.constant(cols)
            return self.w.tile(var.name_hint, type_.dtype, flat(type_.shape), valid, memory, room=room)
        open_ = self.w.open(flat(type_.shape))
        return self._named(self.w.tile(var.name_hint, type_.dtype, flat(type_.shape), open_, memory, room=room), var)

    def _named(self, tile: Tile, var: Var) -> Tile:
        """Return a tile with names of its own for how much of it is valid."""
        names = (Number(self.w.name(f"{var.name_hint}_{word}"), dt.INDEX) for word in ("rows", "cols"))
        return replace(tile, valid=(next(names), next(names)))


def _fresh(w: Writer, numbers: Sequence[Number]) -> list[Number]:
    return [Number(w.name(number.name[1:]), number.dtype) for number in numbers]


def _apart(w: Writer, values: Sequence[Value], targets: Sequence[Value]) -> list[Value]:
    """Return values of which those that lie in another's buffer are copied before that is written."""
    buffers = [target.name if isinstance(target, Tile | Array) else "" for target in targets]
    pairs = zip(values, buffers, strict=True)
    return [_copy(w, value) if _lies_in(value, {*buffers} - {own}) else value for value, own in pairs]


def _copy(w: Writer, value: Value) -> Value:
    """Write the copy of a tile or an array; return it."""
    if isinstance(value, Array):
        return copied(w, value, declared(w, "before", ArrayType(value.extent, value.dtype)))
    if not isinstance(value, Tile):
        return value
    source = in_vec(w, value)
    return w.op("tmov", [source], w.tile("before", source.dtype, source.shape, source.valid))


def _lies_in(value: Value, buffers: set[str]) -> bool:
    return isinstance(value, Tile | Array) and value.name in buffers


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


def _numbers(values: Sequence[Value], targets: Sequence[Value]) -> list[Number]:
    """Return the numbers that the text hands on for values: those themselves, and how much of tiles is valid."""
    found: list[Number] = []
    for value, target in zip(values, targets, strict=True):
        if isinstance(value, Number):
            found.append(value)
        elif isinstance(value, Tile) and isinstance(target, Tile) and None in (n.known for n in target.valid):
            found += value.valid
    return found


def _with(values: Sequence[Value], numbers: Sequence[Number]) -> list[Value]:
    """Return values with other numbers, in the order in which they are handed on."""
    left, found = iter(numbers), list[Value]()
    for value in values:
        if isinstance(value, Number):
            found.append(next(left))
        elif isinstance(value, Tile) and None in (number.known for number in value.valid):
            found.append(replace(value, valid=(next(left), next(left))))
        else:
            found.append(value)
    return found


def _types(numbers: Sequence[Number]) -> str:
    return ", ".join(element(number.dtype) for number in numbers)


def _given(numbers: Sequence[Number]) -> str:
    """Return the names that an op gives its results, before it."""
    return f"{', '.join(number.name for number in numbers)} = " if numbers else ""
