"""Word products: matrices of short numbers multiplied in words, and where those are made."""

from __future__ import annotations

from dataclasses import replace

from tilewright.backends.cpu.compute.copies import copy_elements, whole_extents
from tilewright.backends.cpu.compute.gemm import GemmSpec
from tilewright.backends.cpu.compute.matrices import Matrix, run_gemm
from tilewright.backends.cpu.compute.words import PANEL, elements_of_word, emit_words, room_of_words
from tilewright.backends.cpu.emit.arena import Part
from tilewright.backends.cpu.emit.function import FunctionEmitter
from tilewright.backends.cpu.emit.llvm_types import memory_type
from tilewright.backends.cpu.emit.values import Place, Tile, static
from tilewright.dtypes import UINT32
from tilewright.native.llvm import F32, I32, TRUE, Value, i64
from tilewright.records import mutable


@mutable
class WordProduct:
    """A product of matrices whose elements are multiplied some at a time."""

    e: FunctionEmitter
    left: Matrix
    right: Matrix
    lhs: Tile
    rhs: Tile
    valid: tuple[Value, ...]
    k: Value
    elements: int

    def emit(self, target: Matrix, accumulate: Value, work: int) -> None:
        """Emit the product in words, and what is left of K beside them."""
        e, (m, n), parts = self.e, self.valid, list[Part]()
        whole, steps = self._in_words()
        made = self.rhs.words
        if made is None or whole != self.k:
            made = self._made(self.right.pointer, self.right.strides[-2], whole, n, self.rhs.type.shape[-1], parts)
        spec = GemmSpec(
            e.program.target, self.left.dtype, self.left.dtype, static(m), static(n), self.rhs.type.shape[-1]
        )
        in_words, ldc = replace(spec, words=self.elements), target.strides[-2]
        if static(self.left.strides[-1]) != 1:
            self._emit_turned(in_words, made, steps, target, accumulate, parts)
        else:
            a, a_row = self.left.pointer, self.left.strides[-2]
            c = target.pointer, ldc
            by_words = a, a_row, i64(self.elements), made, i64(PANEL), *c, m, n, steps, accumulate
            run_gemm(e, in_words, work, *by_words)
            if whole != self.k:
                self._emit_rest(spec, whole, c)
        for part in parts:
            e.arena.give_back(part)

    def _emit_turned(
        self, spec: GemmSpec, made: Value, steps: Value, target: Matrix, accumulate: Value, parts: list[Part]
    ) -> None:
        """Emit the product of a matrix that lies on its side: words are made of its columns, a panel at a time."""
        e, rows, n = self.e, self.lhs.type.shape[-2], self.valid[-1]
        words = self._made(self.left.pointer, self.left.strides[-1], self.k, i64(rows), rows, parts)
        for first in range(0, rows, PANEL):
            count = min(PANEL, rows - first)
            a = e.b.offset(words, e.b.op("mul", steps, i64(first)), I32)
            c = e.b.offset(target.pointer, e.b.op("mul", target.strides[-2], i64(first)), F32)
            here = a, i64(self.elements), i64(self.elements * PANEL), made, i64(PANEL), c, target.strides[-2]
            run_gemm(e, replace(spec, m=count), 0, *here, i64(count), n, steps, accumulate)

    def _emit_rest(self, spec: GemmSpec, whole: Value, c: tuple[Value, Value]) -> None:
        """Emit what is left of K beside whole words."""
        e, dtype, b_row = self.e, memory_type(self.left.dtype), self.right.strides[-2]
        left = e.b.op("sub", self.k, whole)
        with e.b.when(e.b.compare("icmp sgt", left, i64(0))):
            a = e.b.offset(self.left.pointer, whole, dtype)
            b = e.b.offset(self.right.pointer, e.b.op("mul", whole, b_row), dtype)
            rest = a, self.left.strides[-2], i64(1), b, b_row, *c, *self.valid, left, TRUE
            run_gemm(e, spec, 0, *rest)

    def _made(self, rows: Value, apart: Value, depth: Value, count: Value, most: int, parts: list[Part]) -> Value:
        """Emit the words of a matrix; return where they lie, in a part of their own."""
        e = self.e
        parts.append(e.arena.take(room_of_words(self.elements, self.lhs.type.shape[-1], most)))
        made = e.address(parts[-1][0])
        e.b.invoke(emit_words(e.b.module, self.elements), rows, apart, made, depth, count)
        return made

    def _in_words(self) -> tuple[Value, Value]:
        """Return how much of K is whole words, and how many they are."""
        depth, words = static(self.k), self.elements
        if depth is not None:
            return i64(depth // words * words), i64(depth // words)
        return self.e.b.op("and", self.k, i64(-words)), self.e.b.op("udiv", self.k, i64(words))


def make_words(e: FunctionEmitter, view: Tile) -> bool:
    """Emit the words of a transpose, if products read it so: its neighbours are turned as one word."""
    type_, place = view.type, view.place
    assert place is not None
    rows, columns = type_.shape[-2:]
    is_plain = len(type_.shape) == 2 and place.strides == (1, rows) and view.valid == whole_extents(type_)
    if elements_of_word(e.program.target, type_.dtype, type_.dtype) != 2 or rows % 2 or not is_plain:
        return False
    part = e.arena.take(room_of_words(2, rows, columns))
    view.words = e.address(part[0])
    e.own(view, part)
    steps = rows // 2
    for first in range(0, columns, PANEL):
        source = Place(e.b.offset(place.pointer, i64(first * steps), I32), (1, steps))
        target = Place(e.b.offset(view.words, i64(first * steps), I32), (PANEL, 1))
        copy_elements(e, UINT32, source, target, (i64(steps), i64(min(PANEL, columns - first))))
    return True
