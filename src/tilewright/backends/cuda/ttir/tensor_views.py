"""Tensor views: the elements of a tensor where they lie, seen through another shape.

Where the running kernel finds that there is no such view, it is an error, and nothing of what is given is valid.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tilewright.backends.cuda.ttir import extents
from tilewright.backends.cuda.ttir.addresses import place
from tilewright.backends.cuda.ttir.kernel import Kernel
from tilewright.backends.cuda.ttir.recipes import Bound, recipe
from tilewright.backends.cuda.ttir.text import Value
from tilewright.backends.cuda.ttir.values import Extent, Tensor
from tilewright.core.enums import TensorLayout
from tilewright.core.expr import Call
from tilewright.core.types import TensorType, swapped
from tilewright.ops.lanes import AXES, half
from tilewright.ops.reshape import RESHAPED, Of, Part, aligned, part_of


def _view_of(tensor: Tensor, **changes: Any) -> Tensor:
    """Return a tensor with something else about it: no descriptor of the host's is one of a view."""
    return replace(tensor, planes=None, **changes)


def packed_strides(k: Kernel, shape: Sequence[Extent]) -> tuple[Extent, ...]:
    """Return how far elements of a shape are apart that lie one after the other."""
    found: list[Extent] = [1]
    for extent in reversed(shape[1:]):
        found.append(extents.times(k.t, found[-1], extent))
    return tuple(reversed(found)) if shape else ()


def lie_at(k: Kernel, tensor: Tensor, strides: Sequence[Extent]) -> Value | None:
    """Return whether elements are so far apart, along axes that have more than one; None where that is certain."""
    t, found = k.t, None
    for extent, have, want in zip(tensor.shape, tensor.strides, strides, strict=True):
        if have != want and extent != 1:
            same = t.compare("cmpi eq", extents.held(t, have), extents.held(t, want))
            single = t.compare("cmpi sle", extents.held(t, extent), t.integer(1))
            found = _both(k, found, t.simple("arith.ori", same, single))
    return found


def _both(k: Kernel, first: Value | None, second: Value) -> Value:
    return second if first is None else k.t.simple("arith.andi", first, second)


def kept(k: Kernel, call: Call, fits: Value | None, view: Tensor, message: str) -> Tensor:
    """Return a view; where it does not fit that is an error, and the view is empty."""
    if fits is None or not k.checked:
        return view
    t = k.t
    k.fail(t.simple("arith.xori", fits, t.constant("true", "i1")), message, call.span)
    shape, valid = (
        tuple(t.select(fits, extents.held(t, extent), t.integer(0)) for extent in each)
        for each in (view.shape, view.valid)
    )
    return _view_of(view, shape=shape, valid=valid)


@recipe("tensor.reshape")
def _reshape(k: Kernel, call: Call, bound: Bound) -> Tensor:
    source, source_type = bound["x"], call.args[0].type
    assert isinstance(call.type, TensorType) and isinstance(source_type, TensorType)
    axes = aligned(source_type.shape, call.type.shape) if source_type.valid == source_type.shape else None
    if axes is not None:
        shape, strides = (
            tuple(1 if axis is None else each[axis] for axis in axes) for each in (source.shape, source.strides)
        )
        return _view_of(source, shape=shape, strides=strides, valid=shape)
    return _reshaped(k, call, source, k.indices(bound["shape"]), part_of(source_type, call.type.shape))


def _reshaped(k: Kernel, call: Call, source: Tensor, shape: Sequence[Extent], part: Part | None) -> Tensor:
    """Return the same elements under another shape.

    Where it is not known what `part` of them is then valid, they must all be.
    """
    fits = lie_at(k, source, packed_strides(k, source.shape))
    pairs = [(_count(k, source.shape), _count(k, shape))]
    if part is None:
        pairs += zip(source.valid, source.shape, strict=True)
    for a, b in pairs:
        if a != b:
            fits = _both(k, fits, k.t.compare("cmpi eq", extents.held(k.t, a), extents.held(k.t, b)))
    valid = tuple(shape) if part is None else carried(k, source.valid, part)
    view = Tensor(source.pointer, tuple(shape), packed_strides(k, shape), valid, source.dtype, source.root)
    message = f"this value is strided, partly valid or of another size: it cannot be reshaped\n{RESHAPED}"
    return kept(k, call, fits, view, message)


