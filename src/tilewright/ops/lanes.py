"""Vector lanes: the two halves of a value, handed out and joined. A core group has two lanes, which run in turn."""

from tilewright.arrays import np
from tilewright.core.annotations import X
from tilewright.core.expr import Expr
from tilewright.core.region import Region, blank
from tilewright.core.types import Extent, ShapedType, TensorType, reshaped, static_shape
from tilewright.errors import AttributeValueError, ExecutionError, ShapeMismatchError
from tilewright.ops.declare import ANY, UNIFIED, op
from tilewright.ops.families import shaped

__all__ = ["aic_gather", "aiv_shard"]

LANES = 2
OF_LANES = frozenset({"aic_gather", "aiv_shard", "get_subblock_idx"})
"""The ops that know the running lane."""

AXES = {1: 0, 2: 1, 3: 0, 4: 1}
"""The axis that a code of a split cuts in half: rows or columns; 3 and 4 make lane 0 longer where that is odd."""

GAP = "the first lane's part ends before the second one's begins"


def _check(type_: ShapedType, split: int | None, blame: str) -> int:
    """Return the axis of a split of a 2-D value."""
    if split is None or split not in AXES:
        known = "0 for all of it, 1 or 3 for rows, 2 or 4 for columns"
        raise AttributeValueError(f"split cannot be {split!r}", blame=["split"], help=known)
    if len(type_.shape) != 2 or not all(isinstance(extent, int) for extent in type_.shape):
        raise ShapeMismatchError(f"lanes share a 2-D value of static extents, got {type_}", blame=[blame])
    return AXES[split]


def half(extent: int, split: int, lane: int) -> int:
    """Return how large the part of a lane is: half, rounded up; with codes 3 and 4, down for lane 1."""
    return extent // 2 if lane == 1 and split > 2 else -(-extent // 2)


def _shard_type(x: Expr, split: int | None, lane: int | None) -> ShapedType:
    source = shaped(x)
    if split == 0:
        return source
    axis = _check(source, split, "x")
    assert split is not None
    if lane is None or lane not in range(LANES):
        raise AttributeValueError(f"lane cannot be {lane!r}", blame=["lane"], help="a core group has lanes 0 and 1")
    shape, valid = [*static_shape(source.shape)], [*source.valid]
    extent, first = shape[axis], half(shape[axis], split, 0)
    if isinstance(source, TensorType) and extent % 2:
        raise ShapeMismatchError(f"lanes share an even number of a tensor's rows or columns, got {source}", blame=["x"])
    shape[axis] = half(extent, split, lane)
    valid[axis] = _cut(valid[axis], lane * first, shape[axis])
    return reshaped(source, tuple(shape), tuple(valid))


def _cut(valid: Extent, start: int, size: int) -> Extent:
    return max(0, min(valid - start, size)) if isinstance(valid, int) else None


def _shard(result: ShapedType, x: Region, split: int | None, lane: int | None) -> Region:
    if split is None or lane is None or split == 0:
        return x
    axis = AXES[split]
    extents = static_shape(result.shape)
    start = lane * half(x.data.shape[axis], split, 0)
    window = tuple(np.s_[start : start + extents[axis]] if a == axis else np.s_[:] for a in range(2))
    valid = [*x.valid]
    valid[axis] = max(0, min(valid[axis] - start, extents[axis]))
    if isinstance(result, TensorType):
        return x.moved(lambda array: array[window], valid)
    x.seen()
    data = blank(extents, result.dtype)
    part = x.data[window]
    data[: part.shape[0], : part.shape[1]] = part
    return Region(data, tuple(valid)).forgotten()


def _gather_type(x: Expr, other: Expr | None, split: int | None) -> ShapedType:
    first = shaped(x)
    if split == 0:
        return first
    second, axis = first if other is None else shaped(other), _check(first, split, "x")
    if (second.dtype, second.shape[1 - axis], type(second)) != (first.dtype, first.shape[1 - axis], type(first)):
        raise ShapeMismatchError(f"the lanes' parts do not fit each other: {first} and {second}", blame=["x", "other"])
    shape, valid = [*static_shape(first.shape)], [*first.valid]
    shape[axis] += static_shape(second.shape)[axis]
    if other is not None:
        more, across = second.valid[axis], second.valid[1 - axis]
        valid[axis] = _joined(first, second, axis) if more != 0 else valid[axis]
        valid[1 - axis] = valid[1 - axis] if valid[1 - axis] == across or more == 0 else None
    return reshaped(first, tuple(shape), tuple(valid))


def _joined(first: ShapedType, second: ShapedType, axis: int) -> Extent:
    """Return how far two parts that are joined are valid, where that is known: the second is not empty then."""
    have, more = first.shape[axis], second.valid[axis]
    return have + more if isinstance(have, int) and isinstance(more, int) else None


def _gather(result: ShapedType, x: Region, other: Region | None, split: int | None) -> Region:
    if split is None or split == 0:
        return x.moved(np.copy, x.valid)
    axis, given = AXES[split], x.data if other is None else other.data
    size, more = x.data.shape[axis], 0 if other is None else other.valid[axis]
    valid = [*x.valid]
    x.seen()
    if other is not None and more:
        other.seen()
        if valid[axis] < size:
            raise ExecutionError(GAP)
        valid[axis], valid[1 - axis] = size + more, min(valid[1 - axis], other.valid[1 - axis])
    return Region(np.concatenate([x.data, given], axis), tuple(valid)).forgotten()


_LOOP = "for lane in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):\n"


@op(
    kinds=UNIFIED, infer=_shard_type, evaluate=_shard, accepts=ANY, alias="x", forms=(("split", "lane"),),
    example=f"{_LOOP}    half = pl.aiv_shard(a)\n    out = pl.store(half, [lane * 8, 0], out)",
)  # fmt: skip
def aiv_shard(x: X, split: int | None = None, lane: int | None = None) -> X:
    """Return the half of a value that belongs to the running lane of `pl.split_aiv`, as its mode cuts it.

    Outside that loop `split` says how, 1 by rows and 2 by columns, and `lane` for which of the two.
    """
    ...


@op(
    kinds=UNIFIED, infer=_gather_type, evaluate=_gather, accepts=ANY, forms=(("other", "split"), ("split",)),
    example=f"{_LOOP}    both = pl.aic_gather(pl.neg(pl.aiv_shard(a)))\nout = pl.store(both, [0, 0], out)",
)  # fmt: skip
def aic_gather(x: X, other: X | None = None, split: int | None = None) -> X:
    """Return what both lanes of `pl.split_aiv` computed, joined as its mode cuts it; it is there after the loop.

    Outside that loop both parts are given, or one that belongs to lane 0, and `split` says how they are joined.
    """
    ...
