"""Scales of blocks: a power of two for every 32 elements along the inner axis of a product, as a byte each.

Factors are scaled, and multiplied, as doubles: a power that is too large or too small for fp32 may meet one that makes
up for it. Products are rounded to fp32 where all of them are summed.

Beside a matrix of the cube's memories its bytes lie in fragments of 32: 16 rows, and two blocks of each. A fragment
follows the one of the rows before, and those of the next two blocks follow all of these.
"""

from __future__ import annotations

from dataclasses import replace

from tilewright.core.expr import Expr
from tilewright.dtypes import FP8E8M0, FP32, FP64, UINT8
from tilewright.ops.builder import element_of, tile_type
from tilewright.pto.machine.elements import cast
from tilewright.pto.machine.formats import seen_as
from tilewright.pto.machine.machine import Machine
from tilewright.pto.machine.matrices import FRACTAL, up
from tilewright.pto.machine.tiles import bytes_view
from tilewright.pto.machine.values import Pointer
from tilewright.pto.types import SCALARS

GROUP = 32
"""How many elements share a power of two."""
FRAGMENT = 32
"""The bytes of a fragment."""
_ROOM = 4096
"""The bytes of all scales beside one memory: those of 64 KiB of bytes, and a fragment that is half used."""


def powers_of(m: Machine, exponents: Expr) -> Expr:
    """Return the powers of two that bytes stand for, as doubles; 255 is no number."""
    if element_of(exponents) != FP8E8M0:
        exponents = seen_as(m, cast(m, exponents, UINT8), FP8E8M0)
    return cast(m, cast(m, exponents, FP32), FP64)


def by_rows(m: Machine, values: Expr, powers: Expr) -> Expr:
    """Return floats times the powers of their rows, one for every 32 columns, as doubles."""
    rows, depth = tile_type(values).shape
    short = m.b.tile("reshape", cast(m, values, FP64), (rows * depth // GROUP, GROUP))
    scaled = m.b.tile("row_expand_mul", short, m.b.tile("reshape", powers, (rows * depth // GROUP, 1)))
    return m.b.tile("reshape", scaled, (rows, depth))


def by_columns(m: Machine, values: Expr, powers: Expr) -> Expr:
    """Return floats times the powers of their columns, one for every 32 rows, as doubles."""
    for _ in range(GROUP.bit_length() - 1):
        powers = m.b.tile("concat", powers, powers)
    return m.b.tile("mul", cast(m, values, FP64), m.b.tile("reshape", powers, tile_type(values).shape))


def beside(m: Machine, data: Pointer) -> Pointer:
    """Return where the scales of the matrix at a pointer lie."""
    room = m.memory.cell(("scales", data.space), SCALARS["ui8"], _ROOM)
    return replace(room, offset=m.b.add(room.offset, m.b.scalar("floordiv", data.offset, m.b.index(GROUP))))


def read_beside(m: Machine, data: Pointer, rows: int, depth: int, *, is_turned: bool = False) -> Expr:
    """Return the powers of a matrix, a row of them for each of its rows; turned, a column."""
    high, groups = up(rows, FRACTAL) // FRACTAL, depth // GROUP
    wide = up(groups, 2) // 2
    axes = [(high, FRAGMENT), (FRACTAL, 2), (wide, high * FRAGMENT), (2, 1)]
    ordered = [*axes[2:], *axes[:2]] if is_turned else axes
    shape = tuple(extent for extent, _ in ordered)
    loaded = m.b.load(bytes_view(m, beside(m, data), shape, [stride for _, stride in ordered]), shape)
    whole = (2 * wide, high * FRACTAL) if is_turned else (high * FRACTAL, 2 * wide)
    exact = (groups, rows) if is_turned else (rows, groups)
    made = m.b.tile("reshape", loaded, whole)
    return powers_of(m, made if exact == whole else m.b.tile("slice", made, exact, (0, 0)))
