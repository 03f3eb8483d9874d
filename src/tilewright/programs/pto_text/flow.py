"""Flow: loops and branches of a program as those of PTO text.

Tiles that are carried or given lie in a buffer, which each round or side writes; numbers are the text's own values, and
so is how much of a tile is valid where only the running program knows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tilewright import dtypes as dt
from tilewright.core.expr import Expr, Var
from tilewright.core.extents import bounds
from tilewright.core.stmt import ForStmt, IfStmt, SeqStmts, WhileStmt
from tilewright.core.types import ScalarType, TileType
from tilewright.programs.pto_text.scalars import converted
from tilewright.programs.pto_text.values import NoPtoError, Number, Tensor, Tile, Value, element
from tilewright.programs.pto_text.words import flat, in_vec, refuse_parts
from tilewright.programs.pto_text.writer import Writer


class Flow(ABC):
    """What loops and branches are written with."""

    def __init__(self, writer: Writer) -> None:
        self.w = writer
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
        pace = bounds(stmt.step)
        if pace is None or pace[0] <= 0:
            raise NoPtoError("this export has no words for a loop that counts down, or may do so")
        inits = [self.value(arg.init) for arg in stmt.iter_args]
        carried = [self._carried(arg.var, init) for arg, init in zip(stmt.iter_args, inits, strict=True)]
        stop = self.number(stmt.stop)
        index = Number(self.w.name(stmt.loop_var.name_hint), dt.INDEX, counts=start.is_natural)
        self.values[stmt.loop_var] = index
        self.values.update(zip((arg.var for arg in stmt.iter_args), carried, strict=True))
        inside, outside = _numbers(carried, carried), _numbers(inits, carried)
        pairs = ", ".join(f"{value.name} = {init.name}" for value, init in zip(inside, outside, strict=True))
        given = f" iter_args({pairs}) -> ({_types(inside)})" if inside else ""
        ends = f"{index.name} = {start.name} to {stop.name} step {step.name}"
        results = self._fresh(inside)
        with self.w.block(f"{_given(results)}scf.for {ends}{given}"):
            self._region(stmt.body, carried)
        self.values.update(zip(stmt.return_vars, _with(carried, results), strict=True))

    def repeat(self, stmt: WhileStmt) -> None:
        """Write a loop that asks before each round whether there is one more."""
        inits = [self.value(arg.init) for arg in stmt.iter_args]
        asked = [self._carried(arg.var, init) for arg, init in zip(stmt.iter_args, inits, strict=True)]
        outside, seen = _numbers(inits, asked), _numbers(asked, asked)
        inside, results = self._fresh(seen), self._fresh(seen)
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

    def _fresh(self, numbers: Sequence[Number]) -> list[Number]:
        return [Number(self.w.name(number.name[1:]), number.dtype) for number in numbers]

    def _region(self, body: SeqStmts, targets: Sequence[Value]) -> None:
        self.yields.append(tuple(targets))
        self.write(body)
        self.yields.pop()

    def _carried(self, var: Var, start: Value | None) -> Value:
        """Return what stands for something carried inside a loop: a buffer, or a value of the loop."""
        if isinstance(start, Number):
            return Number(self.w.name(var.name_hint), start.dtype)
        if not isinstance(start, Tile | Tensor):
            raise NoPtoError(f"this export carries tiles, numbers and tensors, and `{var.name_hint}` is none")
        if isinstance(start, Tensor):
            return start
        source, target = in_vec(self.w, start), self._place(var)
        assert isinstance(target, Tile)
        if None in (number.known for number in target.valid):
            self.w.resize(target, start.valid)
        self.w.op("tmov", [source], target)
        return target

    def _copy(self, tile: Tile, hint: str) -> Tile:
        """Write the copy of a tile; return it."""
        source = in_vec(self.w, tile)
        return self.w.op("tmov", [source], self.w.tile(hint, source.dtype, source.shape, source.valid))

    def hand_on(self, values: Sequence[Value]) -> None:
        """Write what a round or a side ends with: tiles into their buffers, and numbers."""
        targets = self.yields[-1] if self.yields else ()
        apart = self._apart(values, targets)
        for value, target in zip(apart, targets, strict=True):
            if isinstance(target, Tile) and isinstance(value, Tile):
                if value.name != target.name:
                    source = in_vec(self.w, value)
                    if None in (number.known for number in target.valid):
                        self.w.resize(target, value.valid)
                    self.w.op("tmov", [source], target)
            elif value != target and not (isinstance(target, Number) and isinstance(value, Number)):
                raise NoPtoError("this export hands on tiles and numbers, not another tensor, from branches and loops")
        pairs = zip(_numbers(apart, targets), _numbers(targets, targets), strict=True)
        numbers = [converted(self.w, value, target.dtype) for value, target in pairs]
        if numbers:
            self.w.line(f"scf.yield {', '.join(n.name for n in numbers)} : {_types(numbers)}")

    def _apart(self, values: Sequence[Value], targets: Sequence[Value]) -> list[Value]:
        """Return values of which those that lie in another's buffer are copied before that is written."""
        buffers = [target.name if isinstance(target, Tile) else "" for target in targets]
        return [
            self._copy(value, "before") if isinstance(value, Tile) and value.name in {*buffers} - {own} else value
            for value, own in zip(values, buffers, strict=True)
        ]

    def branch(self, stmt: IfStmt) -> None:
        """Write a branch."""
        places = [self._place(var) for var in stmt.return_vars]
        condition, numbers = self.number(stmt.condition), _numbers(places, places)
        results = self._fresh(numbers)
        given = f" -> ({_types(numbers)})" if numbers else ""
        with self.w.branch(f"{_given(results)}scf.if {condition.name}{given}") as otherwise:
            self._region(stmt.then_body, places)
            if stmt.else_body is not None:
                otherwise()
                self._region(stmt.else_body, places)
        self.values.update(zip(stmt.return_vars, _with(places, results), strict=True))

    def _place(self, var: Var) -> Value:
        """Return what stands for what branches and rounds give: a value, or a buffer, of which a part may be valid."""
        type_ = var.type
        if isinstance(type_, ScalarType):
            return Number(self.w.name(var.name_hint), type_.dtype)
        if not isinstance(type_, TileType):
            raise NoPtoError(f"this export has no words for `{var.name_hint}`, which a branch gives and is no tile")
        sizes = [extent if isinstance(extent, int) else None for extent in type_.valid]
        refuse_parts(type_.shape, sizes)
        if None not in sizes:
            rows, cols = flat([size or 0 for size in sizes])
            valid = self.w.constant(rows), self.w.constant(cols)
            return self.w.tile(var.name_hint, type_.dtype, flat(type_.shape), valid)
        tile = self.w.tile(var.name_hint, type_.dtype, flat(type_.shape), self.w.open(flat(type_.shape)))
        names = (Number(self.w.name(f"{var.name_hint}_{word}"), dt.INDEX) for word in ("rows", "cols"))
        return replace(tile, valid=(next(names), next(names)))


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
