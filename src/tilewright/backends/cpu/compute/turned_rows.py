"""Turned rows: a matrix of short numbers that lies on its side, written row by row as matrix tiles read it.

A block of 16 rows by as many words is read a column at a time, its neighbours along K joined to words in registers, and
turned there. Rows that do not exist are written too: there is room for whole blocks.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.backends.cpu.compute.pack import turned_block
from tilewright.backends.cpu.compute.storage import first_lanes, load
from tilewright.native.llvm import I8, I32, I64, PTR, Builder, Module, Value, i64, lanes, vector

SIDE = 16
"""Rows of a block, and words of each."""

_SRC, _LD, _DST, _APART = Value(PTR, "%src"), Value(I64, "%ld"), Value(PTR, "%dst"), Value(I64, "%apart")
_ROWS, _DEPTH = Value(I64, "%rows"), Value(I64, "%depth")


def emit_turned_rows(module: Module, elements: int) -> str:
    """Return the name of a function that turns a matrix with words of so many elements, adding it to the module once.

    Its parameters are `ptr src, i64 ld, ptr dst, i64 apart, i64 rows, i64 depth`: columns are `ld` elements apart, the
    rows that are written `apart` bytes, and the depth is a multiple of a block's.
    """
    name = f"turned_rows_of_{elements}"
    if name not in module.defined:
        b = Builder(module, name, (_SRC, _LD, _DST, _APART, _ROWS, _DEPTH), attrs="noinline nounwind")
        whole = b.op("and", _ROWS, i64(-SIDE))
        with b.loop(i64(0), whole, i64(SIDE)) as row:
            _band(b, elements, row, None)
        with b.when(b.compare("icmp slt", whole, _ROWS)):
            _band(b, elements, whole, first_lanes(b, b.op("sub", _ROWS, whole), SIDE))
        b.finish()
    return name


def _band(b: Builder, elements: int, row: Value, mask: Value | None) -> None:
    """Emit the blocks of some rows."""
    type_, target = f"i{32 // elements}", b.offset(_DST, b.op("mul", row, _APART), I8)
    with b.loop(i64(0), _DEPTH, i64(SIDE * elements)) as first:
        start = b.offset(_SRC, b.op("add", row, b.op("mul", first, _LD)), type_)
        places = [b.offset(start, b.op("mul", _LD, i64(at)), type_) for at in range(SIDE * elements)]
        columns = [load(b, vector(type_, SIDE), place, 1, mask) for place in places]
        groups = [columns[at : at + elements] for at in range(0, len(columns), elements)]
        begin = b.offset(target, first, type_)
        for at, words in enumerate(turned_block(b, [joined(b, group) for group in groups])):
            b.store(words, b.offset(begin, b.op("mul", _APART, i64(at)), I8), 1)


def joined(b: Builder, parts: Sequence[Value]) -> Value:
    """Emit words of as many elements as there are parts, the first in the lowest bits."""
    if len(parts) == 1:
        return b.convert("bitcast", parts[0], vector(I32, lanes(parts[0].type)))
    pairs = [_interleaved(b, low, high) for low, high in zip(parts[::2], parts[1::2], strict=True)]
    return joined(b, pairs)


def _interleaved(b: Builder, low: Value, high: Value) -> Value:
    """Emit elements twice as long, each one of the first and then one of the second vector."""
    count, bits = lanes(low.type), int(low.type.split(" x i")[1].rstrip(">"))
    indices = ", ".join(f"i32 {at}, i32 {at + count}" for at in range(count))
    both = vector(f"i{bits}", 2 * count)
    mixed = b.value(both, f"shufflevector {low}, {high}, <{2 * count} x i32> <{indices}>")
    return b.convert("bitcast", mixed, vector(f"i{2 * bits}", count))
