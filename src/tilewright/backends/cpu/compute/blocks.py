"""Blocks: what falls to one of several that go through the same."""

from __future__ import annotations

from tilewright.backends.cpu.emit.function import FunctionEmitter
from tilewright.native.llvm import Value, i64


def share_of(e: FunctionEmitter, count: Value) -> tuple[Value, Value]:
    """Return the first of so many places or rows that falls to the current block, and how many do."""
    after = e.b.op("add", e.block_index, i64(1))
    first, end = (e.b.op("udiv", e.b.op("mul", count, number), e.block_count) for number in (e.block_index, after))
    return first, e.b.op("sub", end, first)
