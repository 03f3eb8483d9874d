"""Matrix products: two matrices in memory multiplied into a third, in the way that suits their sizes and elements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tilewright.backends.cpu.compute.gemm import emit_gemm
from tilewright.backends.cpu.compute.gemm_blocks import GemmSpec
from tilewright.backends.cpu.compute.matrices import Panel
from tilewright.backends.cpu.compute.micro_kernels import Operands
from tilewright.backends.cpu.compute.pack import PackSpec, emit_pack
from tilewright.backends.cpu.compute.words import PANEL, Words, emit_offsets, emit_words
from tilewright.backends.cpu.emit.arena import Part
from tilewright.backends.cpu.emit.function import FunctionEmitter
from tilewright.backends.cpu.emit.llvm_types import memory_type
from tilewright.backends.cpu.emit.values import static
from tilewright.backends.cpu.emit.work import ELEMENTS, LONG
from tilewright.dtypes import DataType
from tilewright.native.llvm import F32, I32, TRUE, Value, i64
from tilewright.records import record

STRIP = 8
"""Rows of B that meet those few at a time."""


@record
class MatrixProduct:
    """One product being emitted; neighbours along the rows of `b` and `c` are adjacent."""

    e: FunctionEmitter
    a: Panel
    b: Panel
    c: Panel
    extents: tuple[Value, Value, Value]
    """How many rows, columns and products of each element there are, and how many at most."""
    most: tuple[int, int, int]
    dtypes: tuple[DataType, DataType]
    accumulate: Value
    """Whether it is added to what `c` holds."""

    def emit(
        self, words: int, distances: Sequence[Value], terms: int, ready: Value | None = None, *, in_strips: bool = False
    ) -> None:
        """Emit the product, or the sum of as many as lie at some distances, several elements at a time in words.

        Those of the second matrix may be `ready`. A few rows meet it `in_strips`, as it lies.
        """
        m, n, k = self.extents
        spec = GemmSpec(self.e.program.target, *self.dtypes, static(m), static(n), self.most[1], terms=terms)
        if words > 1:
            self._in_words(spec, words, ready)
        elif in_strips and terms == 1:
            self._in_strips(replace(spec, streamed=True))
        else:
            self._run(spec, self.a, self.b, k, self.accumulate, *distances)

    def _run(self, spec: GemmSpec, a: Panel, b: Panel, k: Value, accumulate: Value, *distances: Value) -> None:
        """Emit a product of the same rows and columns."""
        e, (m, n, _), (rows, columns, depth) = self.e, self.extents, self.most
        work = spec.terms * rows * columns * (static(k) or depth) // ELEMENTS
        places = *a, b.pointer, b.across, self.c.pointer, self.c.across
        run_gemm(e, spec, work, *places, m, n, k, accumulate, *distances)

    def _in_strips(self, spec: GemmSpec) -> None:
        """Emit the product of a few rows, some rows of B at a time: those are read once, one after the other."""
        build, k = self.e.b, self.extents[2]
        some = k if static(k) else build.intrinsic("llvm.smax", k, i64(1))  # a sum of nothing is zero
        with build.loop(i64(0), some, i64(STRIP)) as first:
            a, b = self.after(first)
            depth = build.intrinsic("llvm.smin", i64(STRIP), build.op("sub", k, first))
            goes_on = build.op("or", self.accumulate, build.compare("icmp sgt", first, i64(0)))
            self._run(spec, a, b, depth, goes_on)

    def _in_words(self, spec: GemmSpec, words: int, ready: Value | None) -> None:
        """Emit the product in words, and what is left of K beside them."""
        e, (_, n, k), parts = self.e, self.extents, list[Part]()
        whole, steps = e.b.op("and", k, i64(-words)), e.b.op("udiv", k, i64(words))
        if (depth := static(k)) is not None:
            whole, steps = i64(depth // words * words), i64(depth // words)
        made = ready if whole == k else None
        is_turned = static(self.b.across) == 1 != static(self.b.along)  # not a column by itself
        if made is None and is_turned:
            made = self._turned_words(Words(words), steps, parts)
        made = made or self._words(words, self.b.pointer, self.b.across, (whole, n), self.most[1], parts)
        b, in_words = Panel(made, i64(PANEL), i64(1)), replace(spec, words=words)
        if static(self.a.along) == 1:
            self._run(in_words, self.a._replace(along=i64(words)), b, steps, self.accumulate)
        else:
            turned = self._words(words, self.a.pointer, self.a.along, (whole, i64(self.most[0])), self.most[0], parts)
            self._by_panels(in_words, turned, b, steps)
        if whole != k:
            left = e.b.op("sub", k, whole)
            with e.b.when(e.b.compare("icmp sgt", left, i64(0))):
                self._run(spec, *self.after(whole), left, TRUE)
        for part in parts:
            e.arena.give_back(part)

    def _words(
        self, words: int, rows: Value, apart: Value, extents: tuple[Value, Value], most: int, parts: list[Part]
    ) -> Value:
        """Emit the words of a matrix; return where they lie, in a part of their own."""
        parts.append(self.e.arena.take(Words(words).room(self.most[2], most)))
        made = self.e.address(parts[-1][0])
        self.e.b.invoke(emit_words(self.e.b.module, Words(words)), rows, apart, made, *extents)
        return made

    def _turned_words(self, words: Words, steps: Value, parts: list[Part]) -> Value:
        """Emit the words of a second matrix that lies on its side, where they are neighbours already."""
        build, module, n, (_, columns, depth) = self.e.b, self.e.b.module, self.extents[1], self.most
        parts.append(self.e.arena.take(words.room(depth, columns)))
        made, along = self.e.address(parts[-1][0]), static(self.b.along)
        assert along is not None and along % words.elements == 0
        apart = i64(along // words.elements)
        turn = emit_pack(module, PackSpec(self.e.program.target, 4, transposed=True))
        with build.loop(i64(0), n, i64(PANEL)) as first:
            panel = build.offset(made, words.place(build, steps, first), I32)
            source = build.offset(self.b.pointer, build.op("mul", first, apart), I32)
            count = build.intrinsic("llvm.smin", build.op("sub", n, first), i64(PANEL))
            build.invoke(turn, source, i64(1), apart, panel, i64(PANEL), steps, count)
            if words.is_offset:
                build.invoke(emit_offsets(module), panel, steps)
        return made

    def _by_panels(self, spec: GemmSpec, turned: Value, b: Panel, steps: Value) -> None:
        """Emit the product of a matrix that lay on its side, whose columns are in words now, some of its rows each."""
        build, (_, n, k), (rows, *others) = self.e.b, self.extents, self.most
        for first in range(0, rows, PANEL):
            count, down = min(PANEL, rows - first), build.op("mul", self.c.across, i64(first))
            left = build.offset(turned, build.op("mul", steps, i64(first)), I32)
            a, c = Panel(left, i64(spec.words), i64(spec.words * PANEL)), build.offset(self.c.pointer, down, F32)
            some = replace(self, c=self.c._replace(pointer=c), extents=(i64(count), n, k), most=(count, *others))
            some._run(replace(spec, m=count), a, b, steps, self.accumulate)

    def after(self, first: Value) -> tuple[Panel, Panel]:
        """Return the matrices from a product of each element on."""
        build, (lhs, rhs) = self.e.b, self.dtypes
        a = build.offset(self.a.pointer, build.op("mul", first, self.a.along), memory_type(lhs))
        b = build.offset(self.b.pointer, build.op("mul", first, self.b.across), memory_type(rhs))
        return self.a._replace(pointer=a), self.b._replace(pointer=b)


def ends_early(e: FunctionEmitter, work: int) -> bool:
    """Return whether a product that is so much work ends with its program."""
    return e.program.polled and work >= LONG


def run_gemm(e: FunctionEmitter, spec: GemmSpec, work: int, *args: Value) -> None:
    """Emit a product of matrices; one that is much work ends with its program."""
    polled = ends_early(e, work)
    given = Operands(*args[: len(Operands._fields)])
    apart = static(given.ldb) if spec.may_unroll and static(given.a_k) == 1 else None
    name = emit_gemm(e.b.module, replace(spec, polled=polled, apart=apart))
    e.b.invoke(name, *args, *[e.context] * polled)
    if polled:
        e.leave_after_an_error()
