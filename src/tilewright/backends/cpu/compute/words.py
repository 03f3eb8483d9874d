"""Words: neighbours along K of a matrix of short numbers in words of 32 bits, which instructions multiply at once.

Rows 2k and 2k + 1 of a bfloat16 matrix B, or rows 4k to 4k + 3 of one of bytes, become one row of words, the element of
the first row in the lowest bits of each. Some columns at a time, a panel, lie one row after the other. Subnormal
bfloat16 numbers are taken for zero, whatever the processor is set to. Four bytes are multiplied by four that
have no sign: 128 is added to those of A, and a last row of words says what to add to each column for that.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from tilewright.backends.cpu.compute.storage import first_lanes, load, splat, store
from tilewright.dtypes import BF16, INT8, DataType
from tilewright.native.llvm import I32, I64, PTR, Builder, Module, Value, i64, vector
from tilewright.native.target import Target

LANES, PANEL = 16, 64
"""Columns of a vector, and of a panel."""
WORD = vector(I32, LANES)
ONES, SIGNS = 0x01010101, -0x7F7F7F80
"""A byte of one, and one of 128, four times."""

_SRC, _LD, _DST = Value(PTR, "%src"), Value(I64, "%ld"), Value(PTR, "%dst")
_ROWS, _COLS = Value(I64, "%rows"), Value(I64, "%cols")


def elements_of_word(target: Target, lhs: DataType, rhs: DataType) -> int:
    """Return how many elements of two matrices the processor multiplies at once in each lane: 1 where it does not."""
    if lhs != rhs or target.vector_bits != 512:
        return 1
    pairs, bytes_ = lhs == BF16 and target.has_avx512bf16, lhs == INT8 and target.has("avx512vnni")
    return 2 if pairs else 4 if bytes_ else 1


def room_of_words(elements: int, depth: int, columns: int) -> int:
    """Return how many bytes the words of a matrix take."""
    return (depth // elements + (elements == 4)) * -(-columns // PANEL) * PANEL * 4


def panel_of(b: Builder, elements: int, steps: Value, column: Value) -> Value:
    """Return how many words from the first those of a column lie, in a matrix of so many rows of words."""
    rows = b.op("add", steps, i64(1)) if elements == 4 else steps
    return b.op("add", b.op("mul", b.op("and", column, i64(-PANEL)), rows), b.op("and", column, i64(PANEL - 1)))


def emit_words(module: Module, elements: int) -> str:
    """Return the name of a function that makes words of a matrix, adding it to the module once.

    Its parameters are `ptr src, i64 ld, ptr dst, i64 rows, i64 cols`; the rows are whole words.
    """
    name = f"words_of_{elements}"
    if name not in module.defined:
        b = Builder(module, name, (_SRC, _LD, _DST, _ROWS, _COLS), attrs="noinline nounwind")
        panels, whole = (b.op("and", _COLS, i64(-size)) for size in (PANEL, LANES))
        mask = first_lanes(b, b.op("sub", _COLS, whole), LANES)
        with b.loop(i64(0), panels, i64(PANEL)) as col:
            _columns(b, elements, col, PANEL // LANES, None)
        with b.loop(panels, whole, i64(LANES)) as col:
            _columns(b, elements, col, 1, None)
        with b.loop(whole, _COLS, i64(LANES)) as col:
            _columns(b, elements, col, 1, mask)
        b.finish()
    return name


def _columns(b: Builder, elements: int, col: Value, vectors: int, mask: Value | None) -> None:
    """Emit the words of some vectors of columns."""
    type_, none = f"i{32 // elements}", Value(WORD, "zeroinitializer")
    start = panel_of(b, elements, b.op("udiv", _ROWS, i64(elements)), col)
    begins = b.offset(_SRC, col, type_), b.offset(_DST, start, I32)
    loop = b.open_loop(i64(0), _ROWS, i64(elements), (*begins, *[none] * vectors))
    source, made, *totals = loop.values
    rows = [b.offset(source, b.op("mul", _LD, i64(number)), type_) for number in range(elements)]
    words = [_word(b, [b.offset(row, i64(at * LANES), type_) for row in rows], mask) for at in range(vectors)]
    for at, word in enumerate(words):
        store(b, word, b.offset(made, i64(at * LANES), I32), 4, mask)
    if elements == 4:
        pairs = zip(words, totals, strict=True)
        totals = [multiply_bytes(b, splat(WORD, ONES), word, total) for word, total in pairs]
    following = b.offset(source, b.op("mul", _LD, i64(elements)), type_), b.offset(made, i64(PANEL), I32)
    _, made, *totals = b.close_loop(loop, (*following, *totals))
    for at, total in enumerate(totals if elements == 4 else ()):
        store(b, b.op("mul", total, splat(WORD, -128)), b.offset(made, i64(at * LANES), I32), 4, mask)


def _word(b: Builder, places: Sequence[Value], mask: Value | None) -> Value:
    """Emit words of the elements at as many places."""
    bits = 32 // len(places)
    parts = [b.convert("zext", load(b, vector(f"i{bits}", LANES), place, 1, mask), WORD) for place in places]
    shifted = [b.op("shl", part, splat(WORD, number * bits)) if number else part for number, part in enumerate(parts)]
    return reduce(lambda x, y: b.op("or", x, y), shifted)


def multiply_pairs(b: Builder, lhs: Value, rhs: Value, total: Value) -> Value:
    """Emit `total` plus both products of each pair of words."""
    name = "llvm.x86.avx512bf16.dpbf16ps.512"
    factors = vector("bfloat", 2 * LANES)
    b.module.intrinsic(name, total.type, total.type, factors, factors)
    return b.call(total.type, name, total, b.convert("bitcast", lhs, factors), b.convert("bitcast", rhs, factors))


def multiply_bytes(b: Builder, lhs: Value, rhs: Value, total: Value) -> Value:
    """Emit `total` plus the four products of bytes without a sign and bytes with one in each pair of words."""
    name = "llvm.x86.avx512.vpdpbusd.512"
    b.module.intrinsic(name, WORD, WORD, WORD, WORD)
    return b.call(WORD, name, total, lhs, rhs)


def signs(b: Builder) -> Value:
    """Emit what `unsigned` takes, in a register, of which LLVM does not know what it holds."""
    return b.value(WORD, f'call {WORD} asm "", "=v,0"({splat(WORD, SIGNS)})')


def unsigned(b: Builder, word: Value, held: Value) -> Value:
    """Emit 128 plus each byte of a word in every lane: one instruction that also loads the word."""
    return b.op("xor", b.splat(word, LANES), held)
