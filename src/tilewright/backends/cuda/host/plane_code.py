"""Plane code: how far the planes of a tensor are apart, counted in rows, as the host finds it when it starts a kernel.

That is a number of rows where strides are multiples of each other, as they are where tensors lie whole in memory.
"""

from __future__ import annotations

from tilewright.backends.cpu.emit.function import FunctionEmitter
from tilewright.backends.cuda.ttir.parameters import Axis, Parameters, Plane
from tilewright.native import llvm
from tilewright.native.llvm import i64

COUNTED = 31
"""Bits of a number of rows."""


def settle(e: FunctionEmitter, params: Parameters) -> None:
    """Emit what a kernel is told of how far planes are apart."""
    for axis in sorted(params.axes, key=str):
        params.settle(axis.apart, _apart(e, axis)[0])


def rows_of(e: FunctionEmitter, plane: Plane) -> tuple[llvm.Value, llvm.Value]:
    """Emit how many rows all planes have, with what lies between them, and bits, some set where that is no number."""
    b, rows, bad = e.b, plane.rows, i64(0)
    for axis in plane.axes:
        apart, wrong = _apart(e, axis)
        rows = b.op("add", rows, b.op("mul", b.op("sub", axis.count, i64(1)), apart))
        bad = b.op("or", bad, wrong)
    return rows, bad


def _apart(e: FunctionEmitter, axis: Axis) -> tuple[llvm.Value, llvm.Value]:
    """Emit how many rows a plane is from the next, and bits as above; a single plane may have any stride."""
    b = e.b
    is_flat = b.compare("icmp eq", axis.row_stride, i64(0))
    row = b.select(is_flat, i64(1), axis.row_stride)
    stride = b.select(b.compare("icmp sle", axis.count, i64(1)), i64(0), axis.stride)
    apart = b.op("udiv", stride, row)
    left = b.op("sub", stride, b.op("mul", apart, row))
    far = b.op("lshr", apart, i64(COUNTED))
    return apart, b.op("or", b.op("or", left, far), b.convert("zext", is_flat, llvm.I64))
