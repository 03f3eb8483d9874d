"""Scattering to memory: elements of a tile written to a tensor, each where its index says."""

from tilewright.arrays import np
from tilewright.core.access import Access, touch_each
from tilewright.core.annotations import Tensor, Tile
from tilewright.core.expr import Expr
from tilewright.core.op import Effect
from tilewright.core.region import Region
from tilewright.core.types import ShapedType, TensorType
from tilewright.dtypes import INT32
from tilewright.errors import ShapeMismatchError
from tilewright.ops.declare import TILE, op
from tilewright.ops.families import check_dtype, shaped
from tilewright.ops.indices import PICKED, check_elements, check_index, check_same, check_whole, inside
from tilewright.ops.scatter import put_elements

__all__ = ["mscatter"]


def _mscatter_type(src: Expr, idx: Expr, output_tensor: Expr) -> ShapedType:
    source, target = shaped(src), check_whole(output_tensor, "output_tensor")
    check_dtype(source.dtype, PICKED, ["src"])
    check_elements(source, target, "src", "output_tensor")
    check_index(idx, (INT32,), "idx")
    check_same(shaped(idx).shape, source.shape, ("idx", "src"))
    if not target.shape:
        raise ShapeMismatchError(f"a tensor of one axis or more is needed, got {target}", blame=["output_tensor"])
    return target


def _mscatter(result: TensorType, src: Region, idx: Region, output_tensor: Region) -> Region:
    idx.seen()
    numbers = inside(idx.seen(src.window), output_tensor.data.size, "idx")
    places = np.unravel_index(numbers, output_tensor.data.shape)
    touch_each(Access.WRITE, output_tensor.data, places)
    put_elements(output_tensor, src.seen(), places)
    return output_tensor


@op(
    kinds=TILE, infer=_mscatter_type, evaluate=_mscatter, effect=Effect.WRITE, alias="output_tensor",
    writes="output_tensor", accepts=PICKED, domain=(0.0, 0.9),
    example="places = pl.cast(pl.tile.full([16, 32], dtype=pl.FP32, value=7.0), pl.INT32)\n"
    "out = pl.mscatter(a, places, out)",
)  # fmt: skip
def mscatter(src: Tile, idx: Tile, output_tensor: Tensor) -> Tensor:
    """Write each valid element of `src` to the element of a tensor that its index counts, along rows; return it.

    Of several in one place the last stays. An index outside the tensor is an error.
    """
    ...
