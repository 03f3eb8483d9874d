"""Domains: the record that code finds in front of a window (`native/domains.py`), and what it tells those it names."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.backends.cpu.emit.function import FunctionEmitter
from tilewright.backends.cpu.emit.values import Tensor
from tilewright.native.domains import Record, Touch
from tilewright.native.llvm import I64, PTR, Value, i64

LOST = "a peer could not be reached"


def record_of(e: FunctionEmitter, window: Tensor) -> Value:
    """Return where the record of a window's domain lies."""
    return e.b.load(PTR, e.b.offset(window.pointer, i64(-1), I64), 8)


def word_of(e: FunctionEmitter, window: Tensor, word: int) -> Value:
    """Return a word of the record."""
    return e.b.load(I64, e.b.offset(record_of(e, window), i64(word), I64), 8)


def part_at(e: FunctionEmitter, window: Tensor, peer: Value) -> Value:
    """Return where code finds the part of a peer."""
    place = e.b.op("add", peer, i64(Record.PARTS))
    return e.b.load(PTR, e.b.offset(record_of(e, window), place, I64), 8)


def are_shared(e: FunctionEmitter, window: Tensor) -> Value:
    """Return whether the parts of a window lie where all ranks see them."""
    return e.b.compare("icmp eq", word_of(e, window, Record.DISTANT), i64(0))


def tell(e: FunctionEmitter, window: Tensor, what: Touch, pointer: Value, words: Sequence[Value]) -> Value:
    """Emit that a copy is touched; return a number that is not 0 where its rank could not be reached."""
    b = e.b
    block = b.slot(f"[{len(words)} x i64]")
    for number, word in enumerate(words):
        b.store(word, b.offset(block, i64(number), I64), 8)
    function = b.load(PTR, b.offset(record_of(e, window), i64(Record.DISTANT), I64), 8)
    return b.value(I64, f"call i64 {function.ref}(i64 {what.value}, {pointer}, {block})")
