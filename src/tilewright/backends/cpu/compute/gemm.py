"""Gemm: the matrix product of tiles in memory, as an LLVM function.

C is cut into register blocks of a few rows by a few vectors, each of which a micro-kernel computes. Blocks shrink
towards the edges, and the last columns are masked. A is read where it lies, through a stride per row and one per step
of K, so a transposed A costs nothing; rows of B and C are contiguous (`pack` makes them so).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tilewright.backends.cpu.compute.gemm_blocks import Block, GemmSpec, column_blocks, columns_left, row_counts
from tilewright.backends.cpu.compute.micro_kernels import ACCUMULATE, K, Operands, emit_micro_kernel
from tilewright.backends.cpu.compute.storage import stored_type
from tilewright.backends.cpu.compute.words import Words
from tilewright.backends.cpu.emit.polls import Polls
from tilewright.backends.cpu.emit.work import PIECE
from tilewright.native.llvm import I64, PTR, Builder, Module, Value, i64

M, N, CONTEXT = Value(I64, "%m"), Value(I64, "%n"), Value(PTR, "%context")


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
    grid = [[emit_micro_kernel(b.module, spec, replace(shape, rows=count)) for count in heights] for shape in shapes]
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
