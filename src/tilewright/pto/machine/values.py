"""Values: what the values of a PTO function are while it is lowered.

Each knows the expressions of the tile IR that a loop or branch must carry for it (`parts`), how to be made anew from
others of the same kind (`having`), and what everything that may stand for the same value must share (`frame`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias, TypeVar

from tilewright.core.expr import Expr, Var
from tilewright.pto.machine.places import Arena, Slot
from tilewright.pto.types import Scalar, Space, TileBuf
from tilewright.records import record

H = TypeVar("H", bound="Held")


@record
class Held:
    """A value that is one expression, for which any other of its type may stand."""

    expr: Expr

    @property
    def parts(self) -> tuple[Expr, ...]:
        """The expression."""
        return (self.expr,)

    @property
    def frame(self) -> object:
        """Nothing."""
        return None

    def having(self: H, parts: Sequence[Expr]) -> H:
        """Return another value of the same type."""
        return replace(self, expr=parts[0])


@record
class Number(Held):
    """A scalar."""


@record
class Vector(Held):
    """A vector register: a one-row tile of the tile IR."""

    element: Scalar

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

    bits: int
    is_all: bool = False

    def having(self, parts: Sequence[Expr]) -> Predicate:
        """Return another mask of the same width."""
        return Predicate(parts[0], self.bits)


@record
class Pointer:
    """An address: a byte offset into a buffer of global memory or into the arena of a local one."""

    element: Scalar
    space: Space
    buffer: Var
    offset: Expr
    arena: Arena | None = None

    @property
    def parts(self) -> tuple[Expr, ...]:
        """The offset."""
        return (self.offset,)

    @property
    def frame(self) -> object:
        """The buffer."""
        return self.buffer

    def having(self, parts: Sequence[Expr]) -> Pointer:
        """Return a pointer into the same buffer."""
        return replace(self, offset=parts[0])


@record
class View:
    """A strided window on global memory; strides count elements."""

    pointer: Pointer
    shape: tuple[Expr, ...]
    strides: tuple[Expr, ...]

    @property
    def parts(self) -> tuple[Expr, ...]:
        """Where it starts, its extents and strides."""
        return (*self.pointer.parts, *self.shape, *self.strides)

    @property
    def frame(self) -> object:
        """The buffer."""
        return self.pointer.buffer

    def having(self, parts: Sequence[Expr]) -> View:
        """Return a window of the same rank on the same buffer."""
        rank = len(self.shape)
        return View(self.pointer.having(parts[:1]), tuple(parts[1 : 1 + rank]), tuple(parts[1 + rank :]))


@record
class Tile:
    """A tile buffer: a variable of the tile IR where nothing else sees its bytes, else a place in an arena.

    `strides` are those of a window on another tile, in elements; without them the type's layout decides.
    """

    type: TileBuf
    valid: tuple[Expr, Expr]
    slot: Slot | None = None
    pointer: Pointer | None = None
    strides: tuple[int, int] | None = None

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
    def parts(self) -> tuple[Expr, ...]:
        """Where it starts, and its valid extents."""
        return (*self.place.parts, *self.valid)

    @property
    def frame(self) -> object:
        """The buffer, and the strides of a window; a tile that is a variable has none yet."""
        return None if self.pointer is None else (self.pointer.buffer, self.strides)

    def having(self, parts: Sequence[Expr]) -> Tile:
        """Return a tile of the same type in the same arena."""
        return replace(self, pointer=self.place.having(parts[:1]), valid=(parts[1], parts[2]))


@record
class Token:
    """A value that orders or selects and carries no data: events, buffers, alignment state."""

    parts: tuple[Expr, ...] = ()
    frame: object = None

    def having(self, parts: Sequence[Expr]) -> Token:
        """Return another one."""
        return self


Lowered: TypeAlias = Number | Pointer | View | Tile | Vector | Predicate | Token
