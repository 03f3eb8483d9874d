"""Scattering into tensors: elements by index, columns by pattern."""

from collections.abc import Collection
from typing import Any

from tilewright import dtypes as dt
from tilewright.arrays import np
from tilewright.core.access import Access, touch
from tilewright.core.annotations import Tensor
from tilewright.core.enums import MaskPattern
from tilewright.core.expr import Expr
from tilewright.core.op import Effect
from tilewright.core.region import Array, Region
from tilewright.core.types import ShapedType, TensorType, tensor
from tilewright.dtypes import INT16, INT32, DataType
from tilewright.errors import AttributeValueError, ExecutionError, ShapeMismatchError
from tilewright.ops.declare import ANY, TENSOR, op
from tilewright.ops.families import check_dtype
from tilewright.ops.forms import form_of
from tilewright.ops.indices import (
    axis_of,
    check_elements,
    check_index,
    check_rank,
    check_same,
    check_whole,
    differ,
    exceeds,
    inside,
    pattern_of,
)

__all__ = ["scatter"]

PUT = frozenset((dt.INT8, dt.INT16, dt.INT32, dt.FP16, dt.BF16, dt.FP32))
FORMS = ("dim", "index", "src"), ("mask_pattern", "dst")
SMALLER = "index and src are no larger than input along either axis"


def index_dtypes(dtype: DataType) -> Collection[DataType]:
    """Return the types of indices that elements of a type are scattered with."""
    return (INT32,) if dtype.bits == 32 else (INT16,)


def check_pattern(source: ShapedType, target: ShapedType, pattern: MaskPattern, names: tuple[str, str]) -> None:
    """Raise unless the columns of a matrix are as many as a pattern takes of another."""
    for type_, name in zip((source, target), names, strict=True):
        check_rank(type_, 2, name)
    check_elements(source, target, *names)
    (rows, columns), (have, wide) = source.shape, target.shape
    needed = columns * pattern.step if isinstance(columns, int) else None
    if differ(rows, have) or differ(needed, wide):
        message = f"{pattern.name} puts {source} into as many rows and {pattern.step} times the columns, got {target}"
        raise ShapeMismatchError(message, blame=names, help="make the target so, or slice it")


def _scatter_type(
    input: Expr, dim: int | None, index: Expr | None, src: Expr | None, mask_pattern: int | None, dst: Expr | None
) -> TensorType:
    form_of("scatter", FORMS, {"dim": dim, "index": index, "src": src, "mask_pattern": mask_pattern, "dst": dst})
    source = check_whole(input, "input")
    if dst is not None:
        target = check_whole(dst, "dst")
        check_pattern(source, target, pattern_of(mask_pattern), ("input", "dst"))
        return tensor(target.shape, target.dtype)
    assert dim is not None and index is not None and src is not None
    places, given = check_whole(index, "index"), check_whole(src, "src")
    check_rank(source, 2, "input")
    check_dtype(source.dtype, PUT, ["input"])
    check_index(index, index_dtypes(source.dtype), "index")
    check_elements(given, source, "src", "input")
    check_same(places.shape, given.shape, ("index", "src"))
    if axis_of(dim, 2) != 1:
        raise AttributeValueError(f"scatter works along the last axis, not {dim}", help="dim=-1; transpose for others")
    for axis, (want, have) in enumerate(zip(places.shape, source.shape, strict=True)):
        if exceeds(want, have):
            message = f"axis {axis}: an index of {want} is larger than an input of {have}"
            raise ShapeMismatchError(message, blame=["input", "index"], help=SMALLER)
    return tensor(source.shape, source.dtype)


def _scatter(
    result: TensorType,
    input: Region,
    dim: int | None,
    index: Region | None,
    src: Region | None,
    mask_pattern: int | None,
    dst: Region | None,
) -> Region:
    if dst is not None:
        return put_columns(_copy(dst), input, pattern_of(mask_pattern))
    assert index is not None and src is not None
    touch(Access.READ, input.live)
    if src.data.shape != index.data.shape or any(a > b for a, b in zip(src.data.shape, input.data.shape, strict=True)):
        shapes = f"{list(index.data.shape)}, {list(src.data.shape)} and {list(input.data.shape)}"
        raise ExecutionError(f"index, src and input do not fit: {shapes}", help=SMALLER)
    made = _copy(input)
    columns = inside(index.seen(), input.data.shape[1], "index")
    put_elements(made, src.seen(), (np.indices(columns.shape, np.intp)[0], columns))
    return made


def _copy(region: Region) -> Region:
    return region.moved(lambda array: np.array(array, order="C"), region.valid)


def put_elements(target: Region, elements: Array, places: tuple[Array, ...]) -> None:
    """Write elements to places, one after the other along rows: the last one stays."""
    flat = tuple(np.ravel(place) for place in places)
    for at, element in enumerate(np.ravel(elements)):
        target.data[tuple(place[at] for place in flat)] = element
    target.brighten(flat)  # pyright: ignore[reportArgumentType]


def put_columns(target: Region, source: Region, pattern: MaskPattern) -> Region:
    """Write the valid part of a matrix to the columns of another that a pattern takes; return that."""
    rows, columns = source.data.shape
    if target.data.shape != (rows, columns * pattern.step):
        message = f"{pattern.name} cannot put {[rows, columns]} into {list(target.data.shape)}"
        raise ExecutionError(message, help="the target has as many rows and 1, 2 or 4 times the columns")
    live = source.seen()
    end = pattern.first + live.shape[1] * pattern.step
    window: Any = (slice(0, live.shape[0]), slice(pattern.first, end, pattern.step))
    target.data[window] = live
    target.brighten(window)
    return target


@op(
    kinds=TENSOR, infer=_scatter_type, evaluate=_scatter, effect=Effect.ALLOCATE, accepts=ANY, forms=FORMS,
    domain=(0.0, 0.9),
    example="places = pl.create_tensor([16, 4], dtype=pl.INT32, init_value=5)\n"
    "some = pl.full([16, 4], dtype=pl.FP32, value=1.0)\n"
    "made = pl.scatter(x, dim=-1, index=places, src=some)\n"
    "out = pl.store(pl.load(made, [0, 0], [16, 32]), [0, 0], out)",
)  # fmt: skip
def scatter(
    input: Tensor,
    dim: int | None = None,
    index: Tensor | None = None,
    src: Tensor | None = None,
    *,
    mask_pattern: int | None = None,
    dst: Tensor | None = None,
) -> Tensor:
    """Return a copy with elements put where an index or a pattern says.

    With `dim`, `index` and `src`: a copy of `input` in which each element of `src` lies in its row at the column of its
    index; of several in one place the last stays, and an index outside the row is an error. With `mask_pattern` and
    `dst`: a copy of `dst` with the columns of `input` in those that the pattern takes.
    """
    ...
