"""Views: tensors under other shapes, parts of them, and their axes in another order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tilewright.core.enums import TensorLayout
from tilewright.core.expr import Call
from tilewright.core.types import TensorType
from tilewright.dtypes import INDEX, UINT8, DataType
from tilewright.ops.reshape import Part, aligned, part_of
from tilewright.programs.pto_text.scalars import computed, converted
from tilewright.programs.pto_text.values import Number, Tensor, element, kept
from tilewright.programs.pto_text.words import Given, least, refuse, within, writes
from tilewright.programs.pto_text.writer import Writer


@writes("tensor.dim")
def _dim(w: Writer, call: Call, given: Given) -> Number:
    tensor: Tensor = given["tensor"]
    axis: int = given["axis"]
    return (tensor.valid if given["valid"] else tensor.shape)[axis]


@writes("tensor.slice")
def _slice(w: Writer, call: Call, given: Given) -> Tensor:
    tensor: Tensor = given["x"]
    refuse(call, len(given["offset"]) != len(tensor.shape), "of fewer axes")
    offsets = tuple(computed(w, "add", [a, b], INDEX) for a, b in zip(tensor.offsets, given["offset"], strict=True))
    left = [computed(w, "sub", [n, at], INDEX) for n, at in zip(tensor.shape, given["offset"], strict=True)]
    shape = tuple(least(w, rest, size) for rest, size in zip(left, given["shape"], strict=True))
    window = replace(tensor, shape=shape, offsets=offsets, is_whole=False, part=_left(w, tensor, given, shape))
    return _without(w, window, given["drop_dims"]) if given["drop_dims"] else window


def _left(w: Writer, tensor: Tensor, given: Given, shape: Sequence[Number]) -> tuple[Number, ...]:
    """Write how much of a window is valid, nothing where that is all of it."""
    if given["valid_shape"] is None and not tensor.part:
        return ()
    pairs = zip(tensor.valid, given["offset"], strict=True)
    left = [computed(w, "sub", [have, at], INDEX) for have, at in pairs]
    wanted = [least(w, size, extent) for size, extent in zip(given["valid_shape"] or shape, shape, strict=True)]
    return tuple(within(w, rest, size) for rest, size in zip(left, wanted, strict=True))


@writes("tensor.set_validshape")
def _set_valid(w: Writer, call: Call, given: Given) -> Tensor:
    tensor: Tensor = given["x"]
    last = (converted(w, given[name], INDEX) for name in ("valid_rows", "valid_cols"))
    return replace(tensor, part=(*tensor.valid[:-2], *last))


@writes("tensor.transpose")
def _transposed(w: Writer, call: Call, given: Given) -> Tensor:
    """Write the view of a tensor with two axes swapped."""
    tensor: Tensor = given["x"]
    order = [*range(len(tensor.shape))]
    first, second = given["axis1"] % len(order), given["axis2"] % len(order)
    order[first], order[second] = order[second], order[first]
    return _ordered(w, tensor, order, "turned")


def _ordered(w: Writer, tensor: Tensor, order: Sequence[int], hint: str) -> Tensor:
    """Write the view of a window that has some of its axes, in some order."""
    shape, strides = ([each[axis] for axis in order] for each in (tensor.shape, tensor.strides))
    part = tuple(tensor.part[axis] for axis in order if tensor.part)
    return replace(w.view(hint, tensor.dtype, start_of(w, tensor), shape, strides), part=part)


@writes("tensor.strided")
def _strided(w: Writer, call: Call, given: Given) -> Tensor:
    tensor: Tensor = given["x"]
    steps = [w.constant(step) for step in given["steps"]]
    shape, part = (_counted(w, extents, given["steps"]) for extents in (tensor.shape, tensor.part))
    strides = [computed(w, "mul", [by, step], INDEX) for by, step in zip(tensor.strides, steps, strict=True)]
    return replace(w.view("part", tensor.dtype, start_of(w, tensor), shape, strides), part=part)


def _counted(w: Writer, extents: Sequence[Number], steps: Sequence[int]) -> tuple[Number, ...]:
    """Write how many elements there are along each axis, so many steps from one to the next."""
    pairs = [(extent, w.constant(step)) for extent, step in zip(extents, steps, strict=False)]
    last = [
        computed(w, "add", [extent, computed(w, "sub", [step, w.constant(1)], INDEX)], INDEX) for extent, step in pairs
    ]
    return tuple(computed(w, "floordiv", [n, step], INDEX) for n, (_, step) in zip(last, pairs, strict=True))


def _without(w: Writer, tensor: Tensor, axes: Sequence[int]) -> Tensor:
    """Write the view of a window without some of its axes."""
    kept = [axis for axis in range(len(tensor.shape)) if axis not in {each % len(tensor.shape) for each in axes}]
    return _ordered(w, tensor, kept, "part")


def start_of(w: Writer, tensor: Tensor) -> str:
    """Write a pointer to the first element of a window; return its name."""
    kind, pointer = f"!pto.ptr<{element(tensor.dtype)}, gm>", w.name("start")
    w.line(f"{pointer} = pto.addptr {tensor.pointer}, {before_of(w, tensor).name} : {kind} -> {kind}")
    return pointer


def before_of(w: Writer, tensor: Tensor) -> Number:
    """Write how many elements lie before the first one of a window."""
    before = w.constant(0)
    for first, stride in zip(tensor.offsets, tensor.strides, strict=True):
        before = computed(w, "add", [before, computed(w, "mul", [first, stride], INDEX)], INDEX)
    return before


@writes("tensor.reshape")
def _reshape(w: Writer, call: Call, given: Given) -> Tensor:
    tensor: Tensor = given["x"]
    source, type_ = call.args[0].type, call.type
    assert isinstance(source, TensorType) and isinstance(type_, TensorType)
    axes = None if _is_packed(tensor) else aligned(source.shape, type_.shape)
    refuse(call, axes is None and not _is_packed(tensor), "of a window whose elements do not follow each other")
    refuse(call, any(extent.known == -1 for extent in given["shape"]), "with an extent to be found")
    part = live_part(w, part_of(source, type_.shape), tensor.part) if tensor.part else ()
    refuse(call, bool(tensor.part) and not part, "of a tensor of which only the run knows how much is valid")
    if axes is None:
        pointer = tensor.pointer if tensor.is_whole else start_of(w, tensor)
        return replace(w.view(tensor.view[1:], tensor.dtype, pointer, given["shape"]), part=part)
    strides = [w.constant(1) if axis is None else tensor.strides[axis] for axis in axes]
    return replace(w.view("part", tensor.dtype, start_of(w, tensor), given["shape"], strides), part=part)


def live_part(w: Writer, part: Part | None, valid: Sequence[Number]) -> tuple[Number, ...]:
    """Write how much of a reshaped value is valid, which has so much valid before; nothing where nobody knows."""
    return tuple(
        w.constant(extent)
        if isinstance(extent, int)
        else computed(w, "mul", [valid[extent.axis], w.constant(extent.times)], INDEX)
        for extent in part or ()
    )


def _is_packed(tensor: Tensor) -> bool:
    """Return whether the elements of a tensor are known to lie one after the other."""
    if tensor.is_whole:
        return True
    step: int | float | None = 1
    for extent, stride in zip(tensor.shape[::-1], tensor.strides[::-1], strict=True):
        if extent.known == 1:
            continue
        if step is None or stride.known != step:
            return False
        step = None if extent.known is None else step * extent.known
    return True


@writes("tensor.view")
def _view(w: Writer, call: Call, given: Given) -> Tensor:
    """Write a tensor's memory under another shape, or its last two axes swapped."""
    tensor: Tensor = given["tensor"]
    source, type_ = call.args[0].type, call.type
    assert isinstance(source, TensorType) and isinstance(type_, TensorType)
    if given["shape"] is None:
        view = tensor if source.layout is type_.layout else _swapped(w, tensor)
        return view if given["valid_shape"] is None else replace(view, part=(*given["valid_shape"],))
    refuse(call, not tensor.is_whole or source.layout is not TensorLayout.ND, "of a window")
    shape = [*given["shape"]]
    part = tuple(given["valid_shape"] or ())
    if type_.layout is TensorLayout.ND:
        return replace(w.view(tensor.view[1:], tensor.dtype, tensor.pointer, shape), part=part)
    *outer, columns, rows = shape
    turned = _swapped(w, w.view(tensor.view[1:], tensor.dtype, tensor.pointer, [*outer, rows, columns]))
    return replace(turned, part=part)


