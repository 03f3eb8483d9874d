"""Values: what the values of a PTO function are while it is lowered."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar, TypeAlias, TypeVar

from tilewright.core.expr import Expr, Var
from tilewright.pto.machine.places import Arena, Slot
from tilewright.pto.types import Scalar, Space, TileBuf
from tilewright.records import record

H = TypeVar("H", bound="Held")


class Held:
    """A value that loops and branches can carry, made anew of other expressions each time."""

    carried: ClassVar[tuple[str, ...]] = ()
    """The fields that change: expressions, values, or several of them."""

    @property
    def parts(self) -> tuple[Expr, ...]:
        """The expressions that a loop or branch must carry for it."""
        return tuple(part for name in self.carried for part in _parts(getattr(self, name)))

    @property
    def frame(self) -> object:
        """What everything that may stand for the same value must share, None where that is nothing."""
        return None

    def having(self: H, parts: Sequence[Expr]) -> H:
        """Return a value of the same kind with other parts."""
        return _having(self, iter(parts))


def _parts(value: Any) -> Iterator[Expr]:
    if isinstance(value, Expr):
        yield value
    else:
        for each in value.parts if isinstance(value, Held) else value:
            yield from _parts(each)


def _having(value: Any, parts: Iterator[Expr]) -> Any:
    if isinstance(value, Held):
        found: Any = value
        return replace(found, **{name: _having(getattr(found, name), parts) for name in value.carried})
    return next(parts) if isinstance(value, Expr) else tuple(_having(each, parts) for each in value)


@record
class Number(Held):
    """A scalar."""

    expr: Expr
    carried = ("expr",)


@record
class Vector(Held):
    """A vector register: a one-row tile of the tile IR."""

    expr: Expr
    element: Scalar
    carried = ("expr",)

    @property
    def lanes(self) -> int:
        """How many elements it has."""
        return 2048 // self.element.bits


@record
class Predicate(Held):
    """A mask register of 256 bits, as flags (bytes that are one or zero) in a one-row tile.

    There are as many flags as anything may have set: one for each lane of the type where only lanes are set, more where
    bits between lanes may be, fewer where lanes were wider before. Bits that have no flag are zero. `is_all` says that
    every flag is known set.
    """

    expr: Expr
    bits: int
    is_all: bool = False
    carried = ("expr",)

    def having(self, parts: Sequence[Expr]) -> Predicate:
        """Return another mask of the same width."""
        return Predicate(parts[0], self.bits)


@record
class Pointer(Held):
    """An address: a byte offset into a buffer of global memory or into the arena of a local one."""

    element: Scalar
    space: Space
    buffer: Var
    offset: Expr
    arena: Arena | None = None
    carried = ("offset",)

    @property
    def frame(self) -> object:
        """The buffer."""
        return self.buffer


@record
class View(Held):
    """A strided window on global memory; strides count elements."""

    pointer: Pointer
    shape: tuple[Expr, ...]
    strides: tuple[Expr, ...]
    carried = ("pointer", "shape", "strides")

    @property
    def frame(self) -> object:
        """The buffer."""
        return self.pointer.buffer


@record
class Tile(Held):
    """A tile buffer: a variable of the tile IR where nothing else sees its bytes, else a place in an arena.

    `strides` are those of a window on another tile, in elements; without them the type's layout decides.
    """

    type: TileBuf
    valid: tuple[Expr, Expr]
    slot: Slot | None = None
    pointer: Pointer | None = None
    strides: tuple[int, int] | None = None
    carried = ("pointer", "valid")

    @property
    def place(self) -> Pointer:
        """Where it lies."""
        assert self.pointer is not None
        return self.pointer

    @property
    def limits(self) -> tuple[int, int]:
        """The rows and columns that it has room for."""
        return self.type.rows, self.type.cols

    @property
    def frame(self) -> object:
        """The buffer, and the strides of a window; a tile that is a variable has none yet."""
        return None if self.pointer is None else (self.pointer.buffer, self.strides)


@record
class Token(Held):
    """A value that orders or selects and carries no data: events, buffers, alignment state."""


Lowered: TypeAlias = Number | Pointer | View | Tile | Vector | Predicate | Token
