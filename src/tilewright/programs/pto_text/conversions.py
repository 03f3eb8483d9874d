"""Conversions: tiles in another element type, in buffers that have room for both."""

from __future__ import annotations

from tilewright.core.enums import MemorySpace
from tilewright.dtypes import DataType
from tilewright.programs.pto_text.values import Tile, kept, room_of
from tilewright.programs.pto_text.words import with_room
from tilewright.programs.pto_text.writer import Writer


def room_of_both(x: Tile, dtype: DataType) -> tuple[int, int]:
    """Return the rows and columns of buffers that have room for a tile and for it in another type."""
    need = room_of(dtype, x.shape, MemorySpace.Vec)
    return max(x.room[0], need[0]), max(x.room[1], need[1])


def in_type(w: Writer, x: Tile, dtype: DataType, stops: bool = False) -> Tile:
    """Return a tile in the type that an op computes in; integers that `stop` do so at the limits of others."""
    if x.dtype == kept(dtype):
        return x
    room = room_of_both(x, dtype)
    out = w.tile("converted", dtype, x.shape, x.valid, room=room)
    return w.op("tcvt", [with_room(w, x, room)], out, conversion(x.dtype, dtype, "round", stops))


def conversion(have: DataType, dtype: DataType, mode: str, stops: bool = False) -> str:
    """Return the words of a conversion: floats stop at the limits of integers, all else wraps or becomes infinite."""
    is_rounded = have.is_float() and dtype.is_int()
    rounding, limits = mode.upper() if is_rounded else "RINT", "ON" if is_rounded or stops else "OFF"
    return f"{{rmode = #pto<round_mode {rounding}>, sat_mode = #pto<saturation_mode {limits}>}}"