def _swapped(w: Writer, tensor: Tensor) -> Tensor:
    *outer, rows, columns = range(len(tensor.shape))
    return _ordered(w, tensor, [*outer, columns, rows], "turned")


@writes("tensor.as_strided")
def _bytes(w: Writer, call: Call, given: Given) -> Tensor:
    """Write the bytes of a buffer, from one on, as elements of a type that lie so far apart."""
    buffer: Tensor = given["buffer"]
    dtype: DataType = kept(given["dtype"])
    first = pointer_as(w, start_of(w, buffer), buffer.dtype, UINT8)
    moved, kind = w.name("start"), f"!pto.ptr<{element(UINT8)}, gm>"
    w.line(f"{moved} = pto.addptr {first}, {given['offset'].name} : {kind} -> {kind}")
    return w.view("seen", dtype, pointer_as(w, moved, UINT8, dtype), given["shape"], given["strides"])


@writes("tensor.reinterpret_view")
def _reinterpreted(w: Writer, call: Call, given: Given) -> Tensor:
    """Write the memory of a tensor as elements of another type, more of which lie in a row where they are smaller."""
    tensor: Tensor = given["data"]
    dtype: DataType = kept(given["dtype"])
    refuse(call, not tensor.is_whole, "of a window")
    have, want = tensor.dtype.get_byte(), dtype.get_byte()
    word, factor = ("mul", have // want) if have >= want else ("floordiv", want // have)
    shape, part = (
        (*extents[:-1], *(computed(w, word, [last, w.constant(factor)], INDEX) for last in extents[-1:]))
        for extents in (tensor.shape, tensor.part)
    )
    seen = w.view("seen", dtype, pointer_as(w, tensor.pointer, tensor.dtype, dtype), given["shape"] or shape)
    return replace(seen, part=part)


def pointer_as(w: Writer, pointer: str, have: DataType, dtype: DataType) -> str:
    """Write a pointer as one to other elements; return its name."""
    if have == dtype:
        return pointer
    seen = w.name("seen")
    w.line(f"{seen} = pto.castptr {pointer} : !pto.ptr<{element(have)}, gm> -> !pto.ptr<{element(dtype)}, gm>")
    return seen
