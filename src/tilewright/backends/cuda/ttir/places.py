"""Places: the rows or elements of a tensor that a tile of indices stands for.

An index that points at nothing is an error, and nothing is touched for it.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.backends.cuda.ttir import extents
from tilewright.backends.cuda.ttir.convert import as_element
from tilewright.backends.cuda.ttir.folds import flat, some, whole
from tilewright.backends.cuda.ttir.kernel import Kernel
from tilewright.backends.cuda.ttir.loads import live_of
from tilewright.backends.cuda.ttir.picks import split
from tilewright.backends.cuda.ttir.text import I64, Text, Value
from tilewright.backends.cuda.ttir.values import Extent, Tensor, Tile, padded
from tilewright.core.expr import Call
from tilewright.dtypes import INT64
from tilewright.ops.indices import outside
from tilewright.records import entity


@entity
class Places:
    """Where elements lie: their addresses, which of them there are, and how many are valid along each axis."""

    addresses: Value
    live: Value
    """Which of them are valid, admitted by a mask, and inside their tensor."""
    heads: Value
    """The number that the index of each counts, one to a row or to an element; all of them in a line."""
    heads_live: Value
    by_row: bool


def index_of(k: Kernel, tile: Tile) -> Value:
    """Return indices as integers of 64 bits."""
    return as_element(k.t, tile.value, tile.type.dtype, INT64)


def inside(k: Kernel, call: Call, numbers: Value, live: Value, limit: Extent, name: str) -> Value:
    """Return which of the live numbers lie below a limit; the others are noted as an error."""
    t = k.t
    within = t.compare("cmpi ult", numbers, t.splat(extents.held(t, limit), numbers.shape))
    refuse(k, call, numbers, t.simple("arith.andi", live, negated(t, within)), outside(name))
    return t.simple("arith.andi", live, within)


def negated(t: Text, condition: Value) -> Value:
    """Return where a condition does not hold."""
    return t.simple("arith.xori", condition, t.constant("true", "i1", condition.shape))


def refuse(k: Kernel, call: Call, numbers: Value, bad: Value, message: str) -> None:
    """Note an error where some of the numbers are bad, of which it names the largest."""
    t = k.t

    def worst() -> Value:
        return whole(t, t.select(bad, numbers, t.integer(-(1 << 63), I64, bad.shape)), "arith.maxsi")

    if k.checked:
        k.fail(some(t, bad), message, call.span, worst)


def find(k: Kernel, call: Call, bound: dict[str, object], valid: Sequence[Extent], shape: Sequence[int]) -> Places:
    """Return the places that an op of `x`, `indices`, `axis` and perhaps a `mask` is about, a row or element each."""
    t, tensor, indices, mask = k.t, bound["x"], bound["indices"], bound["mask"]
    assert isinstance(tensor, Tensor) and isinstance(indices, Tile) and (mask is None or isinstance(mask, Tile))
    by_row = bound["axis"] == 0 and len(tensor.shape) > 1
    numbers, admitted = index_of(k, indices), None if mask is None else mask.value
    if by_row:
        numbers, admitted = flat(t, numbers), None if admitted is None else flat(t, admitted)
    _cover(k, call, valid, by_row, {"indices": indices, **({} if mask is None else {"mask": mask})})
    own = valid[:1] if by_row else valid
    live = live_of(k, numbers.shape, own, admitted)
    heads = tensor.shape[:1] if bound["axis"] == 0 else tensor.shape
    live = inside(k, call, numbers, live, product(k, heads), "indices")
    safe = t.select(live, numbers, t.integer(0, I64, numbers.shape))
    if not by_row:
        return Places(element_addresses(k, tensor, safe), live, flat(t, safe), flat(t, live), False)
    wide = padded(tuple(shape))
    rows_at = row_addresses(k, tensor, safe, wide, heads=1)
    rows = extents.spread(t, extents.along(t, live, len(wide), 0), wide)
    part = k.inside(wide, (wide[0], *valid[1:]))
    return Places(rows_at, rows if part is None else t.simple("arith.andi", rows, part), safe, live, True)


def _cover(k: Kernel, call: Call, valid: Sequence[Extent], by_row: bool, given: dict[str, Tile]) -> None:
    """Note an error where there are fewer valid indices than elements for them."""
    t = k.t
    for name, tile in given.items():
        have = [product(k, tile.valid)] if by_row else tile.valid
        for own, want in zip(have, valid[: len(have)], strict=True):
            if own == want:
                continue
            short = t.compare("cmpi slt", extents.held(t, own), extents.held(t, want))
            k.fail(short, f"an element has no valid index in `{name}`", call.span)


def product(k: Kernel, sizes: Sequence[Extent]) -> Extent:
    """Return how many elements some extents hold."""
    found: Extent = 1
    for size in sizes:
        found = extents.times(k.t, found, size)
    return found


def element_addresses(k: Kernel, tensor: Tensor, numbers: Value) -> Value:
    """Return the addresses of elements that numbers count along the rows of a tensor."""
    return addresses(k, tensor, split(k.t, numbers, tensor.shape))


def row_addresses(k: Kernel, tensor: Tensor, numbers: Value, shape: Sequence[int], heads: int) -> Value:
    """Return the addresses of rows that numbers count along the first axes of a tensor, in a shape of one for each."""
    t, rank = k.t, len(shape)
    found = split(t, numbers, tensor.shape[:heads])
    steps = [extents.along(t, place, rank, 0) for place in found]
    steps += [extents.positions(t, shape, axis) for axis in range(1, rank)]
    return addresses(k, tensor, [extents.spread(t, step, shape) for step in steps])


def addresses(k: Kernel, tensor: Tensor, places: Sequence[Value]) -> Value:
    """Return the addresses of elements that lie at some places along the axes of a tensor."""
    t, shape, apart = k.t, places[0].shape, None
    k.facts.in_rows.add(tensor.root)
    for count, stride in zip(places, tensor.strides, strict=True):
        far = count if stride == 1 else t.simple("arith.muli", count, t.splat(extents.held(t, stride), shape))
        apart = far if apart is None else t.simple("arith.addi", apart, far)
    assert apart is not None
    first = t.splat(tensor.pointer, shape)
    return t.op(f"tt.addptr {first}, {apart} : {first.type}, {apart.type}", first.element, shape)
