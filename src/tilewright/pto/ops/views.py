"""Views: windows on global memory, whole or in part."""

from __future__ import annotations

from collections.abc import Iterable

from tilewright.core.expr import Expr
from tilewright.errors import AttributeValueError
from tilewright.ops.builder import known
from tilewright.pto.errors import PtoOperandError
from tilewright.pto.machine.machine import Machine
from tilewright.pto.machine.tiles import moved, product
from tilewright.pto.machine.values import Pointer, View
from tilewright.pto.module import Op, Value
from tilewright.pto.op import Constants, declare, element_type, equal, gives
from tilewright.pto.text.form import Form, Layout, Typing, Word
from tilewright.pto.types import Dims, Ptr, Scalar, TensorView, Type


def _refuse_extents(op: Op, what: str, given: Iterable[Value], dims: Dims, constants: Constants) -> None:
    """Raise where an extent is not what the type of the result says it is."""
    for axis, (value, extent) in enumerate(zip(given, dims, strict=False)):
        number = constants.get(value)
        if number is None:
            continue
        if number < 0:
            raise PtoOperandError(f"{what} {axis} of `{op.name}` is {number}", help="extents are not negative")
        if extent is not None and number != extent:
            message = f"{what} {axis} of `{op.name}` is {number}, and its result has {extent}"
            raise PtoOperandError(message, help=f"write {number} in the type, or `?`")


def _dims(type: TensorView, rank: int) -> Dims:
    """Return the extents of a view; old text has their number instead, and nothing to contradict."""
    return type.shape if len(type.shape) == rank else (None,) * rank


def _has_rank(type: TensorView, rank: int) -> bool:
    return len(type.shape) == rank or type.shape == (rank,)  # old text counts dims instead of listing them


def _is_view(op: Op, constants: Constants) -> None:
    view = op.results[0].of(TensorView)
    shape, strides = op.clause("shape") or (), op.clause("strides") or ()
    if len(shape) != len(strides):
        raise PtoOperandError(f"{len(shape)} extents in `shape` but {len(strides)} in `strides`")
    if not _has_rank(view, len(shape)):
        raise PtoOperandError(f"{len(shape)} extents in `shape` but {len(view.shape)} in {view}")
    equal(op, "element type", view.element, element_type(op.operands[0].type))
    _refuse_extents(op, "extent", shape, _dims(view, len(shape)), constants)


_WINDOW = """
(%x: !pto.ptr<f32, gm> = random:8x64, %y: w4x64xf32 = zeros)
; %v = pto.make_tensor_view %x, shape = [%c8, %c64], strides = [%c64, %c1] : !pto.tensor_view<?x?xf32>
; %p = pto.partition_view %v, offsets = [%c2, %c0], sizes = [%c4, %c64] : !pto.tensor_view<?x?xf32> -> w4x64xf32
; %t = pto.alloc_tile : t4x64xf32; pto.tload ins(%p) outs(%t); pto.tstore ins(%t) outs(%y)
"""
_LISTED = Word(Layout.LIST, "i*", required=True)


@declare(
    "pto.make_tensor_view",
    Form("g", "w", Typing.RESULT, words={"shape": _LISTED, "strides": _LISTED}, family="tensor_view"),
    rule=_is_view,
    is_by_bytes=True,
    example=_WINDOW,
    means="y = x[2:6]",
)
def _make_view(m: Machine, op: Op, pointer: Pointer) -> View:
    """A pointer under a shape and strides."""
    return View(pointer, m.clause(op, "shape") or (), m.clause(op, "strides") or ())


def _is_part(op: Op, constants: Constants) -> None:
    view, part = op.operands[0].of(TensorView), op.results[0].of(TensorView)
    offsets, sizes = op.clause("offsets") or (), op.clause("sizes") or ()
    if len(offsets) != len(sizes):
        raise PtoOperandError(f"{len(offsets)} offsets but {len(sizes)} sizes")
    if not _has_rank(view, len(sizes)):
        raise PtoOperandError(f"{len(sizes)} sizes for {view}", help="give one for each of its extents")
    if not _has_rank(part, len(sizes)):
        raise PtoOperandError(f"{len(sizes)} sizes make no {part}", help="the result has one extent for each size")
    equal(op, "element type", part.element, view.element)
    _refuse_extents(op, "size", sizes, _dims(part, len(sizes)), constants)
    rows = zip(offsets, sizes, _dims(view, len(sizes)), strict=True)
    for axis, (offset, size, extent) in enumerate(rows):
        first, count = constants.get(offset, 0), constants.get(size, 0)
        if first < 0 or (extent is not None and first + count > extent):
            message = f"elements {first} to {first + count} of axis {axis} do not lie in a view of {extent or '?'}"
            raise PtoOperandError(message, help="the first element is 0, and the last lies inside the view")


def _partition_of(op: Op, constants: Constants) -> Type:
    """Return the type that text may leave out: what the sizes of a partition make of its view."""
    view = op.operands[0].type
    if not isinstance(view, TensorView):
        return view
    sizes = (constants.get(size) for size in op.clause("sizes") or ())
    dims = tuple(size if size is not None and size >= 0 else None for size in sizes)
    return TensorView(dims or (None,), view.element, partition=True)


@declare(
    "pto.partition_view",
    Form("y", "q", words={"offsets": _LISTED, "sizes": _LISTED}, family="partition_tensor_view"),
    rule=_is_part,
    left_out=_partition_of,
    is_by_bytes=True,
    example=_WINDOW,
    means="y = x[2:6]",
)
def _partition(m: Machine, op: Op, view: View) -> View:
    """A window of a view."""
    offsets, sizes = m.clause(op, "offsets") or (), m.clause(op, "sizes") or ()
    start = m.b.index(0)
    for offset, stride in zip(offsets, view.strides, strict=True):
        start = m.b.add(start, product(m, offset, stride))
    return View(moved(m, view.pointer, start), sizes, view.strides)


@declare(
    "pto.get_tensor_view_dim get_tensor_view_stride",
    Form("yi", "i", untyped=1),
    is_by_bytes=True,
    example="(%x: w8x64xf32); %r = {op} %x, %c1 -> index",
    means={"get_tensor_view_dim": "x.shape[1]", "get_tensor_view_stride": "x.strides[1] // 4"},
)
def _measure(m: Machine, op: Op, view: View, axis: Expr) -> Expr:
    """An extent or a stride of a view."""
    number = known(axis)
    if number is None or not 0 <= number < len(view.shape):
        got = "one that varies" if number is None else number
        help = f"axes are 0 to {len(view.shape) - 1}"
        raise AttributeValueError(f"`{op.name}` takes the constant number of an axis, got {got}", help=help)
    found = view.shape if op.name.endswith("dim") else view.strides
    return m.b.cast(found[number], op.results[0].of(Scalar).dtype)


def _pointer_of(op: Op) -> Type:
    return Ptr(element_type(op.operands[0].type))


@declare(
    "pto.tensor_view_addr",
    Form("y", "p", family="ptr"),
    rule=gives(_pointer_of),
    is_by_bytes=True,
    example="(%x: w8x64xf32); %p = {op} %x -> !pto.ptr<f32, gm>; %r = pto.load_scalar %p[%c3] -> f32",
    means="r = x.ravel()[3]",
)
def _start(m: Machine, op: Op, view: View) -> Pointer:
    """The address of a view's first element."""
    return view.pointer
