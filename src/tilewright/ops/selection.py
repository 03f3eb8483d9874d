"""Selection: columns of a matrix taken by a pattern, and the places of elements that compare to a number."""

import operator
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from tilewright.arrays import np
from tilewright.core.enums import CmpType, MaskPattern
from tilewright.core.expr import Expr
from tilewright.core.region import Array, Region
from tilewright.core.types import ScalarType, Shape, ShapedType, TensorType, TupleType
from tilewright.dtypes import INT32, UINT32, DataType, objection, round_scalar
from tilewright.errors import AttributeValueError, DTypeMismatchError, ExecutionError, ShapeMismatchError
from tilewright.ops.families import check_dtype
from tilewright.ops.indices import PICKED, check_rank, chosen, taken

Parts: TypeAlias = tuple[Shape, DataType, Shape]
"""Shape, element type and valid part of a result."""

COMPARISONS = tuple(kind.name.lower() for kind in CmpType)
COMPARE: Mapping[str, Callable[[Any, Any], Any]] = {name: getattr(operator, name) for name in COMPARISONS}
"""How each of them compares elements, or lanes."""


def divides(columns: int, pattern: MaskPattern) -> str:
    """Return what is wrong with taking a pattern of so many columns, nothing where it fits."""
    if not columns % pattern.step:
        return ""
    return f"{pattern.name} takes one of {pattern.step} columns, and {columns} cannot be divided by that"


CUT = "pl.slice cuts it to a multiple of that"


def masked_type(source: ShapedType, pattern: MaskPattern, output_dtype: DataType | None) -> Parts:
    """Return what the columns of a matrix that a pattern takes are."""
    check_rank(source, 2, "src" if not isinstance(source, TensorType) else "input")
    rows, columns = source.shape
    if source.dtype.bits < 8:
        raise DTypeMismatchError(f"{source.dtype} elements have no bytes of their own")
    if isinstance(columns, int) and (wrong := divides(columns, pattern)):
        raise ShapeMismatchError(wrong, help=CUT)
    dtype = output_dtype or source.dtype
    if dtype.bits != source.dtype.bits or dtype.numpy_name is None:
        help = f"output_dtype reads the same {source.dtype.bits} bits as another type; pl.cast converts numbers"
        raise DTypeMismatchError(f"the bits of {source.dtype} cannot be read as {dtype}", help=help)
    width = columns if pattern.step == 1 else columns // pattern.step if isinstance(columns, int) else None
    live_rows, live = source.valid
    return (rows, width), dtype, (live_rows, live if pattern.step == 1 else taken(live, pattern))


def masked(result: ShapedType, source: Region, pattern: MaskPattern) -> Region:
    """Return the columns of a matrix that a pattern takes, side by side."""
    if wrong := divides(source.data.shape[1], pattern):
        raise ExecutionError(wrong, help=CUT)

    def picked(array: Array) -> Array:
        return np.array(array[:, pattern.first :: pattern.step], order="C")

    rows, columns = source.valid
    cut = source.moved(picked, (rows, taken(columns, pattern)))
    data: Any = cut.data
    return Region(data.view(result.dtype.numpy), cut.valid, cut.shadow, cut.origin)


def compared_types(
    source: ShapedType,
    kvalue: Expr,
    cmp_mode: str | int | None,
    out_cols: int | None,
    offset: int,
    count_dtype: DataType | None,
) -> tuple[Parts, Parts]:
    """Return what the places of matching elements are, and how many there are in each row."""
    check_rank(source, 2, "src" if not isinstance(source, TensorType) else "input")
    check_dtype(source.dtype, PICKED, ["src" if not isinstance(source, TensorType) else "input"])
    chosen(cmp_mode, COMPARISONS, "cmp_mode")
    assert isinstance(kvalue.type, ScalarType)
    if kvalue.type.dtype != source.dtype:
        raise DTypeMismatchError(
            f"{source.dtype} elements are compared to a scalar of theirs, got {kvalue.type.dtype}",
            blame=["kvalue"],
            help=f"convert it: pl.cast(kvalue, pl.{source.dtype.symbol})",
        )
    if not isinstance(out_cols, int) or isinstance(out_cols, bool) or out_cols <= 0:
        raise AttributeValueError(f"out_cols must be a positive integer, got {out_cols!r}", help="out_cols=64, say")
    if reason := objection(offset, INT32):
        raise AttributeValueError(f"column numbers are int32, and {offset} is none", help=reason)
    if count_dtype not in (None, INT32, UINT32):
        raise DTypeMismatchError(f"counts are int32 or uint32, not {count_dtype}", help="count_dtype=pl.INT32")
    rows, live = source.shape[0], source.valid[0]
    return ((rows, out_cols), INT32, (live, out_cols)), ((1, rows), count_dtype or INT32, (1, live))


def compared(
    result: TupleType, source: Region, kvalue: Any, cmp_mode: str | int | None, out_cols: int | None, offset: int
) -> tuple[Region, Region]:
    """Return for each row of a matrix the places of matching elements, zeros after the last, and how many match."""
    assert out_cols is not None
    rows = source.data.shape[0]
    places, counts = (part.dtype for part in result.elements if not isinstance(part, (TupleType,)))
    live = source.seen()
    number = np.asarray(round_scalar(kvalue, source.dtype), live.dtype)
    with np.errstate(all="ignore"):
        matches = COMPARE[chosen(cmp_mode, COMPARISONS, "cmp_mode")](live, number)
    found = np.zeros((rows, out_cols), places.numpy)
    for row, flags in enumerate(matches):
        columns = np.flatnonzero(flags)[:out_cols]
        found[row, : len(columns)] = (columns + offset).astype(np.int64).astype(np.int32)
    total = np.zeros((1, rows), counts.numpy)
    total[0, : len(matches)] = matches.sum(axis=1)
    return Region(found, (source.valid[0], out_cols)).forgotten(), Region(total, (1, source.valid[0])).forgotten()
