"""Streaming: large outputs written past the caches, where they would only push out what is read again."""

from __future__ import annotations

import math
from collections.abc import Callable

from tilewright.backends.cpu.emit.function import FunctionEmitter
from tilewright.backends.cpu.emit.values import Tensor, static
from tilewright.native.llvm import Builder, Value, i64

LINE = 64
"""Bytes of a cache line."""
STREAMED = 4 << 20
"""Bytes from which on an output is written past the caches."""


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
    """Return whether rows of some elements, the first at an address, are stored to a tensor large and aligned enough.

    None: they surely are not.
    """
    b, size = e.b, tensor.dtype.get_byte()
    if (
        e.lanes < 8
        or width is None
        or width * size % LINE
        or tensor.dtype.bits != 8 * size
        or tensor.strides[-1] != i64(1)
    ):
        return None
    known = [static(extent) for extent in tensor.shape]
    if all(extent is not None for extent in known) and math.prod(e or 0 for e in known) * size < STREAMED:
        return None
    count: Value = i64(size)
    for extent in tensor.shape:
        count = b.op("mul", count, extent)
    bits = b.value("i64", f"ptrtoint {begin} to i64")
    for stride in tensor.strides[:-1]:
        bits = b.op("or", bits, b.op("mul", stride, i64(size)))
    aligned = b.compare("icmp eq", b.op("and", bits, i64(LINE - 1)), i64(0))
    return b.op("and", aligned, b.compare("icmp sge", count, i64(STREAMED)))


def store_past_caches(b: Builder, value: Value, pointer: Value, nbytes: int) -> None:
    """Emit the store of a vector, aligned to its size or to a line, that leaves no trace in the caches."""
    b.module.declare("!0 = !{i32 1}")
    b.module.streams = True
    b.store(value, pointer, min(nbytes, LINE), ", !nontemporal !0")
