"""First lanes: what `vcgadd`, `vcgmax` and `vcgmin` give, where a body computes with it as with a number.

Text has registers there, and so have bodies that use them as such. The number is the first lane, of the first 32 bytes
alone: it goes through local memory, right behind the op, once it is asked for.
"""

from __future__ import annotations

from typing import Any

from tilewright.pto.module import Clause, Op, Value
from tilewright.pto.ops.registry import OPS
from tilewright.pto.traced.tracer import Tracer
from tilewright.pto.types import INDEX, Mask, Ptr, Space, TileBuf, VReg

FOLDS = ("pto.vcgadd", "pto.vcgmax", "pto.vcgmin")


def first_lane(t: Tracer, value: object) -> Any:
    """Return the number that a fold of groups is where a number is needed; all else as it is."""
    if not isinstance(value, Value) or value not in t.writer.folds:
        return value
    found = t.writer.folds[value]
    if isinstance(found, list):
        at = next(place for place, op in enumerate(found) if value in op.results)
        around, t.writer.ops = t.writer.ops, []
        number = _through_memory(t, value)
        found[at + 1 : at + 1], t.writer.ops = t.writer.ops, around
        t.writer.folds[value] = found = number
    return found


def _through_memory(t: Tracer, register: Value) -> Value:
    """Write the first lane of a register to a tile of its own, and read it from there."""
    w, span, type_ = t.writer, register.span, register.of(VReg)
    element, lanes = type_.element, type_.lanes
    tile = w.value("pto.alloc_tile", (), TileBuf(Space.VEC, element, 1, lanes, 1, lanes), span)
    at = w.value("pto.tile_buf_addr", [tile], Ptr(element, Space.VEC), span)
    mask = w.value(f"pto.pset_b{element.bits}", (), Mask(element.bits), span, {"pattern": "PAT_VL1"})
    start = (w.constant(0, INDEX, span),)
    store, load = (Clause(OPS[f"pto.{name}"].form.index, start) for name in ("vsts", "load_scalar"))
    w.emit(Op("pto.vsts", (register, at, mask), (store,), span=span))
    return w.value("pto.load_scalar", [at], element, span, clauses=(load,))