def _count(k: Kernel, shape: Sequence[Extent]) -> Extent:
    found: Extent = 1
    for extent in shape:
        found = extents.times(k.t, found, extent)
    return found


def carried(k: Kernel, valid: Sequence[Extent], part: Part) -> tuple[Extent, ...]:
    """Return what is valid of a reshaped value."""
    return tuple(extents.times(k.t, valid[n.axis], n.times) if isinstance(n, Of) else n for n in part)


def turned(source: Tensor, first: int, second: int) -> Tensor:
    """Return a view with two axes swapped."""
    shape, strides, valid = (swapped(each, first, second) for each in (source.shape, source.strides, source.valid))
    return _view_of(source, shape=shape, strides=strides, valid=valid)


@recipe("tensor.transpose")
def _transpose(k: Kernel, call: Call, bound: Bound) -> Tensor:
    return turned(bound["x"], int(bound["axis1"]), int(bound["axis2"]))


@recipe("tensor.view")
def _view(k: Kernel, call: Call, bound: Bound) -> Tensor:
    """Write the memory of a tensor in the order of another layout and shape."""
    type_, source_type, source = call.type, call.args[0].type, bound["tensor"]
    assert isinstance(type_, TensorType) and isinstance(source_type, TensorType)
    layouts = source_type.layout, type_.layout
    if bound["shape"] is None:
        view = source if layouts[0] is layouts[1] else turned(source, -1, -2)
    else:
        shape = k.indices(bound["shape"])
        in_memory = shape if layouts[1] is TensorLayout.ND else [*shape[:-2], shape[-1], shape[-2]]
        base = source if layouts[0] is TensorLayout.ND else turned(source, -1, -2)
        view = _reshaped(k, call, _view_of(base, valid=base.shape), in_memory, None)
        view = view if layouts[1] is TensorLayout.ND else turned(view, -1, -2)
    if bound["valid_shape"] is None:
        return view
    asked = k.indices(bound["valid_shape"])
    if bound["shape"] is not None and source_type.valid != source_type.shape:
        have, want = (extents.held(k.t, _count(k, each)) for each in (source.valid, asked))
        k.fail(k.t.compare("cmpi ne", have, want), "a view is valid in other elements than its tensor", call.span)
    return _view_of(view, valid=_cut(k, call, asked, view.shape))


def _cut(k: Kernel, call: Call, wanted: Sequence[Extent], shape: Sequence[Extent]) -> tuple[Extent, ...]:
    """Return valid extents; one that does not fit is an error, and cut."""
    for want, extent in zip(wanted, shape, strict=True):
        if not (isinstance(want, int) and isinstance(extent, int)):
            beyond = k.t.compare("cmpi ugt", extents.held(k.t, want), extents.held(k.t, extent))
            k.fail(beyond, "a valid part does not fit its tensor", call.span)
    return tuple(
        extents.most(k.t, 0, extents.least(k.t, want, extent)) for want, extent in zip(wanted, shape, strict=True)
    )


@recipe("tensor.set_validshape")
def _set_validshape(k: Kernel, call: Call, bound: Bound) -> Tensor:
    source: Tensor = bound["x"]
    last = _cut(k, call, k.indices([bound["valid_rows"], bound["valid_cols"]]), source.shape[-2:])
    return _view_of(source, valid=(*source.valid[:-2], *last))


@recipe("tensor.aiv_shard")
def _shard(k: Kernel, call: Call, bound: Bound) -> Tensor:
    """Write the half of a tensor that belongs to a lane."""
    source, split, lane = bound["x"], bound["split"], bound["lane"]
    if not split:
        return source
    axis, shape, valid, starts = AXES[split], [*source.shape], [*source.valid], [0, 0]
    size = half(shape[axis], split, lane)
    starts[axis], shape[axis] = lane * size, size
    valid[axis] = extents.most(k.t, 0, extents.least(k.t, extents.minus(k.t, valid[axis], starts[axis]), size))
    return _view_of(source, pointer=place(k, source, starts), shape=tuple(shape), valid=tuple(valid))
