"""Hand-over: where values go that a round of a loop or a side of a branch hands on.

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
from tilewright.core.stmt import SeqStmts
from tilewright.core.types import ArrayType, ScalarType, TensorType, TileType
from tilewright.passes.aliases import NOBODY, Owners
from tilewright.programs.pto_text.arrays import copied, declared
from tilewright.programs.pto_text.given_tensors import GivenTensors, fits
from tilewright.programs.pto_text.handed_parts import COPY_IT, NO_PARTS, chosen_part, numbers_within, opened
from tilewright.programs.pto_text.scalars import chosen, computed, converted
from tilewright.programs.pto_text.values import Array, Choice, NoPtoError, Number, Tensor, Tile, Value, element
from tilewright.programs.pto_text.words import Pair, axes_of, flat, in_vec, is_ragged, sizes_of
from tilewright.programs.pto_text.writer import Writer
from tilewright.records import record


@record
class Frame:
    """What the values go to that a region hands on, and numbers that the text carries of itself behind them."""

    targets: tuple[Value, ...] = ()
    besides: tuple[Number, ...] = ()
    """The turn of a counted loop, whether there is another one, and whether the function has returned."""
    following: tuple[Number, ...] = ()
    """The turn after this one."""


class HandOver(GivenTensors, ABC):
    """What loops and branches hand their values on with."""

    def __init__(self, writer: Writer, uses: Mapping[Var, int]) -> None:
        super().__init__(writer, uses)
        self.frames: list[Frame] = [Frame()]
        """Where values go that are handed on, the innermost loop or branch last."""
        self.shapes: dict[str, tuple[int, ...]] = {}
        """The extents of buffers for tiles that are ragged along many axes."""

    @abstractmethod
    def write(self, body: SeqStmts) -> None:
        """Write statements."""

    @abstractmethod
    def value(self, expr: Any) -> Any:
        """Return an operand as a value of the text."""

    @abstractmethod
    def number(self, expr: Expr) -> Number:
        """Return an operand that is a number."""

    def _init(self, var: Var, init: Expr) -> Any:
        """Return what a loop starts from: zero where that is a number that nobody has given."""
        value = self.value(init)
        if value is None and isinstance(var.type, ScalarType):
            return self.w.constant(0, var.type.dtype)
        return value

    def _region(self, body: SeqStmts, frame: Frame) -> None:
        self.frames.append(frame)
        self.write(body)
        self.frames.pop()

    def _carried(self, var: Var, start: Value | None) -> Value:
        """Return what stands for something carried inside a loop: a buffer, or a value of the loop."""
        if isinstance(start, Number):
            return Number(self.w.name(var.name_hint), start.dtype)
        if isinstance(start, Array):
            assert isinstance(var.type, ArrayType)
            return copied(self.w, start, declared(self.w, var.name_hint, var.type))
        if start is None and isinstance(var.type, TileType):
            place = self._place(var)
            assert isinstance(place, Tile)
            if is_open(place):
                self.w.resize(place, (self.w.constant(0), self.w.constant(0)))
            return place
        if start is None and isinstance(var.type, TensorType):
            return self.made_first(var)
        if isinstance(start, Choice):
            wider = self.tensor_of(var, self.aliases.owners(var))
            if self.has_parts(var):
                return opened(self.w, var, wider or start)
            return wider or replace(start, which=Number(self.w.name(var.name_hint), dt.INDEX))
        if not isinstance(start, Tile | Tensor):
            message = f"this export carries tiles, numbers, arrays and tensors, and `{var.name_hint}` is none"
            raise NoPtoError(message)
        if isinstance(start, Tensor):  # which may be a view of its owner
            wider = self.tensor_of(var, self.aliases.owners(var))
            place = wider if isinstance(wider, Choice) else start
            return opened(self.w, var, place) if self.has_parts(var) else place
        source, target = in_vec(self.w, start), self._place(var)
        assert isinstance(target, Tile)
        if is_open(target):
            self.w.resize(target, _reach(start, target))
        self.w.op("tmov", [source], target)
        return target

    def hand_on(self, values: Sequence[Value], goes_on: bool = True, returns: bool = False) -> None:
        """Write what a round or a side ends with: tiles into their buffers, and numbers."""
        frame = self.frames[-1]
        targets = frame.targets
        apart = self.chosen_among(_apart(self.w, values, targets), targets)
        for value, target in zip(apart, targets, strict=True):
            if isinstance(target, Tile) and isinstance(value, Tile):
                if value.name != target.name:
                    source = in_vec(self.w, value)
                    if is_open(target):
                        self.w.resize(target, _reach(value, target))
                    self.w.op("tmov", [source], target)
            elif isinstance(target, Array) and isinstance(value, Array):
                if value.name != target.name:
                    copied(self.w, value, target)
            elif value != target and not _is_passed(value, target):
                raise NoPtoError(NO_PARTS, help=COPY_IT)
        pairs = zip(numbers_of(apart, targets), numbers_of(targets, targets), strict=True)
        numbers = [converted(self.w, value, target.dtype) for value, target in pairs]
        flags = (self.w.constant(each, dt.BOOL) for each in (goes_on, returns))
        self._end([*numbers, *[*frame.following, *flags][: len(frame.besides)]])

    def _end(self, numbers: Sequence[Number]) -> None:
        """Write the end of a region, which gives some numbers."""
        self.w.end()
        if numbers:
            self.w.line(f"scf.yield {', '.join(n.name for n in numbers)} : {types_of(numbers)}")

    def _place(
        self,
        var: Var,
        memory: MemorySpace = MemorySpace.Vec,
        room: tuple[int, int] | None = None,
        owners: Owners = NOBODY,
    ) -> Value:
        """Return what stands for what branches and rounds give: a value, or a buffer, of which a part may be valid.

        A tensor is one of those that its `owners` are.
        """
        type_ = var.type
        if isinstance(type_, ScalarType):
            return Number(self.w.name(var.name_hint), type_.dtype)
        if isinstance(type_, ArrayType):
            return declared(self.w, var.name_hint, type_)
        if isinstance(type_, TensorType):
            owners = owners or self.aliases.owners(var)
            if place := self.tensor_of(var, owners) or self.made_within(var, owners):
                if self.has_parts(var):
                    return opened(self.w, var, place)
                if not fits(var, place):
                    raise NoPtoError(NO_PARTS, help=COPY_IT)
                return place
        if not isinstance(type_, TileType):
            raise NoPtoError(f"this export has no words for `{var.name_hint}`, which a branch gives and is no tile")
        sizes, hint, dtype, shape = sizes_of(type_), var.name_hint, type_.dtype, flat(type_.shape)
        if is_ragged(type_.shape, sizes):
            return self._ragged(var, type_)
        if None not in sizes:
            rows, cols = flat([size or 0 for size in sizes])
            valid = self.w.constant(rows), self.w.constant(cols)
            return self.w.tile(hint, dtype, shape, valid, memory, room=room)
        return self._named(self.w.tile(hint, dtype, shape, self.w.open(shape), memory, room=room), var)

    def _ragged(self, var: Var, type_: TileType) -> Tile:
        """Return a buffer for a tile that is ragged along many axes, with how much of it is valid along each."""
        sizes, shape = sizes_of(type_), flat(type_.shape)
        valid = self.w.open(shape) if None in sizes else (self.w.constant(shape[0]), self.w.constant(sizes[-1] or 0))
        made = self.w.tile(var.name_hint, type_.dtype, shape, valid)
        self.shapes[made.name] = type_.shape
        made = made.along([self.w.constant(size or 0) for size in sizes[:-1]])
        return self._named(made, var) if None in sizes else made

    def chosen_among(self, values: Sequence[Any], targets: Sequence[Value]) -> list[Any]:
        """Return values of which those that are chosen are so among all that their targets may be."""
        return [self._among(value, target) for value, target in zip(values, targets, strict=True)]

    def _among(self, value: Any, target: Value) -> Any:
        if isinstance(value, Tile) and isinstance(target, Tile) and target.axes and not value.axes:
            return value.along(axes_of(self.w, value, self.shapes[target.name]))
        if not (isinstance(value, Choice) and isinstance(target, Choice)):
            return value
        which = value.which
        if value.views != target.views:
            which = self._chosen(value, [number_of(option, target) for option in value.options])
        elif not target.is_open:
            return value
        if not target.is_open:
            return replace(target, which=which)
        rows = zip(*(numbers_within(option, target.options[0]) for option in value.options), strict=True)
        numbers = [self._chosen(value, row) for row in rows]
        return chosen_part(replace(target, which=which), iter(numbers))

    def _chosen(self, choice: Choice, numbers: Sequence[Number]) -> Number:
        """Write the number that belongs to the tensor that is chosen."""
        *others, found = numbers
        if all(each.name == found.name for each in others):
            return found
        for number, said in zip(choice.numbers, others, strict=False):
            is_so = computed(self.w, "eq", [choice.which, number], dt.BOOL)
            found = chosen(self.w, is_so, said, found)
        return found

    def _named(self, tile: Tile, var: Var) -> Tile:
        """Return a tile with names of its own for how much of it is valid."""
        words = ["axis"] * len(tile.axes) + ["cols"] if tile.axes else ["rows", "cols"]
        return with_extents(tile, [Number(self.w.name(f"{var.name_hint}_{word}"), dt.INDEX) for word in words])


def extents_of(tile: Tile) -> tuple[Number, ...]:
    """Return the numbers that say how much of a tile is valid."""
    return (*tile.axes, tile.valid[1]) if tile.axes else tile.valid


def with_extents(tile: Tile, numbers: Sequence[Number]) -> Tile:
    """Return a tile of which as much is valid as numbers say."""
    *axes, last = numbers
    return (
        replace(tile, axes=(*axes,), valid=(tile.valid[0], last)) if tile.axes else replace(tile, valid=(axes[0], last))
    )


def is_open(tile: Tile) -> bool:
    """Return whether only the run knows how much of a tile is valid."""
    return None in (number.known for number in extents_of(tile))


def _reach(value: Tile, target: Tile) -> Pair:
    """Return the rows and columns of a buffer that a value fills: all rows, where those alone do not say it."""
    return (target.valid[0], value.valid[1]) if target.axes else value.valid


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


def numbers_of(values: Sequence[Value | None], targets: Sequence[Value], nothing: Number | None = None) -> list[Number]:
    """Return the numbers that the text hands on for values: those themselves, and how much of tiles is valid.

    Of a tile that nobody has made before a loop, `nothing` is.
    """
    found: list[Number] = []
    for value, target in zip(values, targets, strict=True):
        if isinstance(value, Number):
            found.append(value)
        elif isinstance(target, Choice):
            which = nothing if value is None else None
            found.append(which or (value.which if isinstance(value, Choice) else number_of(value, target)))
            found += _part_of(value, target.options[0], nothing) if target.is_open else ()
        elif isinstance(target, Tensor) and target.is_open:
            found += _part_of(value, target, nothing)
        elif isinstance(target, Tile) and is_open(target):
            found += (
                extents_of(value) if isinstance(value, Tile) else [nothing] * len(extents_of(target)) if nothing else []
            )
    return found


def _part_of(value: Value | None, target: Tensor, nothing: Number | None) -> list[Number]:
    """Return the numbers that say which part of a tensor a value is, none where only whole ones are handed on."""
    tensor = value.options[0] if isinstance(value, Choice) else value
    if isinstance(tensor, Tensor):
        return numbers_within(tensor, target)
    return [nothing] * len(numbers_within(target, target)) if nothing else []


def number_of(value: Value | None, target: Choice) -> Number:
    """Return the number that says a tensor, among those of a choice."""
    assert isinstance(value, Tensor)
    if value.view not in target.views or not (target.is_open or value in target.options):
        raise NoPtoError(NO_PARTS, help=COPY_IT)
    return target.numbers[target.views.index(value.view)]


def _is_passed(value: Value, target: Value) -> bool:
    """Return whether numbers say a value: it is one, or chosen by one, or a part that some say."""
    if isinstance(target, Choice):
        return isinstance(value, Tensor) or (isinstance(value, Choice) and value.views == target.views)
    if isinstance(target, Tensor):
        return target.is_open and isinstance(value, Tensor) and value.view == target.view
    return isinstance(target, Number) and isinstance(value, Number)


def types_of(numbers: Sequence[Number]) -> str:
    """Return the types of several numbers."""
    return ", ".join(element(number.dtype) for number in numbers)
