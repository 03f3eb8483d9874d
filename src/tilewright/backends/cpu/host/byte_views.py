"""Byte views: the memory of a buffer seen through another element type, shape and strides."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.backends.cpu.compute.addresses import times
from tilewright.backends.cpu.emit.function import FunctionEmitter, lowers
from tilewright.backends.cpu.emit.handlers import Bound
from tilewright.backends.cpu.emit.stops import Exact
from tilewright.backends.cpu.emit.values import Scalar, Tensor, static
from tilewright.core.expr import Call
from tilewright.core.types import TensorType
from tilewright.native.llvm import I1, Value, i64
from tilewright.ops.bytes import outside_exactly, outside_said

WIDE = "i128"
"""Wide enough for any sum of products of extents and strides."""

LARGEST = 1 << 48
"""No extent or stride of memory is more; a negative one, read without its sign, is."""

Reach = tuple[int, int] | None


@lowers("tensor.as_strided")
def _as_strided(e: FunctionEmitter, call: Call, bound: Bound) -> Tensor:
    """Return a view; one that does not lie inside its buffer is an error, after which nothing else is done."""
    buffer: Tensor = bound["buffer"]
    assert isinstance(call.type, TensorType)
    dtype = call.type.dtype
    shape, strides, offset = e.indices(bound["shape"]), e.indices(bound["strides"]), e.index(bound["offset"])
    pointer = e.b.offset(buffer.pointer, offset, "i8")
    nbytes = times(e, buffer.shape[0], i64(buffer.dtype.get_byte()))
    view = Tensor(pointer, shape, strides, shape, dtype, buffer.root, nbytes)
    if not e.checked or _surely_inside(bound, static(nbytes), dtype.get_byte()):
        return view
    fits, end = _inside(e, (offset, shape, strides), nbytes, dtype.get_byte())
    if static(buffer.strides[0]) != 1:
        fits = e.b.op("and", fits, e.b.compare("icmp eq", buffer.strides[0], i64(1)))
    outside = e.negated(fits)
    e.fail(outside, outside_said(call), call, Exact(outside_exactly(call), lambda: (offset, end, nbytes)))
    with e.b.when(outside):
        e.leave(e.exit)
    return view


def _surely_inside(bound: Bound, nbytes: int | None, size: int) -> bool:
    """Return whether what is known of its numbers shows that a view lies inside its buffer."""
    (low, end) = _reach(bound["offset"]) or (-1, 0)
    for n, stride in zip(bound["shape"], bound["strides"], strict=True):
        extents, steps = _reach(n), _reach(stride)
        if extents is None or steps is None or extents[0] < 0 or steps[0] < 0:
            return False
        end += max(extents[1] - 1, 0) * steps[1] * size
    return nbytes is not None and low >= 0 and end + size <= nbytes


def _reach(scalar: Scalar) -> Reach:
    known = static(scalar.value)
    return (known, known) if known is not None else scalar.reach


def _inside(
    e: FunctionEmitter, place: tuple[Value, Sequence[Value], Sequence[Value]], nbytes: Value, size: int
) -> tuple[Value, Value]:
    """Return whether a view lies inside its buffer, and the byte behind its last."""
    offset, shape, strides = place
    fits, empty = e.b.compare("icmp sge", offset, i64(0)), Value(I1, "false")
    last: Value = Value(WIDE, "0")
    for extent, stride in zip(shape, strides, strict=True):
        for number in (extent, stride):
            if (static(number) or 0) < 0 or static(number) is None:
                fits = e.b.op("and", fits, e.b.compare("icmp ule", number, i64(LARGEST)))
        if static(extent) is None or static(extent) == 0:
            empty = e.b.op("or", empty, e.b.compare("icmp eq", extent, i64(0)))
        step = e.b.op("mul", _wide(e, e.b.op("sub", extent, i64(1))), _wide(e, stride))
        last = e.b.op("add", last, step)
    taken = e.b.op("mul", e.b.op("add", last, Value(WIDE, "1")), Value(WIDE, str(size)))
    end = e.b.op("add", taken, _wide(e, offset))
    within = e.b.compare("icmp sle", end, _wide(e, nbytes))
    return e.b.op("and", fits, e.b.op("or", within, empty)), e.b.convert("trunc", end, "i64")


def _wide(e: FunctionEmitter, value: Value) -> Value:
    known = static(value)
    return Value(WIDE, str(known)) if known is not None else e.b.convert("sext", value, WIDE)
