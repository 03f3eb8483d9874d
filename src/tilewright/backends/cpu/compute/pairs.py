"""Pairs: neighbours along K of a bfloat16 matrix side by side, for the instruction that multiplies two at once.

Rows 2k and 2k + 1 of B become one row of 32-bit words, the even row's element in the low half of each.
The instruction takes subnormal numbers for zero, whatever the processor is set to.
"""

from __future__ import annotations

from tilewright.backends.cpu.compute.storage import first_lanes, load, splat, store
from tilewright.native.llvm import I32, I64, PTR, Builder, Module, Value, i64, vector
from tilewright.native.target import Target

NAME = "pair_rows"
LANES = 16

_SRC, _LD, _DST = Value(PTR, "%src"), Value(I64, "%ld"), Value(PTR, "%dst")
_ROWS, _COLS = Value(I64, "%rows"), Value(I64, "%cols")


def can_pair(target: Target) -> bool:
    """Return whether the processor multiplies pairs of bfloat16 numbers."""
    return target.has_avx512bf16 and target.vector_bits == 512


def emit_pairs(module: Module) -> str:
    """Return the name of a function that pairs the rows of a matrix, adding it to the module once.

    Its parameters are `ptr src, i64 ld, ptr dst, i64 rows, i64 cols`; there is an even number of rows, and those of
    the result are packed.
    """
    if NAME not in module.defined:
        b = Builder(module, NAME, (_SRC, _LD, _DST, _ROWS, _COLS), attrs="noinline nounwind")
        whole = b.op("and", _COLS, i64(-LANES))
        mask = first_lanes(b, b.op("sub", _COLS, whole), LANES)
        rest = b.compare("icmp ne", whole, _COLS)
        with b.loop(i64(0), _ROWS, i64(2)) as row:
            upper = b.offset(_SRC, b.op("mul", row, _LD), "i16")
            lower = b.offset(upper, _LD, "i16")
            made = b.offset(_DST, b.op("mul", b.op("lshr", row, i64(1)), _COLS), I32)
            with b.loop(i64(0), whole, i64(LANES)) as col:
                _pair(b, upper, lower, made, col, None)
            with b.when(rest):  # a masked store costs as much where nothing is left
                _pair(b, upper, lower, made, whole, mask)
        b.finish()
    return NAME


def _pair(b: Builder, upper: Value, lower: Value, made: Value, col: Value, mask: Value | None) -> None:
    half, word = vector("i16", LANES), vector(I32, LANES)
    low, high = (b.convert("zext", load(b, half, b.offset(row, col, "i16"), 2, mask), word) for row in (upper, lower))
    both = b.op("or", low, b.op("shl", high, splat(word, 16)))
    store(b, both, b.offset(made, col, I32), 4, mask)


def multiply_pairs(b: Builder, lhs: Value, rhs: Value, total: Value) -> Value:
    """Emit `total` plus both products of each pair of words."""
    name = "llvm.x86.avx512bf16.dpbf16ps.512"
    factors = vector("bfloat", 2 * LANES)
    b.module.intrinsic(name, total.type, total.type, factors, factors)
    return b.call(total.type, name, total, b.convert("bitcast", lhs, factors), b.convert("bitcast", rhs, factors))
