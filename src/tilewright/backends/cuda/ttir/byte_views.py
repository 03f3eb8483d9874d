"""Byte views: the memory of a buffer seen through another element type, shape and strides."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.backends.cuda.ttir import extents
from tilewright.backends.cuda.ttir.kernel import Kernel
from tilewright.backends.cuda.ttir.recipes import Bound, recipe
from tilewright.backends.cuda.ttir.tensor_views import kept
from tilewright.backends.cuda.ttir.text import I8, Value, pointer_to
from tilewright.backends.cuda.ttir.values import Extent, Tensor, memory_element
from tilewright.core.expr import Call
from tilewright.core.types import TensorType
from tilewright.ops.bytes import outside_said


@recipe("tensor.as_strided")
def _as_strided(k: Kernel, call: Call, bound: Bound) -> Tensor:
    """Write a view; one that does not lie inside its buffer is an error, and empty."""
    t, buffer = k.t, bound["buffer"]
    assert isinstance(call.type, TensorType)
    dtype = call.type.dtype
    shape, strides = (tuple(k.indices(bound[name])) for name in ("shape", "strides"))
    offset = extents.held(t, k.index(bound["offset"]))
    nbytes = extents.held(t, extents.times(t, buffer.shape[0], buffer.dtype.get_byte()))
    fits = _inside(k, offset, shape, strides, nbytes, dtype.get_byte())
    if buffer.strides[0] != 1:
        adjacent = t.compare("cmpi eq", extents.held(t, buffer.strides[0]), t.integer(1))
        fits = t.simple("arith.andi", fits, adjacent)
    base = t.bits(buffer.pointer, pointer_to(I8))
    start = t.op(f"tt.addptr {base}, {offset} : {base.type}, i64", base.element)
    pointer = t.bits(start, pointer_to(memory_element(dtype)))
    view = Tensor(pointer, shape, strides, shape, dtype, buffer.root)
    return kept(k, call, fits, view, outside_said(call))


def _inside(
    k: Kernel, offset: Value, shape: Sequence[Extent], strides: Sequence[Extent], nbytes: Value, size: int
) -> Value:
    """Return whether a view lies inside its buffer: axis by axis, whether so many steps are left."""
    t, zero, one = k.t, k.t.integer(0), k.t.integer(1)
    sound, within, empty = (t.compare("cmpi sge", offset, zero), t.constant("true", "i1"), t.constant("false", "i1"))
    some = t.simple("arith.divsi", t.simple("arith.subi", nbytes, offset), t.integer(size))
    rest = t.simple("arith.subi", some, one)
    for extent, stride in zip(shape, strides, strict=True):
        count, step = extents.held(t, extent), extents.held(t, stride)
        for number in (count, step):
            sound = t.simple("arith.andi", sound, t.compare("cmpi sge", number, zero))
        empty = t.simple("arith.ori", empty, t.compare("cmpi eq", count, zero))
        steps = t.select(t.compare("cmpi eq", step, zero), zero, t.simple("arith.subi", count, one))
        room = t.simple("arith.divsi", rest, t.simple("arith.maxsi", step, one))  # of which no product overflows
        within = t.simple("arith.andi", within, t.compare("cmpi sle", steps, room))
        rest = t.simple("arith.subi", rest, t.simple("arith.muli", t.simple("arith.minsi", steps, room), step))
    within = t.simple("arith.andi", within, t.compare("cmpi sge", rest, zero))
    return t.simple("arith.andi", sound, t.simple("arith.ori", within, empty))
