"""Matrices as the cube's memories hold them: columns in blocks, each block row after row.

A block is 32 bytes wide, in the accumulator 16 elements; `pitch` rows lie between one block and the next.
"""

from __future__ import annotations

from tilewright.core.expr import Expr
from tilewright.errors import UnsupportedFeatureError
from tilewright.ops.builder import element_of, known, tile_type
from tilewright.pto.machine.machine import Machine
from tilewright.pto.machine.registers import bitcast, reshaped
from tilewright.pto.machine.tiles import bytes_view
from tilewright.pto.machine.values import Pointer
from tilewright.pto.module import Op
from tilewright.pto.types import Scalar, Space
from tilewright.records import record

FRACTAL = 16
"""The rows of a fractal, and the columns of one in the accumulator."""
BLOCK = 32
"""The bytes of a row of one block."""


def up(number: int, unit: int) -> int:
    """Return the next multiple of a unit."""
    return -(-number // unit) * unit


def lanes(element: Scalar) -> int:
    """Return how many elements a row of a block has."""
    return BLOCK // element.nbytes


def told(op: Op, *numbers: Expr) -> tuple[int, ...] | None:
    """Return extents if all of them are known before the program runs; those that are have to be positive."""
    found = [extent for extent in map(known, numbers) if extent is not None]
    return None if len(found) < len(numbers) and min(found, default=1) > 0 else extents(op, *numbers)


def extents(op: Op, *numbers: Expr) -> tuple[int, ...]:
    """Return extents that must be known before the program runs."""
    found = [known(number) for number in numbers]
    if None in found or min(n or 0 for n in found) < 1:
        raise UnsupportedFeatureError(
            f"the extents of `{op.name}` are positive constants here",
            help="write one op for each size, and branch around them",
        )
    return tuple(n or 0 for n in found)


@record
class Matrix:
    """Rows and columns in blocks, from a pointer on."""

    start: Pointer
    rows: int
    cols: int
    pitch: Expr | int

    @property
    def width(self) -> int:
        """The columns of a block."""
        return FRACTAL if self.start.space is Space.ACC else lanes(self.start.element)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows, and columns to the end of the last block."""
        return self.rows, up(self.cols, self.width)

    def view(self, m: Machine, *, is_turned: bool = False) -> Expr:
        """Return its elements: rows, blocks and columns inside one; turned, columns come first."""
        width, step = self.width, m.b.index(self.width)
        blocks = (self.shape[1] // width, m.b.mul(m.b.index(self.pitch), step))
        axes = [(self.rows, step), blocks, (width, m.b.index(1))]
        ordered = [*axes[1:], axes[0]] if is_turned else axes
        return bytes_view(m, self.start, [extent for extent, _ in ordered], [stride for _, stride in ordered])

    def read(self, m: Machine, *, is_turned: bool = False) -> Expr:
        """Return what it holds as a tile; turned, columns are rows."""
        rows, cols = self.shape
        blocks = (cols // self.width, self.width)
        loaded = m.b.load(self.view(m, is_turned=is_turned), (*blocks, rows) if is_turned else (rows, *blocks))
        made = m.b.tile("reshape", loaded, (cols, rows) if is_turned else (rows, cols))
        exact = (self.cols, rows) if is_turned else (rows, self.cols)
        return made if cols == self.cols else m.b.tile("slice", made, exact, (0, 0))

    def write(self, m: Machine, value: Expr) -> None:
        """Let it hold a tile as large as its blocks."""
        rows, cols = self.shape
        m.b.store(self.view(m), m.b.tile("reshape", value, (rows, cols // self.width, self.width)))


def as_bits(m: Machine, value: Expr, element: Scalar) -> Expr:
    """Return the bits of a tile as elements of another type."""
    assert element_of(value).bits == element.bits
    rows, cols = tile_type(value).shape
    row = bitcast(m, reshaped(m, value, 1, rows * cols), element.dtype)
    return reshaped(m, row, rows, cols)
