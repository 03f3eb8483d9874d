"""Streaming: large outputs written past the caches, where they would only push out what is read again."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import reduce

from tilewright.backends.cpu.emit.function import FunctionEmitter
from tilewright.backends.cpu.emit.values import Tensor, static
from tilewright.native.llvm import Builder, Value, i64

LINE = 64
"""Bytes of a cache line."""
STREAMED = 4 << 20
"""Bytes from which on an output may be written past the caches, on any number of threads: see `Target.kept_bytes`, too.

Two matrices of 64 MB are added in 2.95 ms on one core of a Zen 5, in 4.3 where lines are read before they are written.
Of 2 MB both take the same. Two of 0.4 MB, with their sum a little more than its second cache holds, take 8.6 us
plainly, 9.5 past the caches and 9.1 to 9.5 with hints to fetch.
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


def streaming_pays(
    e: FunctionEmitter, tensor: Tensor, begin: Value, width: int | None, read: Iterable[Tensor] | None = None
) -> Value | None:
    """Return whether rows of some elements, the first at an address, are whole lines of a large tensor.

    None: they surely are not.
    """
    whole = width is not None and width * tensor.dtype.get_byte() % LINE == 0
    return lines_pay(e, tensor, begin, tensor.strides[:-1], read) if whole else None


def lines_pay(
    e: FunctionEmitter, tensor: Tensor, begin: Value, strides: Sequence[Value], read: Iterable[Tensor] | None = None
) -> Value | None:
    """Return whether lines of rows, the first at an address, go to a tensor large and aligned enough; None: never.

    `strides` lie between those rows. `read` is what they are computed of; None: as much as is written.
    """
    b, size = e.b, tensor.dtype.get_byte()
    if e.lanes < 8 or tensor.dtype.bits != 8 * size or tensor.strides[-1] != i64(1):
        return None
    large = _is_large(e, tensor, [tensor] if read is None else read)
    if large is None:
        return None
    bits = b.value("i64", f"ptrtoint {begin} to i64")
    for stride in strides:
        bits = b.op("or", bits, b.op("mul", stride, i64(size)))
    aligned = b.compare("icmp eq", b.op("and", bits, i64(LINE - 1)), i64(0))
    return b.op("and", aligned, large)


def _is_large(e: FunctionEmitter, tensor: Tensor, read: Iterable[Tensor]) -> Value | None:
    """Return whether a tensor takes many bytes, and with what is read more than stays in a cache; None: surely not."""
    if is_small(tensor):
        return None
    b, written, kept = e.b, _size(e.b, tensor), e.program.target.kept_bytes
    large = b.compare("icmp ult", b.op("sub", written, i64(STREAMED)), i64(UNKNOWN - STREAMED))
    if not kept:
        return large
    sizes = [written, *(_size(b, other) for other in {other.root: other for other in read}.values())]
    known = [static(size) for size in sizes]
    counted = [size for size in known if size is not None]
    if len(counted) == len(sizes) and sum(counted) < kept:
        return None
    return b.op("and", large, b.compare("icmp uge", reduce(lambda x, y: b.op("add", x, y), sizes), i64(kept)))


def _size(b: Builder, tensor: Tensor) -> Value:
    """Return how many bytes a tensor has, or the memory that it is a window of, as far as anybody knows."""
    if tensor.around is not None:
        return tensor.around
    known = [static(extent) for extent in tensor.shape]
    counted = math.prod(extent for extent in known if extent is not None) * tensor.dtype.get_byte()
    others = [extent for extent in tensor.shape if static(extent) is None]
    return reduce(lambda x, y: b.op("mul", x, y), others, i64(counted))


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
