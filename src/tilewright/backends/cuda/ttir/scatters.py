"""Scatters: elements and rows put into tiles, each where its index says, of several in one place the last."""

from __future__ import annotations

from tilewright.backends.cuda.ttir import extents
from tilewright.backends.cuda.ttir.folds import flat
from tilewright.backends.cuda.ttir.kernel import Kernel
from tilewright.backends.cuda.ttir.loads import live_of
from tilewright.backends.cuda.ttir.matches import last_match
from tilewright.backends.cuda.ttir.picks import picked
from tilewright.backends.cuda.ttir.places import index_of, inside
from tilewright.backends.cuda.ttir.recipes import Bound, recipe
from tilewright.backends.cuda.ttir.shape import numbered
from tilewright.backends.cuda.ttir.text import I32, I64, Value
from tilewright.backends.cuda.ttir.tiles import tile_type
from tilewright.backends.cuda.ttir.values import Tile
from tilewright.core.expr import Call
from tilewright.ops.indices import pattern_of
from tilewright.ops.scatter_update import ROWS


@recipe("tile.scatter")
def _scatter(k: Kernel, call: Call, bound: Bound) -> Tile:
    t, target, source = k.t, bound["dst"], bound["src"]
    numbers, count = index_of(k, bound["indexes"]), 1
    for extent in target.type.shape:
        count *= extent
    live = inside(k, call, numbers, live_of(k, numbers.shape, source.valid), count, "indexes")
    wanted = flat(t, numbered(k, target.type.shape))
    place = last_match(t, wanted, flat(t, numbers), flat(t, live))
    found = picked(t, flat(t, source.value), place, 0)
    is_new = t.compare("cmpi sge", place, t.integer(0, I32, place.shape))
    value = t.select(is_new, found, flat(t, target.value))
    shape = target.value.shape
    value = value if value.shape == shape else t.shaped("tt.reshape", value, shape)
    return k.tile(value, tile_type(call), target.valid)


@recipe("tile.scatter_mask")
def _scatter_mask(k: Kernel, call: Call, bound: Bound) -> Tile:
    t, target, source, pattern = k.t, bound["dst"], bound["src"], pattern_of(bound["mask_pattern"])
    shape = target.value.shape
    columns = extents.positions(t, shape, 1)
    apart = t.simple("arith.subi", columns, t.integer(pattern.first, I64, columns.shape))
    step = t.integer(pattern.step, I64, columns.shape)
    places, rest = (t.simple(f"arith.{name}", apart, step) for name in ("divsi", "remsi"))
    own = t.simple(
        "arith.andi",
        t.compare("cmpi eq", rest, t.integer(0, I64, rest.shape)),
        t.compare("cmpi sge", apart, t.integer(0, I64, rest.shape)),
    )
    fits = t.compare("cmpi slt", places, t.splat(extents.held(t, source.valid[1]), places.shape))
    own = extents.spread(t, t.simple("arith.andi", own, fits), shape)
    rows = k.inside(shape, (source.valid[0], shape[1]))
    own = own if rows is None else t.simple("arith.andi", own, rows)
    value = t.select(own, picked(t, source.value, places, 1), target.value)
    return k.tile(value, tile_type(call), target.valid)


@recipe("tile.scatter_update")
def _scatter_update(k: Kernel, call: Call, bound: Bound) -> Tile:
    """Write rows: the axes that count them are one, then those of a row follow."""
    t, target, index, source = k.t, bound["input"], bound["index"], bound["src"]
    axes = 1 if len(target.type.shape) == 2 else 2
    heads, count = target.type.shape[:axes], 1
    for extent in heads:
        count *= extent
    numbers = index_of(k, index)
    live = inside(k, call, numbers, live_of(k, numbers.shape, index.valid), count, "index")
    _check_rows(k, call, index, source, axes)
    place = last_match(t, flat(t, numbered(k, heads)), flat(t, numbers), flat(t, live))
    given = _counted_rows(k, index, source, axes)
    shape = target.value.shape
    line = (place.shape[0], *shape[axes:])
    found = picked(t, given, extents.along(t, place, len(line), 0), 0)
    is_new = t.compare("cmpi sge", place, t.integer(0, I32, place.shape))
    is_new = extents.spread(t, extents.along(t, is_new, len(line), 0), line)
    part = k.inside(line, (line[0], *source.valid[axes:]))
    is_new = is_new if part is None else t.simple("arith.andi", is_new, part)
    old = target.value if line == shape else t.shaped("tt.reshape", target.value, line)
    value = t.select(is_new, found, old)
    return k.tile(value if line == shape else t.shaped("tt.reshape", value, shape), tile_type(call), target.valid)


def _counted_rows(k: Kernel, index: Tile, source: Tile, axes: int) -> Value:
    """Return the rows of a source in the order in which the padded index counts them."""
    t, value = k.t, source.value
    if axes == 2:
        return t.shaped("tt.reshape", value, (value.shape[0] * value.shape[1], *value.shape[2:]))
    wide, (_, columns) = index.value.shape, index.type.shape
    if wide[1] == columns and wide[0] * wide[1] == value.shape[0]:
        return value
    rows, within = (extents.spread(t, extents.positions(t, wide, axis), wide) for axis in (0, 1))
    number = t.simple("arith.addi", t.simple("arith.muli", rows, t.integer(columns, I64, wide)), within)
    return picked(t, value, extents.along(t, flat(t, number), len(value.shape), 0), 0)


def _check_rows(k: Kernel, call: Call, index: Tile, source: Tile, axes: int) -> None:
    """Note an error where an index has no valid row."""
    t = k.t
    if axes == 2:
        pairs = [*zip(index.valid, source.valid[:2], strict=True)]
    else:
        last = extents.minus(t, index.valid[0], 1)
        end = extents.plus(t, extents.times(t, last, index.type.shape[1]), index.valid[1])
        pairs = [(end, source.valid[0])]
    for want, have in pairs:
        if want == have or (isinstance(want, int) and isinstance(have, int) and want <= have):
            continue
        some = t.compare("cmpi sgt", extents.held(t, index.valid[1]), t.integer(0))
        short = t.compare("cmpi sgt", extents.held(t, want), extents.held(t, have))
        k.fail(t.simple("arith.andi", some, short), f"src has no valid row for an index\n{ROWS}", call.span)
