"""Tensor views: the elements of a tensor where they lie, seen through another shape."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

from tilewright.backends.cpu.compute.addresses import moved, packed_strides, times
from tilewright.backends.cpu.compute.copies import SLICE, inside, misfit
from tilewright.backends.cpu.compute.views import carried, counted
from tilewright.backends.cpu.emit.function import FunctionEmitter, lowers
from tilewright.backends.cpu.emit.handlers import Bound
from tilewright.backends.cpu.emit.stops import Exact
from tilewright.backends.cpu.emit.values import Tensor, static
from tilewright.backends.cpu.host.tensors import extents_of, new_tensor
from tilewright.core.enums import TensorLayout
from tilewright.core.expr import Call
from tilewright.core.types import TensorType, swapped
from tilewright.native.llvm import I1, I64, PTR, Value, i64
from tilewright.ops.lanes import AXES, half
from tilewright.ops.reshape import RESHAPED, Part, aligned, part_of
from tilewright.ops.windows import CUT


def guarded(e: FunctionEmitter, fits: Value, tensor: Tensor, type_: TensorType) -> Tensor:
    """Return a tensor or, where it does not fit its type, another one that does and holds nothing."""
    pointer, b = e.b.slot(PTR), e.b
    extents = extents_of(type_)
    cells = [b.slot(I64) for _ in tensor.strides]
    b.store(tensor.pointer, pointer, 8)
    for cell, stride in zip(cells, tensor.strides, strict=True):
        b.store(stride, cell, 8)
    with b.when(e.negated(fits)):
        other = new_tensor(e, [i64(extent or 0) for extent in extents], tensor.dtype, clear=True)
        b.store(other.pointer, pointer, 8)
        for cell, stride in zip(cells, other.strides, strict=True):
            b.store(stride, cell, 8)

    def known(values: Sequence[Value]) -> tuple[Value, ...]:
        pairs = zip(values, extents, strict=True)
        return tuple(i64(n) if n is not None else b.select(fits, value, i64(0)) for value, n in pairs)

    strides = [b.load(I64, cell, 8) for cell in cells]
    if strides and static(tensor.strides[-1]) == 1:
        strides[-1] = i64(1)
    shape = known(tensor.shape)
    valid = shape if tensor.valid == tensor.shape else _within(e, tensor.valid, shape, fits)
    return Tensor(b.load(PTR, pointer, 8), shape, tuple(strides), valid, tensor.dtype, tensor.root)


def _within(e: FunctionEmitter, valid: Sequence[Value], shape: Sequence[Value], fits: Value) -> tuple[Value, ...]:
    kept = (v if static(v) is not None else e.b.select(fits, v, i64(0)) for v in valid)
    return tuple(e.b.intrinsic("llvm.smin", v, extent) for v, extent in zip(kept, shape, strict=True))


@lowers("tensor.slice")
def _slice(e: FunctionEmitter, call: Call, bound: Bound) -> Tensor:
    """Return a window; one that does not fit is an error and replaced, a clamped one ends where its source does."""
    source: Tensor = bound["x"]
    starts, sizes = e.indices(bound["offset"]), e.indices(bound["shape"])
    wanted = e.indices(bound["valid_shape"]) if bound["valid_shape"] is not None else sizes
    if bound["clamp"]:
        window = _clamped(e, call, source, starts, sizes)
    else:
        window = _checked(e, call, source, starts, sizes)
    valid = [
        _least(e, want, size, _less(e, have, start))
        for want, size, have, start in zip(
            _asked(e, call, wanted, sizes), window.shape, source.valid, starts, strict=True
        )
    ]
    if source.valid == source.shape and wanted == sizes:
        valid = list(window.shape)
    dropped = {axis % len(sizes) for axis in bound["drop_dims"] or ()}
    kept = [axis for axis in range(len(sizes)) if axis not in dropped]
    shape, strides, live = (tuple(values[a] for a in kept) for values in (window.shape, window.strides, valid))
    return Tensor(window.pointer, shape, strides, live, source.dtype, source.root)


def _checked(e: FunctionEmitter, call: Call, source: Tensor, starts: Sequence[Value], sizes: Sequence[Value]) -> Tensor:
    fits = inside(e, starts, sizes, source.shape)
    for size in sizes if e.checked else ():
        if (static(size) or 0) < 0 or static(size) is None:
            positive = e.b.compare("icmp sge", size, i64(0))
            fits = positive if fits is None else e.b.op("and", fits, positive)
    window = Tensor(moved(e, source, starts), tuple(sizes), source.strides, tuple(sizes), source.dtype, source.root)
    if fits is None:
        return window
    exact = misfit(e, SLICE, starts, sizes, source.shape)
    e.fail(e.negated(fits), f"a slice does not fit its tensor\n{CUT}", call, exact)
    return guarded(e, fits, window, TensorType(tuple(map(static, sizes)), source.dtype, tuple(map(static, sizes))))


def _clamped(e: FunctionEmitter, call: Call, source: Tensor, starts: Sequence[Value], sizes: Sequence[Value]) -> Tensor:
    first: list[Value] = []
    shape: list[Value] = []
    for start, size, extent in zip(starts, sizes, source.shape, strict=True):
        cut = e.b.intrinsic("llvm.smin", start, extent)
        if e.checked:
            bad = e.b.op("or", e.b.compare("icmp slt", start, i64(0)), e.b.compare("icmp slt", size, i64(0)))
            e.fail(bad, "a slice starts before its tensor", call)
            cut = e.b.select(bad, extent, cut)
        first.append(cut)
        shape.append(_least(e, size, e.b.op("sub", extent, cut)))
    return Tensor(moved(e, source, first), tuple(shape), source.strides, tuple(shape), source.dtype, source.root)


def _asked(e: FunctionEmitter, call: Call, wanted: Sequence[Value], sizes: Sequence[Value]) -> Sequence[Value]:
    for want, size in zip(wanted, sizes, strict=True):
        if want != size and (static(want) is None or static(size) is None):
            exact = Exact("a valid part of {0} does not fit {1}", lambda want=want, size=size: (want, size))
            e.fail(e.b.compare("icmp ugt", want, size), "a valid part does not fit its slice", call, exact)
    return wanted


def _least(e: FunctionEmitter, *values: Value) -> Value:
    """Return the smallest of some numbers, at least zero."""
    known = [static(v) for v in values]
    if all(k is not None for k in known):
        return i64(max(0, min(k or 0 for k in known)))
    least = values[0]
    for value in values[1:]:
        least = least if value == least else e.b.intrinsic("llvm.smin", least, value)
    return e.b.intrinsic("llvm.smax", least, i64(0))


def _less(e: FunctionEmitter, a: Value, b: Value) -> Value:
    known = static(a), static(b)
    if known[0] is not None and known[1] is not None:
        return i64(known[0] - known[1])
    return a if known[1] == 0 else e.b.op("sub", a, b)


@lowers("tensor.aiv_shard")
def _shard(e: FunctionEmitter, call: Call, bound: Bound) -> Tensor:
    """Return the half of a tensor that belongs to a lane."""
    source, split, lane = bound["x"], bound["split"], bound["lane"]
    if not split:
        return source
    axis, shape, valid, starts = AXES[split], [*source.shape], [*source.valid], [i64(0), i64(0)]
    size = half(static(shape[axis]) or 0, split, lane)
    starts[axis], shape[axis] = i64(lane * size), i64(size)
    valid[axis] = _least(e, _less(e, valid[axis], starts[axis]), shape[axis])
    pointer = moved(e, source, starts)
    return Tensor(pointer, tuple(shape), source.strides, tuple(valid), source.dtype, source.root)


@lowers("tensor.transpose")
def _transpose(e: FunctionEmitter, call: Call, bound: Bound) -> Tensor:
    return turned(bound["x"], bound["axis1"], bound["axis2"])


def turned(source: Tensor, axis1: int, axis2: int) -> Tensor:
    """Return a view with two axes swapped."""
    extents = source.shape, source.strides, source.valid
    shape, strides, valid = (swapped(values, axis1, axis2) for values in extents)
    return Tensor(source.pointer, shape, strides, valid, source.dtype, source.root)


@lowers("tensor.strided")
def _strided(e: FunctionEmitter, call: Call, bound: Bound) -> Tensor:
    source, steps = bound["x"], bound["steps"]
    strides = tuple(times(e, stride, i64(step)) for stride, step in zip(source.strides, steps, strict=True))
    shape, valid = (counted(e, extents, steps) for extents in (source.shape, source.valid))
    return Tensor(source.pointer, shape, strides, valid, source.dtype, source.root)


@lowers("tensor.reshape")
def _reshape(e: FunctionEmitter, call: Call, bound: Bound) -> Tensor:
    source_type = call.args[0].type
    assert isinstance(call.type, TensorType) and isinstance(source_type, TensorType)
    axes = aligned(source_type.shape, call.type.shape) if source_type.valid == source_type.shape else None
    if axes is not None:
        return _with_axes(bound["x"], axes)
    return reshaped(e, call, bound["x"], e.indices(bound["shape"]), part_of(source_type, call.type.shape), call.type)


def _with_axes(source: Tensor, axes: Sequence[int | None]) -> Tensor:
    """Return a view in which axes of one element have come or gone: its elements may lie anywhere."""
    shape, strides = (
        tuple(i64(1) if axis is None else values[axis] for axis in axes) for values in (source.shape, source.strides)
    )
    return Tensor(source.pointer, shape, strides, shape, source.dtype, source.root)


def reshaped(
    e: FunctionEmitter, call: Call, source: Tensor, shape: tuple[Value, ...], part: Part | None, type_: TensorType
) -> Tensor:
    """Return the same elements under another shape; where that is no view of them it is an error, and replaced.

    Where it is not known what `part` of them is then valid, they must all be.
    """
    strides, count = packed_strides(e, shape)
    in_place, expected = Value(I1, "true"), i64(1)
    for extent, stride in zip(reversed(source.shape), reversed(source.strides), strict=True):
        if stride != expected and static(extent) != 1:
            one = e.b.op("or", e.b.compare("icmp eq", stride, expected), e.b.compare("icmp sle", extent, i64(1)))
            in_place = e.b.op("and", in_place, one)
        expected = times(e, expected, extent)
    have, want = (source.valid, source.shape) if part is None else ((), ())
    fits = _all_same(e, (*have, count), (*want, expected), in_place)
    valid = shape if part is None else carried(e, source.valid, part)
    view = Tensor(source.pointer, shape, strides, valid, source.dtype, source.root)
    if fits.ref == "true" or not e.checked:
        return view
    e.fail(
        e.negated(fits),
        f"this value is strided, partly valid or of another size: it cannot be reshaped\n{RESHAPED}",
        call,
    )
    return guarded(e, fits, view, type_)


@lowers("tensor.view")
def _view(e: FunctionEmitter, call: Call, bound: Bound) -> Tensor:
    """Return the memory of a tensor in the order of another layout and shape."""
    type_, source_type, source = call.type, call.args[0].type, bound["tensor"]
    assert isinstance(type_, TensorType) and isinstance(source_type, TensorType)
    layouts = source_type.layout, type_.layout
    if bound["shape"] is None:
        view = source if layouts[0] is layouts[1] else turned(source, -1, -2)
    else:
        in_memory, shape = e.indices(bound["shape"]), type_.shape
        if layouts[1] is TensorLayout.DN:
            in_memory, shape = (*in_memory[:-2], in_memory[-1], in_memory[-2]), (*shape[:-2], shape[-1], shape[-2])
        base = source if layouts[0] is TensorLayout.ND else turned(source, -1, -2)
        whole = replace(base, valid=base.shape) if source_type.valid != source_type.shape else base
        view = reshaped(e, call, whole, in_memory, None, replace(type_, shape=shape, valid=shape))
        view = view if layouts[1] is TensorLayout.ND else turned(view, -1, -2)
    if bound["valid_shape"] is None:
        return view
    asked = e.indices(bound["valid_shape"])
    if bound["shape"] is not None and source_type.valid != source_type.shape:
        _check_count(e, call, source.valid, asked)
    return replace(view, valid=tuple(_cut(e, call, n, most) for n, most in zip(asked, view.shape, strict=True)))


def _check_count(e: FunctionEmitter, call: Call, have: Sequence[Value], want: Sequence[Value]) -> None:
    """Note an error where two boxes hold different numbers of elements."""
    counts = [reduce(lambda x, y: times(e, x, y), extents, i64(1)) for extents in (have, want)]
    if counts[0] != counts[1]:
        e.fail(e.b.compare("icmp ne", *counts), "a view is valid in other elements than its tensor", call)


def _all_same(e: FunctionEmitter, have: Sequence[Value], want: Sequence[Value], start: Value) -> Value:
    for a, b in zip(have, want, strict=True):
        if a != b:
            start = e.b.op("and", start, e.b.compare("icmp eq", a, b))
    return start


@lowers("tensor.set_validshape")
def _set_validshape(e: FunctionEmitter, call: Call, bound: Bound) -> Tensor:
    source: Tensor = bound["x"]
    asked = e.indices((bound["valid_rows"], bound["valid_cols"]))
    last = (_cut(e, call, want, extent) for want, extent in zip(asked, source.shape[-2:], strict=True))
    valid = (*source.valid[:-2], *last)
    return Tensor(source.pointer, source.shape, source.strides, valid, source.dtype, source.root)


def _cut(e: FunctionEmitter, call: Call, want: Value, extent: Value) -> Value:
    """Return a valid extent; one that does not fit is an error, and cut."""
    if static(want) is None or static(extent) is None:
        e.fail(e.b.compare("icmp ugt", want, extent), "a valid part does not fit its tensor", call)
    return _least(e, want, extent)
