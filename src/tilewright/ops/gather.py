"""Gathering from tensors: elements by index, columns by pattern, and the places of those that compare."""

from typing import Any

from tilewright.arrays import np
from tilewright.core.access import Access, touch, touch_each
from tilewright.core.annotations import Number, Tensor
from tilewright.core.expr import Expr
from tilewright.core.foreign_names import called
from tilewright.core.op import Effect
from tilewright.core.region import Region
from tilewright.core.types import TensorType, TupleType, show_shape, tensor
from tilewright.dtypes import DataType
from tilewright.errors import AttributeValueError, ExecutionError, ShapeMismatchError
from tilewright.ops.declare import ANY, TENSOR, op
from tilewright.ops.families import shaped
from tilewright.ops.forms import form_of
from tilewright.ops.indices import axis_of, check_picked, check_whole, exceeds, inside, pattern_of
from tilewright.ops.selection import COMPARISONS, compared, compared_types, masked, masked_type

__all__ = ["gather"]

INDEX, MASK, COMPARE = ("dim", "index"), ("mask_pattern",), ("kvalue", "cmp_mode", "out_cols")
FORMS = INDEX, MASK, COMPARE
_MASK = "with mask_pattern=... it reads the bits of the columns that are taken as another type"
_COMPARE = "with kvalue=..., cmp_mode=... and out_cols=... they say how places are counted"
SMALLER = "index is no larger than input along every axis but dim"


def _gather_type(
    input: Expr,
    dim: int | None,
    index: Expr | None,
    mask_pattern: int | None,
    output_dtype: DataType | None,
    kvalue: Expr | None,
    cmp_mode: str | int | None,
    out_cols: int | None,
    offset: int,
    count_dtype: DataType | None,
) -> TensorType | TupleType:
    given = {"dim": dim, "index": index, "mask_pattern": mask_pattern}
    form = form_of("gather", FORMS, {**given, "kvalue": kvalue, "cmp_mode": cmp_mode, "out_cols": out_cols})
    if form != MASK and output_dtype is not None:
        raise AttributeValueError("output_dtype is only valid for the mask form of gather", help=_MASK)
    if form != COMPARE and (offset or count_dtype is not None):
        message = "offset/count_dtype are only valid for the compare form of gather"
        raise AttributeValueError(message, help=_COMPARE)
    source = check_whole(input, "input")
    assert isinstance(source, TensorType)
    if form == MASK:
        return tensor(*masked_type(source, pattern_of(mask_pattern), output_dtype))
    if form == COMPARE:
        assert kvalue is not None
        parts = compared_types(source, kvalue, cmp_mode, out_cols, offset, count_dtype)
        return TupleType(tuple(tensor(*part) for part in parts))
    assert index is not None and dim is not None
    return _indexed_type(source, dim, index)


def _indexed_type(source: TensorType, dim: int, index: Expr) -> TensorType:
    asked = shaped(index)
    check_picked(source, index, "input", "index")
    rank = len(source.shape)
    if rank < 2 or len(asked.shape) != rank:
        shapes = f"{show_shape(source.shape)} and {show_shape(asked.shape)}"
        message = f"gather needs an input of two axes or more and an index of as many, got {shapes}"
        raise ShapeMismatchError(message, blame=["input", "index"])
    axis = axis_of(dim, rank)
    for position, (want, have) in enumerate(zip(asked.shape, source.shape, strict=True)):
        if position != axis and exceeds(want, have):
            message = f"axis {position}: an index of {want} is larger than an input of {have}"
            raise ShapeMismatchError(message, blame=["input", "index"], help=SMALLER)
    return tensor(asked.shape, source.dtype, asked.valid)


def _gather(
    result: TensorType | TupleType,
    input: Region,
    dim: int | None,
    index: Region | None,
    mask_pattern: int | None,
    output_dtype: DataType | None,
    kvalue: Any,
    cmp_mode: str | int | None,
    out_cols: int | None,
    offset: int,
    count_dtype: DataType | None,
) -> Region | tuple[Region, ...]:
    if isinstance(result, TupleType):
        touch(Access.READ, input.live)
        return compared(result, input, kvalue, cmp_mode, out_cols, offset)
    if index is None:
        pattern = pattern_of(mask_pattern)
        touch(Access.READ, input.data[:, pattern.first :: pattern.step])
        return masked(result, input, pattern)
    assert dim is not None
    return _indexed(result, input, dim % input.data.ndim, index)


def _indexed(result: TensorType, input: Region, axis: int, index: Region) -> Region:
    for position, (want, have) in enumerate(zip(index.data.shape, input.data.shape, strict=True)):
        if position != axis and want > have:
            message = f"axis {position}: an index of {want} is larger than an input of {have}"
            raise ExecutionError(message, help=SMALLER)
    places = [*np.indices(index.valid, np.intp)]
    places[axis] = inside(index.seen(), input.data.shape[axis], "index")
    touch_each(Access.READ, input.data, tuple(places))
    found = Region(np.zeros(index.data.shape, input.data.dtype), index.valid)
    found.data[index.window] = input.data[tuple(places)]
    if input.shadow is None:
        return found.forgotten()
    shadow = np.zeros(index.data.shape, np.uint8)
    shadow[index.window] = input.shadow[tuple(places)]
    return Region(found.data, index.valid, shadow, input.origin).forgotten()


@called(torch="gather", numpy="take_along_axis")
@op(
    kinds=TENSOR, infer=_gather_type, evaluate=_gather, effect=Effect.ALLOCATE, accepts=ANY, touches=("input",),
    forms=FORMS, domain=(0.0, 0.9), codes={"cmp_mode": COMPARISONS},
    example="every = pl.gather(x, mask_pattern=pl.tile.MaskPattern.P0101)\n"
    "out = pl.store(pl.load(every, [0, 0], [16, 16]), [0, 0], out)",
)  # fmt: skip
def gather(
    input: Tensor,
    dim: int | None = None,
    index: Tensor | None = None,
    *,
    mask_pattern: int | None = None,
    output_dtype: DataType | None = None,
    kvalue: Number | None = None,
    cmp_mode: str | int | None = None,
    out_cols: int | None = None,
    offset: int = 0,
    count_dtype: DataType | None = None,
) -> Tensor:
    """Return elements of `input` taken by index, by pattern, or the places of those that compare.

    With `dim` and `index`, each element is the one of `input` at the same place, but at that index along `dim`; an
    index outside `input` is an error. With `mask_pattern`, the columns that the pattern takes, side by side, their bits
    read as `output_dtype`. With `kvalue`, `cmp_mode` and `out_cols`, two tensors: for each row the numbers of the
    columns, each plus `offset`, whose element compares to `kvalue` so, the first `out_cols` of them and zeros after the
    last, and how many there are in all.
    """
    ...
