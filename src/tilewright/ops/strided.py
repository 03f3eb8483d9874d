"""Strided values: every second element, or every third, along the axes of what is there."""

from collections.abc import Sequence

from tilewright.arrays import np
from tilewright.core.annotations import X
from tilewright.core.build import scalar
from tilewright.core.expr import Expr, integer
from tilewright.core.extents import as_extent, as_scalar
from tilewright.core.region import Region
from tilewright.core.types import Extent, ShapedType, TileType, reshaped
from tilewright.errors import AttributeValueError
from tilewright.ops.declare import ANY, UNIFIED, op
from tilewright.ops.families import shaped
from tilewright.ops.windows import check_rank

__all__ = ["strided"]


def counted(extent: Extent, step: int) -> Extent:
    """Return how many elements there are, `step` from one to the next and the first among them."""
    if extent is None or step == 1:
        return extent
    if isinstance(extent, int):
        return -(-extent // step)
    return as_extent(scalar("floordiv", scalar("add", as_scalar(extent), integer(step - 1)), integer(step)))


def _strided_type(x: Expr, steps: Sequence[int]) -> ShapedType:
    source = shaped(x)
    check_rank(steps, len(source.shape), "steps", "value")
    if any(step < 1 for step in steps):
        raise AttributeValueError(f"a step counts forward, got {list(steps)}", blame=["steps"])
    shape, valid = (
        tuple(counted(extent, step) for extent, step in zip(extents, steps, strict=True))
        for extents in (source.shape, source.valid)
    )
    return reshaped(source, shape, shape if source.valid == source.shape else valid)


def _strided(result: ShapedType, x: Region, steps: Sequence[int]) -> Region:
    window = tuple(np.s_[::step] for step in steps)
    valid = [-(-extent // step) for extent, step in zip(x.valid, steps, strict=True)]
    if isinstance(result, TileType):
        x.seen()
    view = x.moved(lambda array: array[window], valid)
    return view.forgotten() if isinstance(result, TileType) else view


@op(
    kinds=UNIFIED, infer=_strided_type, evaluate=_strided, control_plane=True, accepts=ANY, alias="x", turns=True,
    example="even = pl.strided(a, [1, 2])\nout = pl.store(even, [0, 0], out)",
)  # fmt: skip
def strided(x: X, steps: Sequence[int]) -> X:
    """Return every `steps[axis]`-th element along each axis, from the first on: a view of a tensor, a copy of a tile.

    `x[..., 0::2]` and `x[..., 1::2]` are written so: what lies between two elements is passed over.
    """
    ...
