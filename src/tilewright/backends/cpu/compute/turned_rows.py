"""Turned rows: a matrix of short numbers that lies on its side, written row by row as matrix tiles read it.

A block of 16 rows by as many words is read a column at a time, its neighbours along K joined to words in registers, and
turned there. Rows that do not exist are written too: there is room for whole blocks.
"""

from __future__ import annotations

from tilewright.backends.cpu.compute.storage import first_lanes
from tilewright.backends.cpu.compute.turned_blocks import turned_block
from tilewright.backends.cpu.compute.words import load_words
from tilewright.native.llvm import I8, I64, PTR, Builder, Module, Value, i64

SIDE = 16
"""Rows of a block, and words of each."""

_SRC, _LD, _DST, _APART = Value(PTR, "%src"), Value(I64, "%ld"), Value(PTR, "%dst"), Value(I64, "%apart")
_ROWS, _DEPTH = Value(I64, "%rows"), Value(I64, "%depth")


def emit_turned_rows(module: Module, elements: int, *, is_whole: bool, is_deep: bool) -> str:
    """Return the name of a function that turns a matrix with words of so many elements, adding it to the module once.

    Its parameters are `ptr src, i64 ld, ptr dst, i64 apart, i64 rows, i64 depth`: columns are `ld` elements apart, the
    rows that are written `apart` bytes. The depth is a multiple of a block's if it `is_deep`, and the rows are if it
    `is_whole`; what is written of columns that do not exist is any numbers.
    """
    name = f"turned_rows_of_{elements}{'.whole' * is_whole}{'.deep' * is_deep}"
    if name not in module.defined:
        b = Builder(module, name, (_SRC, _LD, _DST, _APART, _ROWS, _DEPTH), attrs="noinline nounwind")
        with b.loop(i64(0), _ROWS, i64(SIDE)) as row:
            mask = None if is_whole else first_lanes(b, b.op("sub", _ROWS, row), SIDE)
            _band(b, elements, row, mask, is_deep=is_deep)
        b.finish()
    return name


def _band(b: Builder, elements: int, row: Value, mask: Value | None, *, is_deep: bool) -> None:
    """Emit the blocks of some rows: beyond the last column that one is read again."""
    type_, target = f"i{32 // elements}", b.offset(_DST, b.op("mul", row, _APART), I8)
    with b.loop(i64(0), _DEPTH, i64(SIDE * elements)) as first:
        start = b.offset(_SRC, b.op("add", row, b.op("mul", first, _LD)), type_)
        last = b.op("sub", b.op("sub", _DEPTH, first), i64(1))
        among = [i64(at) if is_deep else b.intrinsic("llvm.smin", i64(at), last) for at in range(SIDE * elements)]
        places = [b.offset(start, b.op("mul", _LD, at), type_) for at in among]
        groups = [places[at : at + elements] for at in range(0, len(places), elements)]
        begin = b.offset(target, first, type_)
        for at, words in enumerate(turned_block(b, [load_words(b, group, mask) for group in groups])):
            b.store(words, b.offset(begin, b.op("mul", _APART, i64(at)), I8), 1)
