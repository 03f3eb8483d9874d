"""Scattering rows: whole rows of a matrix, or of a cache in blocks, replaced by others."""

from math import prod

from tilewright.arrays import np
from tilewright.core.access import Access, touch, touch_each
from tilewright.core.annotations import X
from tilewright.core.expr import Expr
from tilewright.core.op import Effect, Undefined
from tilewright.core.region import Array, Region
from tilewright.core.types import ShapedType, TensorType
from tilewright.errors import AttributeValueError, ExecutionError, MixedKindsError, ShapeMismatchError
from tilewright.ops.declare import ANY, INTEGERS, UNIFIED, op
from tilewright.ops.forms import form_of
from tilewright.ops.indices import check_elements, check_index, check_rank, check_whole, differ, inside

__all__ = ["scatter_update"]

FORMS = (("index", "src"),)
SHAPES = "input [rows, d], index [b, s] and src [b * s, d]; or input [blocks, size, 1, d] and src [b, s, 1, d]"
ROWS = "src has a valid row for each valid index"


def _update_type(input: Expr, dim: int, index: Expr | None, src: Expr | None) -> ShapedType:
    form_of("scatter_update", FORMS, {"index": index, "src": src})
    assert index is not None and src is not None
    if dim != -2:
        raise AttributeValueError(f"scatter_update replaces rows, along dim=-2, not {dim}", help="dim=-2")
    target, places, given = check_whole(input, "input"), check_whole(index, "index"), check_whole(src, "src")
    if len({type(target), type(places), type(given)}) > 1:
        message = "`scatter_update` cannot mix Tensor and Tile operands"
        raise MixedKindsError(message, blame=["input", "index", "src"], help="pl.load makes tiles from tensors")
    check_index(index, INTEGERS, "index")
    check_rank(places, 2, "index")
    check_elements(given, target, "src", "input")
    _check_shapes(target, places, given)
    return target


def _check_shapes(target: ShapedType, places: ShapedType, given: ShapedType) -> None:
    fits = len(target.shape) == len(given.shape) and len(target.shape) in (2, 4)
    if fits and len(target.shape) == 2:
        b, s = places.shape
        count = b * s if isinstance(b, int) and isinstance(s, int) else None
        fits = not (differ(given.shape[0], count) or differ(given.shape[1], target.shape[1]))
    elif fits:
        wanted = (*places.shape, 1, target.shape[3])
        fits = not (any(map(differ, given.shape, wanted)) or differ(target.shape[2], 1))
    if not fits:
        message = f"scatter_update cannot put {given} into {target} at {places}"
        raise ShapeMismatchError(message, blame=["input", "index", "src"], help=SHAPES)


def _update(result: ShapedType, input: Region, dim: int, index: Region, src: Region) -> Region:
    target = input if isinstance(result, TensorType) else input.moved(np.array, input.valid)
    axes = target.data.ndim - 1 if target.data.ndim == 2 else 2
    heads = target.data.shape[:axes]
    rows = inside(index.seen(), prod(heads), "index")
    if any(map(int.__ne__, src.data.shape[axes:], target.data.shape[axes:])) or _rows(src, axes) != index.data.size:
        raise ExecutionError(f"{list(src.data.shape)} does not fit {list(target.data.shape)}", help=SHAPES)
    b, s = (int(extent) for extent in index.valid)
    counted = np.reshape(np.arange(index.data.size), index.data.shape)[:b, :s]
    taken = np.unravel_index(counted, src.data.shape[:axes])
    if any((place >= extent).any() for place, extent in zip(taken, src.valid, strict=False)):
        raise ExecutionError("src has no valid row for an index", help=ROWS)
    _copy_rows(target, rows, src, taken, heads)
    return target


def _rows(region: Region, axes: int) -> int:
    return prod(region.data.shape[:axes])


def _copy_rows(target: Region, rows: Array, src: Region, taken: tuple[Array, ...], heads: tuple[int, ...]) -> None:
    """Write the valid part of rows, one after the other: of several for one place the last stays."""
    window = tuple(slice(0, extent) for extent in src.valid[len(heads) :])
    given = np.array(src.seen())
    places = np.unravel_index(rows, heads)
    touch(Access.READ, src.live)
    touch_each(Access.WRITE, target.data[(..., *window)], places)
    come, go = (zip(*(np.ravel(axis).tolist() for axis in axes), strict=True) for axes in (taken, places))
    for source, head in zip(come, go, strict=True):
        place = (*head, *window)
        target.data[place] = given[source]
        target.brighten(place)


@op(
    kinds=UNIFIED, infer=_update_type, evaluate=_update, family="update", effect=Effect.WRITE, alias="input",
    writes="input", accepts=ANY, undefined=Undefined.MOVES, orders=(("input", "index", "src", "dim"),),
    forms=FORMS, domain=(0.0, 0.9),
    example="places = pl.cast(pl.tile.full([1, 4], dtype=pl.FP32, value=7.0), pl.INT32)\n"
    "made = pl.scatter_update(a, -2, places, pl.slice(b, [4, 32], [0, 0]))\nout = pl.store(made, [0, 0], out)",
)  # fmt: skip
def scatter_update(input: X, dim: int = -2, index: X | None = None, src: X | None = None) -> X:
    """Write rows of `src` to the rows of `input` that `index` names, counted along its rows; return `input`.

    Of several for one row the last stays. A tensor is written where it lies, a caller's argument too. A cache of four
    axes has its rows in blocks, which are counted through. The order `(input, index, src, dim)` is understood too.
    """
    ...
