"""Partial arithmetic: where the second tile holds no data, the first one's stays."""

from collections.abc import Callable
from typing import Any, TypeVar

from tilewright.arrays import np
from tilewright.core.annotations import X
from tilewright.core.expr import Expr
from tilewright.core.op import Undefined
from tilewright.core.region import Array, Region, embed, exact, shaded
from tilewright.core.types import ShapedType, TensorType, TileType
from tilewright.dtypes import round_to
from tilewright.errors import ShapeMismatchError
from tilewright.ops.declare import NUMBERS, UNIFIED, op
from tilewright.ops.families import apply, broadcast_valid, check_dtype, elementwise_dtype, elementwise_type, origin_of

__all__ = ["part_add", "part_max", "part_min", "part_mul"]

F = TypeVar("F", bound=Callable[..., Any])


def partial(reference: Callable[[Array, Array], Array]) -> Callable[[F], F]:
    """Declare an op of two tiles that is as valid as the first, and changes it where the second is valid."""

    def infer(lhs: Expr, rhs: Expr) -> ShapedType:
        values = {"lhs": lhs, "rhs": rhs}
        dtype = elementwise_dtype(values)
        check_dtype(dtype, NUMBERS, list(values))
        if isinstance(rhs.type, TensorType) and rhs.type.valid != rhs.type.shape:
            raise ShapeMismatchError(
                f"tensors are taken as a whole here, got {rhs.type}",
                blame=["rhs"],
                help="load it: tiles are partly valid",
            )
        return elementwise_type(values, dtype)

    def evaluate(result: ShapedType, lhs: Region, rhs: Region) -> Region:
        if not isinstance(result, TileType):
            return apply(reference, result.dtype, result.dtype, [lhs, rhs])
        return _changed(reference, result, lhs, rhs)

    return op(
        kinds=UNIFIED, infer=infer, evaluate=evaluate, family="partial", reference=reference, accepts=NUMBERS,
        undefined=Undefined.SPREADS, also={"lhs": ("src0",), "rhs": ("src1",)},
        example="some = pl.load(x, [0, 0], [16, 32], valid_shape=[5, 7])\n"
        "out = pl.store(pl.{name}(a, some), [0, 0], out)",
    )  # fmt: skip


def _changed(reference: Callable[[Array, Array], Array], result: TileType, lhs: Region, rhs: Region) -> Region:
    """Return the first tile, changed where the second is valid; one element serves a whole axis."""
    valid, shape = broadcast_valid([lhs, rhs]), result.shape
    first, second = (_spread(region, shape, valid) for region in (lhs, rhs))
    both = tuple(slice(0, min(v, s)) for v, s in zip(valid, second.valid, strict=True))
    window = tuple(slice(0, v) for v in valid)
    live = np.array(exact(round_to(first.data[window], result.dtype)))
    with np.errstate(all="ignore"):
        operands = (exact(round_to(region.data[both], result.dtype)) for region in (first, second))
        live[both] = exact(round_to(reference(*operands), result.dtype))
    shade = np.array(first.shade(window))
    shade[both] |= second.shade(both)
    return shaded(embed(live, shape, result.dtype), [shade], origin_of([lhs, rhs]))


def _spread(region: Region, shape: tuple[int, ...], valid: tuple[int, ...]) -> Region:
    """Return a region repeated along the axes of which it has one element."""
    missing = len(shape) - region.data.ndim
    held = zip((1,) * missing + region.data.shape, (1,) * missing + region.valid, shape, valid, strict=True)
    own = [v if have == 1 and extent != 1 and live else live for have, live, extent, v in held]
    return region.moved(lambda array: np.broadcast_to(array, shape), own)


@partial(lambda lhs, rhs: lhs + rhs)
def part_add(lhs: X, rhs: X) -> X:
    """Return `lhs` plus `rhs` where `rhs` is valid, and `lhs` where it is not."""
    ...


@partial(lambda lhs, rhs: lhs * rhs)
def part_mul(lhs: X, rhs: X) -> X:
    """Return `lhs` times `rhs` where `rhs` is valid, and `lhs` where it is not."""
    ...


@partial(lambda lhs, rhs: np.maximum(lhs, rhs))
def part_max(lhs: X, rhs: X) -> X:
    """Return the larger of `lhs` and `rhs` where `rhs` is valid, and `lhs` where it is not."""
    ...


@partial(lambda lhs, rhs: np.minimum(lhs, rhs))
def part_min(lhs: X, rhs: X) -> X:
    """Return the smaller of `lhs` and `rhs` where `rhs` is valid, and `lhs` where it is not."""
    ...
