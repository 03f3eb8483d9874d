"""Gemm: the matrix product of tiles in memory, as an LLVM function.

C is cut into register blocks of a few rows by a few vectors. One micro-kernel function per block shape keeps its block
in registers over the whole of K: each step loads the vectors of one row of B and broadcasts one element of A per row.
Blocks shrink towards the edges, and the last columns are masked. A is read where it lies, through a stride per row and
one per step of K, so a transposed A costs nothing; rows of B and C are contiguous (`pack` makes them so).
Where the processor multiplies several short numbers at once, a step takes a word of A and a row of `words` of B.
A sum of several products keeps its blocks in registers over all of them.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

from tilewright.backends.cpu.compute.gemm_blocks import (
    COLUMNS,
    DISTANCES,
    Block,
    GemmSpec,
    column_blocks,
    columns_left,
    row_counts,
)
from tilewright.backends.cpu.compute.storage import (
    INTEGERS,
    load,
    load_number,
    spread_number,
    store,
    stored_type,
)
from tilewright.backends.cpu.compute.words import Words, multiply_bytes, multiply_pairs, signs, unsigned
from tilewright.backends.cpu.emit.polls import Polls
from tilewright.backends.cpu.emit.work import PIECE
from tilewright.named_tuples import NamedTuple
from tilewright.native.llvm import F32, I1, I32, I64, PTR, Builder, Module, Value, element, i32, i64, lanes, vector
from tilewright.native.target import Target

PREFETCH = 16
"""How many rows of B ahead a micro-kernel prefetches."""

FORWARD, NEAR_FORWARD = 1536, 512
"""How many bytes ahead a micro-kernel prefetches that reads each row of B once, from its beginning to its end.

