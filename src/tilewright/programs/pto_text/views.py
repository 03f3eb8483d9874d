"""Views: tensors under other shapes, parts of them, and their axes in another order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tilewright.core.enums import TensorLayout
from tilewright.core.expr import Call
from tilewright.core.types import TensorType
from tilewright.dtypes import INDEX, UINT8, DataType
from tilewright.programs.pto_text.scalars import computed
from tilewright.programs.pto_text.values import Number, Tensor, element, kept
from tilewright.programs.pto_text.words import Given, least, refuse, writes
from tilewright.programs.pto_text.writer import Writer


@writes("tensor.dim")
def _dim(w: Writer, call: Call, given: Given) -> Number:
    tensor: Tensor = given["tensor"]
    axis: int = given["axis"]
    return tensor.shape[axis]


@writes("tensor.slice")
def _slice(w: Writer, call: Call, given: Given) -> Tensor:
    tensor: Tensor = given["x"]
    refuse(call, len(given["offset"]) != len(tensor.shape), "of fewer axes")
    refuse(call, given["valid_shape"] is not None, "with a valid shape of its own")
    offsets = tuple(computed(w, "add", [a, b], INDEX) for a, b in zip(tensor.offsets, given["offset"], strict=True))
    left = [computed(w, "sub", [n, at], INDEX) for n, at in zip(tensor.shape, given["offset"], strict=True)]
    shape = tuple(least(w, rest, size) for rest, size in zip(left, given["shape"], strict=True))
    window = replace(tensor, shape=shape, offsets=offsets, is_whole=False)
    return _without(w, window, given["drop_dims"]) if given["drop_dims"] else window


@writes("tensor.transpose")
def _transposed(w: Writer, call: Call, given: Given) -> Tensor:
    """Write the view of a tensor with two axes swapped."""
    tensor: Tensor = given["x"]
    order = [*range(len(tensor.shape))]
    first, second = given["axis1"] % len(order), given["axis2"] % len(order)
    order[first], order[second] = order[second], order[first]
    shape, strides = ([each[axis] for axis in order] for each in (tensor.shape, tensor.strides))
    return w.view("turned", tensor.dtype, start_of(w, tensor), shape, strides)


@writes("tensor.strided")
def _strided(w: Writer, call: Call, given: Given) -> Tensor:
    tensor: Tensor = given["x"]
    steps = [w.constant(step) for step in given["steps"]]
    last = [
        computed(w, "add", [n, w.constant(step - 1)], INDEX)
        for n, step in zip(tensor.shape, given["steps"], strict=True)
    ]
    shape = [computed(w, "floordiv", [n, step], INDEX) for n, step in zip(last, steps, strict=True)]
    strides = [computed(w, "mul", [by, step], INDEX) for by, step in zip(tensor.strides, steps, strict=True)]
    return w.view("part", tensor.dtype, start_of(w, tensor), shape, strides)


def _without(w: Writer, tensor: Tensor, axes: Sequence[int]) -> Tensor:
    """Write the view of a window without some of its axes."""
    kept = [axis for axis in range(len(tensor.shape)) if axis not in {each % len(tensor.shape) for each in axes}]
    rest = ([each[axis] for axis in kept] for each in (tensor.shape, tensor.strides))
    return w.view("part", tensor.dtype, start_of(w, tensor), *rest)


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
    refuse(call, not _is_packed(tensor), "of a window whose elements do not follow each other")
    refuse(call, any(extent.known == -1 for extent in given["shape"]), "with an extent to be found")
    pointer = tensor.pointer if tensor.is_whole else start_of(w, tensor)
    return w.view(tensor.view[1:], tensor.dtype, pointer, given["shape"])


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
    refuse(call, given["valid_shape"] is not None, "of which a part is valid")
    if given["shape"] is None:
        return tensor if source.layout is type_.layout else _swapped(w, tensor)
    refuse(call, not tensor.is_whole or source.layout is not TensorLayout.ND, "of a window")
    shape = [*given["shape"]]
    if type_.layout is TensorLayout.ND:
        return w.view(tensor.view[1:], tensor.dtype, tensor.pointer, shape)
    return _swapped(w, w.view(tensor.view[1:], tensor.dtype, tensor.pointer, [*shape[:-2], shape[-1], shape[-2]]))


def _swapped(w: Writer, tensor: Tensor) -> Tensor:
    shape, strides = ([*each[:-2], each[-1], each[-2]] for each in (tensor.shape, tensor.strides))
    return w.view("turned", tensor.dtype, start_of(w, tensor), shape, strides)


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
    *outer, last = tensor.shape
    have, want = tensor.dtype.get_byte(), dtype.get_byte()
    word, factor = ("mul", have // want) if have >= want else ("floordiv", want // have)
    shape = given["shape"] or [*outer, computed(w, word, [last, w.constant(factor)], INDEX)]
    return w.view("seen", dtype, pointer_as(w, tensor.pointer, tensor.dtype, dtype), shape)


def pointer_as(w: Writer, pointer: str, have: DataType, dtype: DataType) -> str:
    """Write a pointer as one to other elements; return its name."""
    if have == dtype:
        return pointer
    seen = w.name("seen")
    w.line(f"{seen} = pto.castptr {pointer} : !pto.ptr<{element(have)}, gm> -> !pto.ptr<{element(dtype)}, gm>")
    return seen
