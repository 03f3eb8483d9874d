"""Scans: what all elements up to each one along an axis fold to, in order.

Sums and products of floats are carried in fp64 and rounded once.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.backends.cuda.ttir.convert import as_element
from tilewright.backends.cuda.ttir.elements import UFUNCS
from tilewright.backends.cuda.ttir.folds import Combine, scanned
from tilewright.backends.cuda.ttir.kernel import Kernel
from tilewright.backends.cuda.ttir.large import is_large, turned
from tilewright.backends.cuda.ttir.recipes import Bound, recipe
from tilewright.backends.cuda.ttir.reduce import exactly, filled
from tilewright.backends.cuda.ttir.text import Text, Value
from tilewright.backends.cuda.ttir.tiles import arithmetic, tile_type
from tilewright.backends.cuda.ttir.values import Tile
from tilewright.core.expr import Call


@recipe("tile:scan")
def _scan(k: Kernel, call: Call, bound: Bound) -> Tile:
    spec, source, type_ = call.op.spec, bound["x"], tile_type(call)
    arithmetic(k, type_.dtype)
    axis = bound["axis"] % len(type_.shape)
    value = as_element(k.t, source.value, source.type.dtype, type_.dtype)
    given = filled(k, exactly(k, spec, value, type_.dtype), source, spec, type_.dtype)

    def combined(a: Sequence[Value], b: Sequence[Value]) -> Sequence[Value]:
        return [UFUNCS[spec.combine](given.of(a[0]), given.of(b[0])).value]

    found = _scanned(k.t, given.value, axis, bool(bound["reverse"]), combined)
    return k.tile(as_element(k.t, found, given.element, type_.dtype), type_, source.valid)


def _scanned(t: Text, value: Value, axis: int, is_reverse: bool, combine: Combine) -> Value:
    """Return an axis scanned: of a large tile it is the last one meanwhile, which a scan needs little room for."""
    last = len(value.shape) - 1
    if axis == last or not is_large(t, value):
        return scanned(t, [value], axis, is_reverse, combine)[0]
    order = [*range(len(value.shape))]
    order[axis], order[last] = last, axis
    return turned(t, scanned(t, [turned(t, value, order)], last, is_reverse, combine)[0], order)
