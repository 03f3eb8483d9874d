"""Sorting: runs of pairs of a value and its index, in descending order of the values.

A pair is two neighbours: a value, and the bits of its index in an element of the same type. NaN counts as the largest
value, and both zeros are equal.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from tilewright.arrays import np
from tilewright.core.annotations import Index, Tile, X
from tilewright.core.expr import Const, Expr
from tilewright.core.region import Array, Region, embed
from tilewright.core.types import (
    Extent,
    Shape,
    ShapedType,
    TensorType,
    TileType,
    is_static,
    show_shape,
    static_shape,
    tile,
)
from tilewright.dtypes import FP16, FP32, UINT32
from tilewright.errors import (
    AttributeValueError,
    DTypeMismatchError,
    ExecutionError,
    NotStaticError,
    ShapeMismatchError,
)
from tilewright.ops.declare import UNIFIED, op
from tilewright.ops.families import check_dtype, computed, shaped

__all__ = ["mrgsort", "sort32"]

RUN = 32
"""How many elements are sorted together."""

BLOCK = 64
"""What the length of a run in elements is a multiple of."""

SORTED = frozenset((FP16, FP32))
APART = "values and indices must be valid alike"
LENGTH = f"block_len must be a positive multiple of {BLOCK}"


def _times(extent: Extent, factor: int) -> Extent:
    return extent * factor if isinstance(extent, int) else None


def _differ(first: Shape, second: Shape) -> bool:
    """Return whether two shapes surely differ."""
    pairs = zip(first, second, strict=False)
    return len(first) != len(second) or any(isinstance(a, int) and isinstance(b, int) and a != b for a, b in pairs)


def _sort32_type(src: Expr, idx: Expr) -> ShapedType:
    values, indices = shaped(src), shaped(idx)
    check_dtype(values.dtype, SORTED, ["src"])
    check_dtype(indices.dtype, (UINT32,), ["idx"])
    if _differ(values.shape, indices.shape) or _differ(values.valid, indices.valid):
        raise ShapeMismatchError(f"each value needs its index, got {values} and {indices}", blame=["src", "idx"])
    shape = (*values.shape[:-1], _times(values.shape[-1], 2))
    return computed(values, shape, (*values.valid[:-1], _times(values.valid[-1], 2)), values.dtype)


def _sort32(result: ShapedType, src: Region, idx: Region) -> Region:
    if src.valid != idx.valid:
        raise ExecutionError(APART)
    values, indices = src.seen(), idx.seen()
    runs = [_sorted(values[..., at : at + RUN], indices[..., at : at + RUN]) for at in range(0, src.valid[-1], RUN)]
    live = np.concatenate(runs, axis=-1) if runs else np.zeros((*src.valid[:-1], 0), src.data.dtype)
    return embed(live, (*src.data.shape[:-1], 2 * src.data.shape[-1]), result.dtype)


def _sorted(values: Array, indices: Array) -> Array:
    """Return a run as pairs in order; of equal values the one with the smaller index comes first."""
    order = np.lexsort((indices, *_keys(values)), axis=-1)
    bits: Any = np.take_along_axis(indices, order, axis=-1)
    held = np.uint16 if values.dtype.itemsize == 2 else np.uint32
    placed = bits.astype(held).view(values.dtype)
    pairs = np.stack([np.take_along_axis(values, order, axis=-1), placed], axis=-1)
    return np.reshape(pairs, (*values.shape[:-1], 2 * values.shape[-1]))


def _keys(values: Array) -> tuple[Array, Array]:
    """Return keys whose ascending order is the descending one of values, the last of them the first to count."""
    unordered = np.isnan(values)
    return -np.where(unordered, 0, values).astype(np.float64), ~unordered


def _mrgsort_type(
    src0: Expr,
    src1: Expr | None,
    src2: Expr | None,
    src3: Expr | None,
    tmp: Expr | None,
    exhausted: bool,
    block_len: Expr | None,
) -> ShapedType:
    lists = {name: value for name, value in zip(_LISTS, (src0, src1, src2, src3), strict=True) if value is not None}
    types = [shaped(value) for value in lists.values()]
    for name, type_ in zip(lists, types, strict=True):
        _check_list(name, type_, types[0])
    if block_len is not None:
        _check_single(lists, tmp, block_len)
        return computed(types[0], types[0].shape, types[0].valid, types[0].dtype)
    if src1 is None:
        raise AttributeValueError("one list needs block_len, several are two or more", blame=["src0"], help=_FORMS)
    if src3 is not None and src2 is None:
        raise AttributeValueError("src3 needs src2 before it", blame=["src3"], help=_FORMS)
    return _merged_type(types, tmp)


_FORMS = "pl.mrgsort(pairs, block_len=64) merges runs of a list, pl.mrgsort(a, b, c, d, tmp=tmp) several lists"
_LISTS = ("src0", "src1", "src2", "src3")


def _check_list(name: str, type_: ShapedType, first: ShapedType) -> None:
    check_dtype(type_.dtype, SORTED, [name])
    if not isinstance(type_.shape[-1], int):
        help = "load it into a tile, which knows how much of it is valid"
        raise NotStaticError(f"the length of a list must be static, got {type_}", blame=[name], help=help)
    if type_.dtype != first.dtype:
        raise DTypeMismatchError(f"lists of one type are merged, got {first} and {type_}", blame=["src0", name])
    if _differ(type_.shape[:-1], first.shape[:-1]) or _differ(type_.valid[:-1], first.valid[:-1]):
        raise ShapeMismatchError(f"lists differ in their length only, got {first} and {type_}", blame=["src0", name])
    for extent in (type_.shape[-1], type_.valid[-1]):
        if isinstance(extent, int) and extent % 2:
            raise ShapeMismatchError(f"a list holds pairs of a value and its index, got {type_}", blame=[name])


def _check_single(lists: Mapping[str, Expr], tmp: Expr | None, block_len: Expr) -> None:
    if len(lists) > 1 or tmp is not None:
        message = "block_len is for one list, src1 and tmp for several"
        raise AttributeValueError(message, blame=["block_len", *[*lists][1:2]], help=_FORMS)
    if isinstance(block_len, Const) and (block_len.value <= 0 or int(block_len.value) % BLOCK):
        help = "sort32 leaves runs of 64 elements, and merging four of them leaves runs of 256"
        raise AttributeValueError(f"{LENGTH}, got {block_len.value}", blame=["block_len"], help=help)


def _merged_type(types: Sequence[ShapedType], tmp: Expr | None) -> ShapedType:
    first, shapes = types[0], [t.shape[-1] for t in types]
    rows, width = first.valid[:-1], _sum([t.valid[-1] for t in types])
    if isinstance(first, TensorType):
        return computed(first, (*first.shape[:-1], _sum(shapes)), (*rows, width), first.dtype)
    if tmp is None:
        help = "pl.create_tile([1, n], dtype) makes one, n being the length of all lists together"
        raise AttributeValueError("tiles need a scratch tile here: tmp is missing", blame=["src0"], help=help)
    given, total = shaped(tmp).shape, _sum(shapes)
    room = given[-1]
    fits = isinstance(room, int) and isinstance(total, int) and room >= total
    if not is_static(given) or given[:-1] != first.shape[:-1] or not fits:
        needed = f"tmp needs the shape of all lists together, {show_shape((*first.shape[:-1], total))}"
        raise ShapeMismatchError(f"{needed}, got {shaped(tmp)}", blame=["tmp"])
    return tile(static_shape(given), first.dtype, (*rows, width))


def _sum(extents: Sequence[Extent]) -> Extent:
    known = [extent for extent in extents if isinstance(extent, int)]
    return sum(known) if len(known) == len(extents) else None


def _mrgsort_scratch(src0: Expr, src1: Any, src2: Any, src3: Any, **_: Any) -> TileType | None:
    """Return the scratch tile of several lists; one list needs none."""
    given = [v for v in (src0, src1, src2, src3) if isinstance(v, Expr) and isinstance(v.type, TileType)]
    types = [shaped(v) for v in given]
    width = _sum([t.shape[-1] for t in types])
    if len(types) < 2 or not isinstance(width, int) or not isinstance(types[0], TileType):
        return None
    return tile((*types[0].shape[:-1], width), types[0].dtype)


def _mrgsort(
    result: ShapedType,
    src0: Region,
    src1: Region | None,
    src2: Region | None,
    src3: Region | None,
    tmp: Region | None,
    exhausted: bool,
    block_len: int | None,
) -> Region:
    if block_len is None:
        given = [region for region in (src0, src1, src2, src3) if region is not None]
        if any(region.valid[:-1] != src0.valid[:-1] or region.valid[-1] % 2 for region in given):
            raise ExecutionError(UNEQUAL)
        shape = (*src0.data.shape[:-1], sum(r.data.shape[-1] for r in given)) if tmp is None else tmp.data.shape
        return embed(_merged([region.seen() for region in given]), shape, result.dtype)
    if block_len <= 0 or block_len % BLOCK:
        raise ExecutionError(LENGTH)
    live = np.array(src0.seen())
    for at in range(0, live.shape[-1] // (4 * block_len) * (4 * block_len), 4 * block_len):
        runs = [live[..., start : start + block_len] for start in range(at, at + 4 * block_len, block_len)]
        live[..., at : at + 4 * block_len] = _merged(runs)
    return embed(live, src0.data.shape, result.dtype)


UNEQUAL = "lists of pairs differ in their length only"


def _merged(lists: Sequence[Array]) -> Array:
    """Return lists of pairs as one, row by row."""
    rows = lists[0].shape[:-1]
    merged = np.empty((*rows, sum(each.shape[-1] for each in lists)), lists[0].dtype)
    every: Any = np.ndindex(rows)
    for row in every:
        merged[row] = _merged_row([each[row] for each in lists])
    return merged


def _merged_row(lists: Sequence[Array]) -> Array:
    """Return the pairs of lists, always the largest of the first ones left; of equal ones that of the first list."""
    keys = [[*zip(*(key.tolist() for key in reversed(_keys(each[::2]))), strict=True)] for each in lists]
    heads, taken = [0] * len(lists), list[int]()
    starts = np.cumsum([0, *(each.shape[-1] // 2 for each in lists)]).tolist()
    for _ in range(starts[-1]):
        left = [which for which, head in enumerate(heads) if head < len(keys[which])]
        best = min(left, key=lambda which: keys[which][heads[which]])
        taken.append(starts[best] + heads[best])
        heads[best] += 1
    pairs = np.reshape(np.concatenate(lists), (starts[-1], 2))
    return np.reshape(pairs[taken], (2 * starts[-1],)) if taken else np.concatenate(lists)


@op(
    kinds=UNIFIED, infer=_sort32_type, evaluate=_sort32, accepts=SORTED,
    example="counts = pl.col_expand(pl.create_tile([16, 32], dtype=pl.UINT32), pl.tile.ci(0, [1, 32], pl.UINT32))\n"
    "pairs = pl.sort32(a, counts)\nout = pl.store(pl.slice(pairs, [16, 32], [0, 0]), [0, 0], out)",
)  # fmt: skip
def sort32(src: X, idx: X) -> X:
    """Return each run of 32 elements along the last axis in descending order, each beside the bits of its index.

    Equal values are in ascending order of their indices, and NaN is the largest value. The last run may be shorter. Of
    an index beside fp16 values the low 16 bits are kept.
    """
    ...


@op(
    kinds=UNIFIED, infer=_mrgsort_type, evaluate=_mrgsort, accepts=SORTED, scratch=_mrgsort_scratch,
    example="pairs = pl.concat(pl.slice(a, [16, 16], [0, 0]), pl.slice(b, [16, 16], [0, 0]))\n"
    "first, second = pl.slice(pairs, [16, 16], [0, 0]), pl.slice(pairs, [16, 16], [0, 16])\n"
    "out = pl.store(pl.mrgsort(first, second, tmp=pl.create_tile([16, 32], dtype=pl.FP32)), [0, 0], out)",
)  # fmt: skip
def mrgsort(
    src0: X,
    src1: X | None = None,
    src2: X | None = None,
    src3: X | None = None,
    tmp: Tile | None = None,
    exhausted: bool = False,
    block_len: Index | None = None,
) -> X:
    """Return sorted lists of pairs merged into one, in descending order of their values.

    Two to four lists become one; tiles bring a scratch tile of the shape of the result along. Of one list, every four
    neighbouring runs of `block_len` elements become one run, and what is left over stays. Of equal values that of the
    earlier list comes first. With `exhausted` the result means something until a list is used up.
    """
    ...
