"""Words: neighbours along K of a matrix of short numbers in words of 32 bits, which instructions multiply at once.

Rows 2k and 2k + 1 of a bfloat16 matrix B, or rows 4k to 4k + 3 of one of bytes, become one row of words, the element of
the first row in the lowest bits of each. Some columns at a time, a panel, lie one row after the other. Subnormal
bfloat16 numbers are taken for zero, whatever the processor is set to. Vectors multiply four bytes by four that
have no sign: 128 is added to those of A, and a last row of words says what to add to each column for that. Matrix tiles
take both as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from tilewright.backends.cpu.compute.storage import first_lanes, load, splat, store
from tilewright.dtypes import BF16, INT8, DataType
from tilewright.native.llvm import I32, I64, PTR, Builder, Module, Value, i64, vector
from tilewright.native.target import Target
from tilewright.records import record

LANES, PANEL, TILE_PANEL = 16, 64, 32
"""Columns of a vector, and of a panel for vectors and for matrix tiles."""
WORD = vector(I32, LANES)
ONES, SIGNS = 0x01010101, -0x7F7F7F80
"""A byte of one, and one of 128, four times."""

_SRC, _LD, _DST = Value(PTR, "%src"), Value(I64, "%ld"), Value(PTR, "%dst")
_ROWS, _COLS = Value(I64, "%rows"), Value(I64, "%cols")


def elements_of_word(target: Target, lhs: DataType, rhs: DataType) -> int:
    """Return how many elements of two matrices the processor multiplies at once in each lane: 1 where it does not."""
    if lhs != rhs or target.vector_bits != 512:
        return 1
    pairs, bytes_ = lhs == BF16 and target.is_quick_in_pairs, lhs == INT8 and target.has("avx512vnni")
    return 2 if pairs else 4 if bytes_ else 1


@record
class Words:
    """How a matrix lies in words of so many elements, for vectors or for matrix tiles."""

    elements: int
    for_tiles: bool = False

    @property
    def name(self) -> str:
        """The name of the function that makes them."""
        return f"words_of_{self.elements}{'.tiles' * self.for_tiles}"

    @property
    def panel(self) -> int:
        """How many columns lie one row after the other: those that are multiplied together."""
        return TILE_PANEL if self.for_tiles else PANEL

    @property
    def is_offset(self) -> bool:
        """Whether a last row says what to add for the signs of A."""
        return self.elements == 4 and not self.for_tiles

    def room(self, depth: int, columns: int) -> int:
        """Return how many bytes the words of a matrix take."""
        return (depth // self.elements + self.is_offset) * -(-columns // self.panel) * self.panel * 4

    def place(self, b: Builder, steps: Value, column: Value) -> Value:
        """Return how many words from the first those of a column lie, in a matrix of so many rows of words."""
        rows = b.op("add", steps, i64(1)) if self.is_offset else steps
        begin = b.op("mul", b.op("and", column, i64(-self.panel)), rows)
        return b.op("add", begin, b.op("and", column, i64(self.panel - 1)))


def tile_words(dtype: DataType) -> Words:
    """Return how matrix tiles take the elements of a type."""
    return Words(4 // dtype.get_byte(), for_tiles=True)


def emit_words(module: Module, words: Words) -> str:
    """Return the name of a function that makes words of a matrix, adding it to the module once.

    Its parameters are `ptr src, i64 ld, ptr dst, i64 rows, i64 cols`; the rows are whole words.
    """
    if words.name not in module.defined:
        b = Builder(module, words.name, (_SRC, _LD, _DST, _ROWS, _COLS), attrs="noinline nounwind")
        wide, whole = (b.op("and", _COLS, i64(-size)) for size in (PANEL, LANES))
        mask = first_lanes(b, b.op("sub", _COLS, whole), LANES)
        with b.loop(i64(0), wide, i64(PANEL)) as col:  # rows of a tensor come from memory: more of each at a time
            _columns(b, words, col, PANEL // LANES, None)
        with b.loop(wide, whole, i64(LANES)) as col:
            _columns(b, words, col, 1, None)
        with b.loop(whole, _COLS, i64(LANES)) as col:
            _columns(b, words, col, 1, mask)
        b.finish()
    return words.name


def _columns(b: Builder, words: Words, col: Value, vectors: int, mask: Value | None) -> None:
    """Emit the words of some vectors of columns."""
    elements, type_, none = words.elements, f"i{32 // words.elements}", Value(WORD, "zeroinitializer")
    steps = b.op("udiv", _ROWS, i64(elements))
    begins = b.offset(_SRC, col, type_), b.offset(_DST, words.place(b, steps, col), I32)
    places = [_place(b, words, steps, at * LANES) for at in range(vectors)]
    loop = b.open_loop(i64(0), _ROWS, i64(elements), (*begins, *[none] * vectors * words.is_offset))
    source, made, *totals = loop.values
    rows = [b.offset(source, b.op("mul", _LD, i64(number)), type_) for number in range(elements)]
    joined = [load_words(b, [b.offset(row, i64(at * LANES), type_) for row in rows], mask) for at in range(vectors)]
    for at, word in enumerate(joined):
        store(b, word, b.offset(made, places[at], I32), 4, mask)
    if words.is_offset:
        pairs = zip(joined, totals, strict=True)
        totals = [multiply_bytes(b, splat(WORD, ONES), word, total) for word, total in pairs]
    following = b.offset(source, b.op("mul", _LD, i64(elements)), type_), b.offset(made, i64(words.panel), I32)
    _, made, *totals = b.close_loop(loop, (*following, *totals))
    for at, total in enumerate(totals):
        store(b, b.op("mul", total, splat(WORD, -128)), b.offset(made, places[at], I32), 4, mask)


def emit_offsets(module: Module) -> str:
    """Return the name of a function that writes the last row of a panel of bytes, adding it to the module once.

    Its parameters are `ptr dst, i64 rows`: where the panel lies, and how many rows of words it has before that.
    """
    name = "offsets_of_words"
    if name not in module.defined:
        b, none = Builder(module, name, (_DST, _ROWS), attrs="noinline nounwind"), Value(WORD, "zeroinitializer")
        loop = b.open_loop(i64(0), _ROWS, i64(1), (_DST, *[none] * (PANEL // LANES)))
        row, *totals = loop.values
        places = [b.offset(row, i64(at * LANES), I32) for at in range(len(totals))]
        pairs = zip(places, totals, strict=True)
        totals = [multiply_bytes(b, splat(WORD, ONES), b.load(WORD, place, 4), total) for place, total in pairs]
        end, *totals = b.close_loop(loop, (b.offset(row, i64(PANEL), I32), *totals))
        for at, total in enumerate(totals):
            b.store(b.op("mul", total, splat(WORD, -128)), b.offset(end, i64(at * LANES), I32), 4)
        b.finish()
    return name


def _place(b: Builder, words: Words, steps: Value, column: int) -> Value:
    """Return how far the words of a column are from those of a panel's first."""
    return words.place(b, steps, i64(column)) if column >= words.panel else i64(column)


def load_words(b: Builder, places: Sequence[Value], mask: Value | None) -> Value:
    """Emit words of the neighbours at each place, those at the first in the lowest bits."""
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
