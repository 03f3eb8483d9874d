"""Views of tensors: their memory, element by element, under another shape or with its last two axes swapped."""

from collections.abc import Sequence
from itertools import takewhile
from math import prod

from tilewright.arrays import np
from tilewright.core.annotations import Extents, Tensor
from tilewright.core.enums import TensorLayout
from tilewright.core.expr import Expr
from tilewright.core.region import Region
from tilewright.core.types import Extent, Shape, TensorType, is_static, show_shape, static_shape
from tilewright.errors import AttributeValueError, ExecutionError, ShapeMismatchError
from tilewright.ops.declare import ANY, TENSOR, op
from tilewright.ops.families import shaped
from tilewright.ops.reshape import FILL, PARTLY, checked_shape, reshaped_view
from tilewright.ops.windows import check_part, check_rank, valid_extents

__all__ = ["view"]

LAYOUTS = (TensorLayout.ND, TensorLayout.DN)


def _view_type(
    tensor: Expr, shape: tuple[Expr, ...] | None, valid_shape: tuple[Expr, ...] | None, layout: TensorLayout | None
) -> TensorType:
    source = shaped(tensor)
    assert isinstance(source, TensorType)
    wanted = layout or source.layout
    if shape is None and layout is None:
        raise AttributeValueError("a view needs a shape or a layout", help="pl.tensor.view(x, [rows, columns])")
    if wanted not in LAYOUTS or source.layout not in LAYOUTS:
        raise AttributeValueError("a view's layout is pl.ND or pl.DN", blame=["layout"])
    rank = len(source.shape if shape is None else shape)
    if TensorLayout.DN in (wanted, source.layout) and rank < 2:
        raise ShapeMismatchError(f"a DN view has two axes or more, got {rank}", blame=["tensor"])
    if shape is None:
        extents, valid = turned(source.shape, source.layout, wanted), turned(source.valid, source.layout, wanted)
    else:
        extents = valid = checked_shape(tensor, shape, "tensor")
    if valid_shape is not None:
        check_rank(valid_shape, rank, "valid_shape", "view")
        valid = valid_extents(extents, valid_shape)
    if shape is not None and source.valid != source.shape:
        _check_part(source, extents, valid if valid_shape is not None else None, wanted)
    return TensorType(extents, source.dtype, valid, wanted)


def turned(extents: tuple[Extent, ...], source: TensorLayout, target: TensorLayout) -> tuple[Extent, ...]:
    """Return extents, the last two swapped where the layout is another."""
    return extents if source is target else (*extents[:-2], extents[-1], extents[-2])


def collapsed(source: Shape, target: Shape) -> int | None:
    """Return how many leading axes become one: all, for a single row, or all but the last; None for other views."""
    if len(target) == 2 and is_static(source) and source and target[1] == source[-1]:
        return len(source) - 1
    return len(source) if len(target) == 2 and target[0] == 1 else None


def _check_part(source: TensorType, shape: Shape, valid: Shape | None, layout: TensorLayout) -> None:
    """Raise unless it is said how much of a partly valid tensor's view is valid, and that is the same elements."""
    count = collapsed(source.shape, shape)
    plain = layout is source.layout is TensorLayout.ND
    if valid is None or count is None or not plain or not _is_run(source, count):
        raise ShapeMismatchError(
            f"cannot view {source} as {show_shape(shape)}: {PARTLY}",
            blame=["tensor"],
            help="leading axes that are valid one after the other become one, with valid_shape= saying how far",
        )
    known = [v for v in source.valid if isinstance(v, int)]
    if len(known) == len(source.valid) and is_static(valid) and static_shape(valid) != _joined(known, count):
        raise ShapeMismatchError(
            f"{show_shape(valid)} are other elements than the valid ones of {source}", blame=["valid_shape"]
        )


def _is_run(source: TensorType, count: int) -> bool:
    """Return whether the valid part of the first axes is their first elements in row-major order."""
    shape, valid = source.shape[:count], source.valid[:count]
    free = len(list(takewhile(lambda extent: extent == 1, valid)))
    return valid[free + 1 :] == shape[free + 1 :]


def _joined(valid: Sequence[int], count: int) -> tuple[int, ...]:
    return (1, prod(valid)) if count == len(valid) else (prod(valid[:count]), valid[-1])


def _view(
    result: TensorType,
    tensor: Region,
    shape: tuple[int, ...] | None,
    valid_shape: tuple[int, ...] | None,
    layout: TensorLayout | None,
) -> Region:
    view = tensor
    if shape is not None:
        view = _turned(_reshaped(_turned(tensor, tensor.layout), shape, result.layout), result.layout)
    elif layout is not tensor.layout:
        view = _turned(tensor, TensorLayout.DN)
    if valid_shape is None:
        if shape is not None and tensor.valid != tensor.data.shape:
            raise ExecutionError(f"a view of {list(shape)} cannot be made: {PARTLY}", help=FILL)
        return view
    check_part(valid_shape, view.data.shape)
    if shape is not None and tensor.valid != tensor.data.shape and prod(valid_shape) != prod(tensor.valid):
        raise ExecutionError(f"{list(valid_shape)} are other elements than the valid ones, {list(tensor.valid)}")
    return view.moved(lambda array: array, valid_shape)


def _turned(x: Region, layout: TensorLayout) -> Region:
    if layout is TensorLayout.ND:
        return x
    return x.moved(lambda array: np.swapaxes(array, -1, -2), (*x.valid[:-2], x.valid[-1], x.valid[-2]))


def _reshaped(x: Region, shape: tuple[int, ...], layout: TensorLayout) -> Region:
    """Return a tensor's memory under a shape, which is given as the layout shows it."""
    in_memory = shape if layout is TensorLayout.ND else (*shape[:-2], shape[-1], shape[-2])
    if prod(shape) != x.data.size or any(extent < 0 for extent in shape):
        raise ExecutionError(f"{list(x.data.shape)} and {list(shape)} hold different numbers of elements")
    return reshaped_view(x, in_memory, in_memory)


@op(
    kinds=TENSOR, infer=_view_type, evaluate=_view, control_plane=True, accepts=ANY, alias="tensor", turns=True,
    forms=(("shape",), ("layout",)),
    example="flat = pl.tensor.view(x, [1, 512])\nout = pl.store(pl.load(flat, [0, 32], [1, 32]), [0, 0], out)",
)  # fmt: skip
def view(
    tensor: Tensor, shape: Extents | None = None, valid_shape: Extents | None = None, layout: TensorLayout | None = None
) -> Tensor:
    """Return a tensor's memory under another `shape`, or with its last two axes swapped by another `layout`.

    Of a partly valid tensor, leading axes become one, and `valid_shape` says how much of them is valid.
    """
    ...
