"""Streaming: large outputs written past the caches, where they would only push out what is read again."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import reduce

from tilewright.backends.cpu.emit.function import FunctionEmitter
from tilewright.backends.cpu.emit.values import Tensor, static
from tilewright.native.llvm import TRUE, Builder, Value, i64

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

    `strides` lie between those rows. `read` is what they are computed of as they follow each other in memory, so that a
    cache may keep all of it; None: they are found here and there, and better written past it.
    """
    b, size = e.b, tensor.dtype.get_byte()
    if e.lanes < 8 or tensor.dtype.bits != 8 * size or tensor.strides[-1] != i64(1):
        return None
    large = _is_large(e, tensor, read)
    if large is None:
        return None
    bits = b.value("i64", f"ptrtoint {begin} to i64")
    for stride in strides:
        bits = b.op("or", bits, b.op("mul", stride, i64(size)))
    aligned = b.compare("icmp eq", b.op("and", bits, i64(LINE - 1)), i64(0))
    return b.op("and", aligned, large)


def _is_large(e: FunctionEmitter, tensor: Tensor, read: Iterable[Tensor] | None) -> Value | None:
    """Return whether a tensor takes many bytes, more than stay in a cache with what is read; None: surely not.

    What is read is in the cache, too: of more than is written, the processor waits for that, whoever keeps the rest.
    Of 1024 x 1024 floats a Zen 5 adds two in 0.099 ms past the caches, and in 0.108 plainly; one that is as large as
    what is written, as in an RMS norm, takes 0.099 and 0.090, one of bytes 0.098 and 0.043.
    """
    if is_small(tensor):
        return None
    b, written, kept = e.b, _size(e.b, tensor), e.program.target.kept_bytes
    large = b.compare("icmp ult", b.op("sub", written, i64(STREAMED)), i64(UNKNOWN - STREAMED))
    if not kept or read is None:
        return large
    come = reduce(lambda x, y: b.op("add", x, y), (_size(b, x) for x in {x.root: x for x in read}.values()), i64(0))
    fits = b.compare("icmp ult", b.op("add", written, come), i64(kept))
    stays = b.op("and", fits, b.compare("icmp ule", come, written))
    return None if stays == TRUE else b.op("and", large, e.negated(stays))


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


def is_known_large(tensor: Tensor) -> bool:
    """Return whether a tensor is known to be one that may be written past the caches."""
    return all(static(extent) is not None for extent in tensor.shape) and not is_small(tensor)


def store_past_caches(b: Builder, value: Value, pointer: Value, nbytes: int) -> None:
    """Emit the store of a vector, aligned to its size or to a line, that leaves no trace in the caches."""
    b.module.declare("!0 = !{i32 1}")
    b.module.streams = True
    b.store(value, pointer, min(nbytes, LINE), ", !nontemporal !0")