Of a strip of rows that is a fourth of the first cache. On a Zen 5 one row by 4096 x 4096 takes 1.02 ms in bf16 and 1.74
in fp32, eight rows 1.70 in fp32; where it is 256 they take 1.55, 2.05 and 2.74. Intel's processors fetch along rows by
themselves, and give that up where others ask for what is further: on an Emerald Rapids they take 1.5, 2.9 and 3.6 ms
for the near one, and 3.3, 4.6 and 5.8 for the other.
"""


class Operands(NamedTuple):
    """Where the matrices lie: a row of A, a step of A along K and the rows of B and C are that many elements apart."""

    a: Value = Value(PTR, "%a")
    a_row: Value = Value(I64, "%a_row")
    a_k: Value = Value(I64, "%a_k")
    b: Value = Value(PTR, "%b")
    ldb: Value = Value(I64, "%ldb")
    c: Value = Value(PTR, "%c")
    ldc: Value = Value(I64, "%ldc")


M, N, K, ACCUMULATE = Value(I64, "%m"), Value(I64, "%n"), Value(I64, "%k"), Value(I1, "%accumulate")
CONTEXT = Value(PTR, "%context")
NEXT_ROWS = Value(I64, "%next_rows")


def emit_gemm(module: Module, spec: GemmSpec) -> str:
    """Return the name of a function that computes C = A B, or C += A B, adding it to the module once.

    Its parameters are `ptr a, i64 a_row, i64 a_k, ptr b, i64 ldb, ptr c, i64 ldc, i64 m, i64 n, i64 k, i1 accumulate`;
    an extent that the spec gives must be passed as well. `ptr distances` follows where there are several terms, two
    words for each, and `ptr context` where it is polled.
    """
    if spec.name not in module.defined:
        params = (*Operands(), M, N, K, ACCUMULATE, *spec.distances, *[CONTEXT] * spec.polled)
        b = Builder(module, spec.name, params, attrs="noinline nounwind")
        end = b.label("end")
        shapes = column_blocks(spec)
        heights = row_counts(spec, max((shape.vectors for shape in shapes), default=1))
        _emit_blocks(b, spec, heights, shapes, Polls(b, CONTEXT, end) if spec.polled else None)
        b.do(f"br label %{end}")
        b.begin(end)
        b.finish()
    return spec.name


def _emit_blocks(
    b: Builder, spec: GemmSpec, heights: Sequence[int], shapes: Sequence[Block], polls: Polls | None
) -> None:
    """Emit the loops over panels of columns and blocks of rows, each step taking the largest block that fits."""
    if not heights or not shapes:
        return
    widths, needed = [shape.columns for shape in shapes], columns_left(spec, shapes)
    columns = b.open_loop(i64(0), N, i64(0))
    width = b.op("sub", N, columns.index)
    rows = b.open_loop(i64(0), M, i64(0))
    height = b.op("sub", M, rows.index)
    grid = [[_emit_micro(b.module, spec, replace(shape, rows=count)) for count in heights] for shape in shapes]
    micro = _largest(b, width, needed, [_largest(b, height, heights, column) for column in grid])
    place = _placed(b, spec, rows.index, columns.index)
    given = (*place, width, K, ACCUMULATE, *spec.distances, *([_to_next_rows(b)] if spec.streamed else []))
    b.do(f"call void {micro.ref}({', '.join(map(str, given))})")
    if polls is not None:
        polls.count(PIECE)
    rows.step = _largest(b, height, heights, [i64(count) for count in heights])
    b.close_loop(rows)
    columns.step = _largest(b, width, needed, [i64(count) for count in widths])
    b.close_loop(columns)


def _to_next_rows(b: Builder) -> Value:
    """Return how far it is from the end of the rows of B to where those after them begin."""
    return b.op("sub", b.op("mul", K, Operands().ldb), N)


def _largest(b: Builder, left: Value, sizes: Sequence[int], values: Sequence[Value]) -> Value:
    """Return the value of the largest size that fits what is left; the last one, if none does."""
    *larger, chosen = values
    for size, value in reversed([*zip(sizes, larger, strict=False)]):
        chosen = b.select(b.compare("icmp sge", left, i64(size)), value, chosen)
    return chosen


def _placed(b: Builder, spec: GemmSpec, row: Value, column: Value) -> Operands:
    """Return the operands of the block that starts at a row and a column."""
    o = Operands()
    return o._replace(
        a=b.offset(o.a, b.op("mul", row, o.a_row), stored_type(spec.lhs, spec.target)),
        b=b.offset(o.b, Words(spec.words).place(b, K, column) if spec.words > 1 else column, spec.right),
        c=b.offset(o.c, b.op("add", b.op("mul", row, o.ldc), column), spec.total),
    )


def _emit_micro(module: Module, spec: GemmSpec, block: Block) -> Value:
    """Return the function that computes one register block, adding it to the module once."""
    name = f"{spec.family}.micro{block.rows}x{block.columns}{'.edge' * block.masked}"
    if name not in module.defined:
        _define_micro(module, name, spec, block)
    return Value(PTR, f"@{name}")


def _define_micro(module: Module, name: str, spec: GemmSpec, block: Block) -> None:
    """Add a micro-kernel to the module: its parameters are a place, how many columns are left, K and `accumulate`."""
    params = (*Operands(), COLUMNS, K, ACCUMULATE, *spec.distances, *[NEXT_ROWS] * spec.streamed)
    b = Builder(module, name, params, attrs="noinline nounwind")
    masks = block.masks(b)
    if not spec.streamed:
        _prefetch_sums(b, spec, block)
    sums = _added(b, spec, block, masks, _emit_terms(b, spec, block, masks))
    for pointer, total, mask in zip(_targets(b, spec, block), sums, masks * block.rows, strict=True):
        store(b, total, pointer, 4, mask)
    b.finish()


def _targets(b: Builder, spec: GemmSpec, block: Block) -> list[Value]:
    """Return the addresses of the vectors of a block of C."""
    o = Operands()
    rows = [b.offset(o.c, b.op("mul", o.ldc, i64(row)), spec.total) for row in range(block.rows)]
    return [b.offset(row, i64(at * block.lanes), spec.total) for row in rows for at in range(block.vectors)]


def _added(b: Builder, spec: GemmSpec, block: Block, masks: list[Value | None], sums: Sequence[Value]) -> list[Value]:
    """Return the sums of a block, added to C if it accumulates: once, so that large sums lose nothing on the way."""
    type_ = sums[0].type
    before, filled, ready = b.block, b.label("filled"), b.label("ready")
    b.do(f"br {ACCUMULATE}, label %{filled}, label %{ready}")
    b.begin(filled)
    name = "add" if spec.total in INTEGERS else "fadd"
    places = zip(_targets(b, spec, block), masks * block.rows, strict=True)
    old = [load(b, type_, pointer, 4, mask) for pointer, mask in places]
    both = [b.op(name, value, total) for value, total in zip(old, sums, strict=True)]
    b.do(f"br label %{ready}")
    b.begin(ready)
    ways = zip(sums, both, strict=True)
    return [b.value(type_, f"phi {type_} [ {a.ref}, %{before} ], [ {c.ref}, %{filled} ]") for a, c in ways]


def _emit_terms(b: Builder, spec: GemmSpec, block: Block, masks: Sequence[Value | None]) -> Sequence[Value]:
    """Emit the products that are added up; return the sums they end with."""
    o, type_ = Operands(), vector(spec.total, block.lanes)
    number = "0" if spec.total in INTEGERS else "0.0"
    zero = Value(type_, number if block.lanes == 1 else "zeroinitializer")
    sums = [zero] * (block.rows * block.vectors)
    if spec.terms == 1:
        return _emit_steps(b, spec, block, masks, o, sums)
    loop = b.open_loop(i64(0), i64(2 * spec.terms), i64(2), sums)
    places = [b.offset(DISTANCES, b.op("add", loop.index, i64(operand)), I64) for operand in range(2)]
    to_a, to_b = (b.load(I64, place, 8) for place in places)
    here = o._replace(a=b.offset(o.a, to_a, "i8"), b=b.offset(o.b, to_b, "i8"))
    return b.close_loop(loop, _emit_steps(b, spec, block, masks, here, loop.values))


def _emit_steps(
    b: Builder, spec: GemmSpec, block: Block, masks: Sequence[Value | None], o: Operands, sums: Sequence[Value]
) -> Sequence[Value]:
    """Emit the loop over K; return the sums it ends with."""
    lhs, rhs = stored_type(spec.lhs, spec.target), spec.right
    a_rows = [b.offset(o.a, b.op("mul", o.a_row, i64(row)), lhs) for row in range(block.rows)]
    ahead = _forward(b, spec) if spec.streamed else b.op("mul", o.ldb, i64(PREFETCH))
    held = signs(b) if spec.words == 4 else None
    loop = b.open_loop(i64(0), K, i64(1), (i64(0), o.b, *sums))
    along, b_row, *running = loop.values
    places = [(b.offset(b_row, i64(at * block.lanes), rhs), mask) for at, mask in enumerate(masks)]
    _prefetch(b, spec, block, b.offset(b_row, ahead, rhs))
    steps = [b.offset(row, along, lhs) for row in a_rows]
    if spec.words > 1:
        right = [load(b, vector(I32, block.lanes), place, 4, mask) for place, mask in places]
        found = [b.load(I32, step, 4 // spec.words) for step in steps]
        left = [unsigned(b, word, held) if held is not None else b.splat(word, block.lanes) for word in found]
    else:
        loaded = [load_number(b, spec.rhs, spec.target, place, block.lanes, mask) for place, mask in places]
        right = [_summable(b, spec, value) for value in loaded]
        left = [spread_number(b, spec.lhs, spec.target, step, block.lanes) for step in steps]
    multiply = {1: multiply_add, 2: multiply_pairs, 4: multiply_bytes}[spec.words]
    factors = itertools.product(left, right)
    following = [multiply(b, *pair, total) for pair, total in zip(factors, running, strict=True)]
    _, end, *ends = b.close_loop(loop, (b.op("add", along, o.a_k), b.offset(b_row, o.ldb, rhs), *following))
    if spec.words < 4:
        return ends
    places = [(b.offset(end, i64(at * block.lanes), I32), mask) for at, mask in enumerate(masks)]
    off = [load(b, vector(I32, block.lanes), place, 4, mask) for place, mask in places]
    return [b.op("add", total, off[at % block.vectors]) for at, total in enumerate(ends)]


def forward(target: Target) -> int:
    """Return how many bytes ahead rows that are read once are prefetched."""
    return NEAR_FORWARD if target.fetches_along_rows else FORWARD


def _forward(b: Builder, spec: GemmSpec) -> Value:
    """Return how far ahead elements of B are read next: in the same row, or in one of those after the last."""
    ahead = i64(forward(spec.target) // spec.rhs.get_byte())
    return b.select(b.compare("icmp slt", ahead, COLUMNS), ahead, b.op("add", ahead, NEXT_ROWS))


def _prefetch(b: Builder, spec: GemmSpec, block: Block, pointer: Value) -> None:
    """Emit prefetches of one row of a block of B, wherever that is: they never fault."""
    name = b.module.intrinsic("llvm.prefetch.p0", "void", PTR, *["i32 immarg"] * 3)
    for byte in range(0, block.columns * (4 if spec.words > 1 else spec.rhs.get_byte()), 64):
        b.invoke(name, b.offset(pointer, i64(byte), "i8"), i32(0), i32(3), i32(1))


def _prefetch_sums(b: Builder, spec: GemmSpec, block: Block) -> None:
    """Emit prefetches of the block of C below, which comes next: while this one is summed it can come nearer."""
    name = b.module.intrinsic("llvm.prefetch.p0", "void", PTR, *["i32 immarg"] * 3)
    down = b.op("mul", Operands().ldc, i64(block.rows))
    for pointer in _targets(b, spec, block):
        b.invoke(name, b.offset(pointer, down, spec.total), i32(1), i32(3), i32(1))


def _summable(b: Builder, spec: GemmSpec, value: Value) -> Value:
    """Return elements of B as elements of C: integers that meet floats are converted."""
    if element(value.type) == spec.total:
        return value
    return b.convert("sitofp" if spec.rhs.is_signed_int() else "uitofp", value, vector(F32, lanes(value.type)))


def multiply_add(b: Builder, lhs: Value, rhs: Value, total: Value) -> Value:
    """Emit `total + lhs * rhs`, fused where the machine can."""
    if element(total.type) not in INTEGERS:
        return b.intrinsic("llvm.fmuladd", lhs, rhs, total)
    return b.op("add", total, b.op("mul", lhs, rhs))
