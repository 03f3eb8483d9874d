"""Micro-kernels: register blocks of a gemm, one LLVM function per shape of block.

A micro-kernel keeps its block of C in registers over the whole of K: each step loads the vectors of one row of B and
broadcasts one element of A per row. Where the processor multiplies several short numbers at once, a step takes a word
of A and a row of `words` of B. A sum of several products keeps its blocks in registers over all of them.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from tilewright.backends.cpu.compute.gemm_blocks import COLUMNS, DISTANCES, Block, GemmSpec
from tilewright.backends.cpu.compute.storage import (
    INTEGERS,
    fetch,
    load,
    load_number,
    spread_number,
    store,
    stored_type,
)
from tilewright.backends.cpu.compute.streaming import LINE
from tilewright.backends.cpu.compute.words import multiply_bytes, multiply_pairs, signs, unsigned
from tilewright.named_tuples import NamedTuple
from tilewright.native.llvm import F32, I1, I32, I64, PTR, Builder, Module, Value, element, i64, lanes, vector
from tilewright.native.target import Target
from tilewright.records import record

PREFETCH = 16
"""How many rows of B ahead a micro-kernel prefetches that takes one step at a time."""

UNROLLED = 4
"""How many steps others take at a time; they leave it to the processor to fetch along B."""

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


_IN_ORDER = 'call void asm sideeffect "", "~{memory}"()'
"""What keeps LLVM from loading for several steps at once, for which there are not registers enough."""

K, ACCUMULATE, NEXT_ROWS = Value(I64, "%k"), Value(I1, "%accumulate"), Value(I64, "%next_rows")


def emit_micro_kernel(module: Module, spec: GemmSpec, block: Block) -> Value:
    """Return the function that computes one register block, adding it to the module once.

    Its parameters are a place, how many columns are left, K and `accumulate`, then what the spec asks for.
    """
    name = f"{spec.family}.micro{block.rows}x{block.columns}{'.edge' * block.masked}"
    if name not in module.defined:
        params = (*Operands(), COLUMNS, K, ACCUMULATE, *spec.distances, *[NEXT_ROWS] * spec.streamed)
        b = Builder(module, name, params, attrs="noinline nounwind")
        _MicroKernel(b, spec, block, block.masks(b)).emit()
        b.finish()
    return Value(PTR, f"@{name}")


@record
class _MicroKernel:
    """One micro-kernel being emitted."""

    b: Builder
    spec: GemmSpec
    block: Block
    masks: list[Value | None]
    """Which columns of each vector of a row exist; None: all of them."""

    def emit(self) -> None:
        """Emit the whole function."""
        if not self.spec.streamed:
            self._prefetch_sums()
        sums = self._added(self._terms())
        for pointer, total, mask in zip(self._targets(), sums, self.masks * self.block.rows, strict=True):
            store(self.b, total, pointer, 4, mask)

    def _targets(self) -> list[Value]:
        """Return the addresses of the vectors of a block of C."""
        b, o, total = self.b, Operands(), self.spec.total
        rows = [b.offset(o.c, b.op("mul", o.ldc, i64(row)), total) for row in range(self.block.rows)]
        return [b.offset(row, i64(at * self.block.lanes), total) for row in rows for at in range(self.block.vectors)]

    def _added(self, sums: Sequence[Value]) -> list[Value]:
        """Return sums of a block, added to C if it accumulates: once, so that large sums lose nothing on the way."""
        b, type_ = self.b, sums[0].type
        before, filled, ready = b.block, b.label("filled"), b.label("ready")
        b.do(f"br {ACCUMULATE}, label %{filled}, label %{ready}")
        b.begin(filled)
        name = "add" if self.spec.total in INTEGERS else "fadd"
        places = zip(self._targets(), self.masks * self.block.rows, strict=True)
        old = [load(b, type_, pointer, 4, mask) for pointer, mask in places]
        both = [b.op(name, value, total) for value, total in zip(old, sums, strict=True)]
        b.do(f"br label %{ready}")
        b.begin(ready)
        ways = zip(sums, both, strict=True)
        return [b.value(type_, f"phi {type_} [ {a.ref}, %{before} ], [ {c.ref}, %{filled} ]") for a, c in ways]

    def _terms(self) -> Sequence[Value]:
        """Emit the products that are added up; return the sums they end with."""
        b, spec, block, o = self.b, self.spec, self.block, Operands()
        type_ = vector(spec.total, block.lanes)
        number = "0" if spec.total in INTEGERS else "0.0"
        zero = Value(type_, number if block.lanes == 1 else "zeroinitializer")
        sums = [zero] * (block.rows * block.vectors)
        if spec.terms == 1:
            return self._product(o, sums)
        loop = b.open_loop(i64(0), i64(2 * spec.terms), i64(2), sums)
        places = [b.offset(DISTANCES, b.op("add", loop.index, i64(operand)), I64) for operand in range(2)]
        to_a, to_b = (b.load(I64, place, 8) for place in places)
        here = o._replace(a=b.offset(o.a, to_a, "i8"), b=b.offset(o.b, to_b, "i8"))
        return b.close_loop(loop, self._product(here, loop.values))

    def _product(self, o: Operands, sums: Sequence[Value]) -> Sequence[Value]:
        """Emit one product, added to sums; return those it ends with."""
        b, lhs = self.b, stored_type(self.spec.lhs, self.spec.target)
        rows = [b.offset(o.a, b.op("mul", o.a_row, i64(row)), lhs) for row in range(self.block.rows)]
        done, whole = (i64(0), o.b, *sums), i64(0)
        if self.spec.apart is not None:
            o, whole = o._replace(a_k=i64(1), ldb=i64(self.spec.apart)), b.op("and", K, i64(-UNROLLED))
            done = self._steps(o, rows, (i64(0), whole), done, UNROLLED)
        _, end, *ends = self._steps(o, rows, (whole, K), done)
        return ends if self.spec.words < 4 else self._less_offsets(end, ends)

    def _steps(
        self,
        o: Operands,
        rows: Sequence[Value],
        reach: tuple[Value, Value],
        begin: Sequence[Value],
        unrolled: int = 1,
    ) -> tuple[Value, ...]:
        """Emit some steps of K from where A and B are read, and sums, on; return the same at the end."""
        b, spec = self.b, self.spec
        held = signs(b) if spec.words == 4 else None
        multiply = {1: multiply_add, 2: multiply_pairs, 4: multiply_bytes}[spec.words]
        ahead = self._ahead(o)
        loop = b.open_loop(*reach, i64(unrolled), begin)
        along, b_row, *running = loop.values
        for step in range(unrolled):
            if step:
                b.do(_IN_ORDER)
            if ahead is not None:
                self._prefetch(b.offset(b_row, ahead, spec.right))
            factors = itertools.product(self._left(rows, along, held), self._right(b_row))
            running = [multiply(b, *pair, total) for pair, total in zip(factors, running, strict=True)]
            along, b_row = b.op("add", along, o.a_k), b.offset(b_row, o.ldb, spec.right)
        return b.close_loop(loop, (along, b_row, *running))

    def _ahead(self, o: Operands) -> Value | None:
        """Return how far ahead B is prefetched, None where it is not."""
        if self.spec.apart is not None:
            return None
        return self._forward() if self.spec.streamed else self.b.op("mul", o.ldb, i64(PREFETCH))

    def _right(self, row: Value) -> list[Value]:
        """Emit the loads of a row of B, in numbers that are summed."""
        b, spec, width = self.b, self.spec, self.block.lanes
        if spec.words > 1:
            return self._words(row)
        places = [(b.offset(row, i64(at * width), spec.right), mask) for at, mask in enumerate(self.masks)]
        loaded = [load_number(b, spec.rhs, spec.target, place, width, mask) for place, mask in places]
        return [self._summable(value) for value in loaded]

    def _left(self, rows: Sequence[Value], along: Value, held: Value | None) -> list[Value]:
        """Emit the loads of an element or a word of each row of A, in every lane."""
        b, spec, width = self.b, self.spec, self.block.lanes
        places = [b.offset(row, along, stored_type(spec.lhs, spec.target)) for row in rows]
        if spec.words == 1:
            return [spread_number(b, spec.lhs, spec.target, place, width) for place in places]
        found = [b.load(I32, place, 4 // spec.words) for place in places]
        return [unsigned(b, word, held) if held is not None else b.splat(word, width) for word in found]

    def _words(self, row: Value) -> list[Value]:
        """Emit the loads of a row of words."""
        b, width = self.b, self.block.lanes
        places = [(b.offset(row, i64(at * width), I32), mask) for at, mask in enumerate(self.masks)]
        return [load(b, vector(I32, width), place, 4, mask) for place, mask in places]

    def _less_offsets(self, end: Value, sums: Sequence[Value]) -> list[Value]:
        """Return sums of bytes less what made them unsigned, which lies behind the words of B."""
        off = self._words(end)
        return [self.b.op("add", total, off[at % self.block.vectors]) for at, total in enumerate(sums)]

    def _summable(self, value: Value) -> Value:
        """Return elements of B as elements of C: integers that meet floats are converted."""
        if element(value.type) == self.spec.total:
            return value
        name = "sitofp" if self.spec.rhs.is_signed_int() else "uitofp"
        return self.b.convert(name, value, vector(F32, lanes(value.type)))

    def _forward(self) -> Value:
        """Return how far ahead elements of B are read next: in the same row, or in one of those after the last."""
        ahead = i64(forward(self.spec.target) // self.spec.rhs.get_byte())
        in_row = self.b.compare("icmp slt", ahead, COLUMNS)
        return self.b.select(in_row, ahead, self.b.op("add", ahead, NEXT_ROWS))

    def _prefetch(self, pointer: Value) -> None:
        """Emit prefetches of one row of a block of B, wherever that is: they never fault."""
        nbytes = 4 if self.spec.words > 1 else self.spec.rhs.get_byte()
        for byte in range(0, self.block.columns * nbytes, LINE):
            fetch(self.b, self.b.offset(pointer, i64(byte), "i8"))

    def _prefetch_sums(self) -> None:
        """Emit prefetches of the block of C below, which comes next: while this one is summed it can come nearer."""
        down = self.b.op("mul", Operands().ldc, i64(self.block.rows))
        for pointer in self._targets():
            fetch(self.b, self.b.offset(pointer, down, self.spec.total), is_written=True)


def forward(target: Target) -> int:
    """Return how many bytes ahead rows that are read once are prefetched."""
    return NEAR_FORWARD if target.fetches_along_rows else FORWARD


def multiply_add(b: Builder, lhs: Value, rhs: Value, total: Value) -> Value:
    """Emit `total + lhs * rhs`, fused where the machine can."""
    if element(total.type) not in INTEGERS:
        return b.intrinsic("llvm.fmuladd", lhs, rhs, total)
    return b.op("add", total, b.op("mul", lhs, rhs))
