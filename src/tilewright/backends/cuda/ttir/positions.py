"""Positions: where in a row or column the largest or smallest element is, the first of equal ones."""

from __future__ import annotations

from tilewright.backends.cuda.ttir import extents
from tilewright.backends.cuda.ttir.folds import reduced
from tilewright.backends.cuda.ttir.kernel import Kernel
from tilewright.backends.cuda.ttir.keys import key_of, last_where, number_of, ranked, smaller
from tilewright.backends.cuda.ttir.recipes import Bound, recipe
from tilewright.backends.cuda.ttir.reduce import axis_of, kept
from tilewright.backends.cuda.ttir.text import I32
from tilewright.backends.cuda.ttir.tiles import arithmetic, tile_type
from tilewright.backends.cuda.ttir.values import Tile
from tilewright.core.expr import Call
from tilewright.ops.position import NOTHING


@recipe("tile:position")
def _position(k: Kernel, call: Call, bound: Bound) -> Tile:
    t, source, type_ = k.t, bound["x"], tile_type(call)
    axis, is_largest = axis_of(call, source), call.op.spec.combine == "maximum"
    arithmetic(k, source.type.dtype)
    if not isinstance(source.valid[axis], int):
        k.fail(t.compare("cmpi sle", source.valid[axis], t.integer(0)), NOTHING, call.span)
    key = key_of(t, source.value, source.type.dtype, descending=is_largest, nan_first=not is_largest)
    key = last_where(t, k.mask(source), key)
    keys = ranked(t, key, extents.numbers(t, key.shape, axis))
    found = number_of(t, reduced(t, keys, axis, lambda a, b: smaller(t, a, b)))
    valid = [1 if a == axis else extent for a, extent in enumerate(source.valid)]
    assert found.element == I32
    return k.tile(kept(k, found, source.value.shape, axis), type_, valid)
