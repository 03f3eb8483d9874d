"""Interleaving: columns of tiles that take turns, and tiles of every other column."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.core.expr import Expr
from tilewright.errors import UnsupportedFeatureError
from tilewright.ops.builder import element_of, known, tile_type
from tilewright.pto.errors import PtoOperandError, PtoTypeMismatchError, PtoValidShapeError
from tilewright.pto.machine.machine import Machine
from tilewright.pto.machine.registers import scratch
from tilewright.pto.machine.tiles import read_all, write
from tilewright.pto.machine.values import Tile
from tilewright.pto.module import Op, Value
from tilewright.pto.op import Constants, declare
from tilewright.pto.text.form import tile
from tilewright.pto.text.typetext import brief_text
from tilewright.pto.types import Space, TileBuf


def _in_rows(op: Op, _: Constants) -> None:
    """Refuse tiles elsewhere than in rows of vec, of different elements or rows, and columns that do not come out."""
    first = op.ins[0].of(TileBuf)
    for value in (*op.ins, *op.outs):
        type_ = value.of(TileBuf)
        if type_.space is not Space.VEC or (type_.blayout, type_.slayout) != ("row_major", "none_box"):
            message = f"`{op.name}` takes row-major tiles of vec, `%{value.name}` is {brief_text(type_)}"
            raise PtoOperandError(message, help="move it there with `pto.tmov`")
        if type_.element != first.element:
            message = f"`{op.name}` needs equal elements, got {first.element} and {type_.element}"
            raise PtoTypeMismatchError(message, help="convert with `pto.tcvt`")
    rows = {value.of(TileBuf).valid_rows for value in (*op.ins, *op.outs)}
    come, go = (_known(values) for values in (op.ins, op.outs))
    if come and go and (sum(come) != sum(go) or len({*go}) > 1 or len(rows) > 1):
        message = f"`{op.name}` has sources of {come} columns for results of {go}"
        raise PtoValidShapeError(message, help="as many rows everywhere, as many columns in as out, halves alike")


def _known(values: Sequence[Value]) -> list[int]:
    """Return the valid columns of tiles, nothing where some only show when the program runs."""
    found = [value.of(TileBuf).valid_cols for value in values]
    return [count for count in found if count is not None] if None not in found else []


@declare(
    "pto.tinterleave",
    tile("tt", "tt"),
    law=_in_rows,
    example="(%x: t8x64xf32, %y: t8x64xf32, %out: t8x64xf32); %low = pto.alloc_tile : t8x64xf32"
    "; {op} ins(%x, %y) outs(%low, %out)",
    means="out = np.stack([x, y], 2).reshape(8, 128)[:, 64:]",
)
def _interleave(m: Machine, op: Op, low: Tile, *sources: Tile) -> None:
    """The columns of two tiles in turn, the first half of them in one tile and the rest in another."""
    _through(m, _columns(m, op, sources), (low, m.get(op.outs[1], Tile)), is_joined=False)


@declare(
    "pto.tdeinterleave",
    tile("tt?", "tt"),
    law=_in_rows,
    example="(%x: t8x64xf32, %y: t8x64xf32, %out: t8x64xf32); %even = pto.alloc_tile : t8x64xf32"
    "; {op} ins(%x, %y) outs(%even, %out)",
    means="out = np.append(x, y, 1)[:, 1::2]",
)
def _part(m: Machine, op: Op, even: Tile, *sources: Tile) -> None:
    """The even and the odd columns of a tile, or of two side by side."""
    _through(m, _columns(m, op, sources), (even, m.get(op.outs[1], Tile)), is_joined=True)


def _columns(m: Machine, op: Op, sources: Sequence[Tile]) -> list[Expr]:
    """Return what tiles hold, whose extents are known before the program runs."""
    if any(known(extent) is None for each in sources for extent in each.valid):
        message = f"`{op.name}` takes tiles here whose valid extents are constants"
        raise UnsupportedFeatureError(message, help="write them in the tile's type")
    return [read_all(m, each) for each in sources]


def _through(m: Machine, values: Sequence[Expr], targets: Sequence[Tile], *, is_joined: bool) -> None:
    """Emit columns that come side by side and go in turn, or the other way round."""
    rows, dtype = tile_type(values[0]).shape[0], element_of(values[0])
    across = sum(tile_type(value).shape[1] for value in values)
    buffer, count = scratch(m, rows * across * dtype.get_byte()), across // len(values)

    def seen(columns: int, step: int, first: int) -> Expr:
        offset = first * dtype.get_byte()
        strides = (across, step)
        return m.b.do(
            "tensor.as_strided", buffer=buffer, shape=(rows, columns), strides=strides, offset=offset, dtype=dtype
        )

    for at, value in enumerate(values):
        m.b.store(seen(count, 1, at * count) if is_joined else seen(count, 2, at), value)
    half = across // 2
    for at, target in enumerate(targets):
        write(m, target, m.b.load(seen(half, 2, at) if is_joined else seen(half, 1, at * half), (rows, half)))
