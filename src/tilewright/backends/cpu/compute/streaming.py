"""Streaming: large outputs written past the caches, where they would only push out what is read again."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from tilewright.backends.cpu.emit.function import FunctionEmitter
from tilewright.backends.cpu.emit.values import Tensor, static
from tilewright.native.llvm import Builder, Value, i64

LINE = 64
"""Bytes of a cache line."""
STREAMED = 4 << 20
"""Bytes from which on an output is written past the caches, on any processor and any number of threads.

Two matrices of 64 MB are added in 2.95 ms on one core of a Zen 5, in 4.3 where lines are read before they are written,
and two of 8 MB, which its caches hold, in 0.20 and 0.27. Of 2 MB both take the same. Two of
0.4 MB, with their sum a little more than its second cache holds, take 8.6 us plainly, 9.5 past the caches and 9.1 to
9.5 with hints to fetch.
"""
UNKNOWN = 1 << 40
"""More bytes than any memory has: what a pointer leads to of which nobody said how much that is."""


def emit_streaming(e: FunctionEmitter, pays: Value | None, emit: Callable[[bool], None]) -> None:
    """Emit a loop that writes past the caches where that pays, and plainly; None: it never does."""
    if pays is None:
        emit(False)
        return
    with e.b.when(pays):
        emit(True)
    with e.b.when(e.negated(pays)):
        emit(False)


def streaming_pays(e: FunctionEmitter, tensor: Tensor, begin: Value, width: int | None) -> Value | None:
    """Return whether rows of some elements, the first at an address, are whole lines of a large tensor.

    None: they surely are not.
    """
    whole = width is not None and width * tensor.dtype.get_byte() % LINE == 0
    return lines_pay(e, tensor, begin, tensor.strides[:-1]) if whole else None


def lines_pay(e: FunctionEmitter, tensor: Tensor, begin: Value, strides: Sequence[Value]) -> Value | None:
    """Return whether lines of rows, the first at an address, go to a tensor large and aligned enough; None: never.

    `strides` lie between those rows.
    """
    b, size = e.b, tensor.dtype.get_byte()
    if e.lanes < 8 or tensor.dtype.bits != 8 * size or tensor.strides[-1] != i64(1):
        return None
    if is_small(tensor):
        return None
    bits = b.value("i64", f"ptrtoint {begin} to i64")
    for stride in strides:
        bits = b.op("or", bits, b.op("mul", stride, i64(size)))
    aligned = b.compare("icmp eq", b.op("and", bits, i64(LINE - 1)), i64(0))
    return b.op("and", aligned, _is_large(b, tensor))


def _is_large(b: Builder, tensor: Tensor) -> Value:
    """Return whether a tensor, or the memory that it is a window of, takes many bytes, as far as anybody knows."""
    if tensor.around is not None:
        return b.compare("icmp ult", b.op("sub", tensor.around, i64(STREAMED)), i64(UNKNOWN - STREAMED))
    count: Value = i64(tensor.dtype.get_byte())
    for extent in tensor.shape:
        count = b.op("mul", count, extent)
    return b.compare("icmp sge", count, i64(STREAMED))


def is_small(tensor: Tensor) -> bool:
    """Return whether a tensor is known to leave room in the caches."""
    if tensor.around is not None:
        return (static(tensor.around) or STREAMED) < STREAMED
    known = [extent for extent in map(static, tensor.shape) if extent is not None]
    return len(known) == len(tensor.shape) and math.prod(known) * tensor.dtype.get_byte() < STREAMED


def store_past_caches(b: Builder, value: Value, pointer: Value, nbytes: int) -> None:
    """Emit the store of a vector, aligned to its size or to a line, that leaves no trace in the caches."""
    b.module.declare("!0 = !{i32 1}")
    b.module.streams = True
    b.store(value, pointer, min(nbytes, LINE), ", !nontemporal !0")
