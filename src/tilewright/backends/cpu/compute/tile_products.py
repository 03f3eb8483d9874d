"""Tile products: two matrices in memory multiplied into a third on matrix tiles, brought into the layout of those.

Rows of A are read where they lie, as long as neighbours along K are adjacent; B is made words. A matrix that lies on
its side is turned: A with its columns joined to words on the way, B a word at a time.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from tilewright.backends.cpu.compute.matrices import Panel
from tilewright.backends.cpu.compute.matrix_products import MatrixProduct, ends_early
from tilewright.backends.cpu.compute.matrix_tiles import ROWS
from tilewright.backends.cpu.compute.pack import PackSpec, emit_pack
from tilewright.backends.cpu.compute.tile_gemm import TileGemmSpec, emit_tile_gemm
from tilewright.backends.cpu.compute.turned_rows import SIDE, emit_turned_rows
from tilewright.backends.cpu.compute.words import Words, emit_words, tile_words
from tilewright.backends.cpu.emit.arena import Part
from tilewright.backends.cpu.emit.function import FunctionEmitter
from tilewright.backends.cpu.emit.values import Tile, static
from tilewright.backends.cpu.emit.work import ELEMENTS
from tilewright.native.llvm import I32, TRUE, Value, i64
from tilewright.records import record


def are_turned_words(e: FunctionEmitter, tile: Tile) -> bool:
    """Return whether a tile in memory lies on its side, and its neighbours along K in whole words."""
    strides = e.stored(tile).strides
    return len(strides) == 2 and strides[0] == 1 and strides[1] % tile_words(tile.type.dtype).elements == 0


@record
class TileProduct:
    """One product being emitted, which adds so many products to each element in a step."""

    of: MatrixProduct
    depth: int

    def emit(self, ready: Value | None) -> None:
        """Emit the product, and what is left of K after whole steps; the words of the second matrix may be `ready`."""
        b, k = self.of.e.b, self.of.extents[2]
        known = static(k)
        even = None if known is None else self._even_steps(known)
        if even is not None:
            self._add(k, even, ready)
            return
        whole = b.op("and", k, i64(-self.depth)) if known is None else i64(known // self.depth * self.depth)
        self._add(whole, (b.op("udiv", whole, i64(self.depth)), i64(ROWS)), ready if whole == k else None)
        if whole != k:
            left = b.op("sub", k, whole) if known is None else i64(known % self.depth)
            with b.when(b.compare("icmp sgt", left, i64(0))):
                self._rest(whole, left)

    def _even_steps(self, depth: int) -> tuple[Value, Value] | None:
        """Return in how many steps, of how many words each, the products of an element are added, leaving none."""
        words, left = divmod(depth, self._kind.elements)
        fewest = -(-words // ROWS)
        counts = (steps for steps in range(fewest, 2 * fewest + 1) if words and words % steps == 0)
        steps = next(counts, None) if left == 0 else None
        return None if steps is None else (i64(steps), i64(words // steps))

    def _add(self, depth: Value, steps: tuple[Value, Value], ready: Value | None) -> None:
        """Emit what so many products of each element add, in so many steps of so many words."""
        e, (m, n, _), parts = self.of.e, self.of.extents, list[Part]()
        words = ready if ready is not None else self._words(depth, parts)
        a, c, lhs = self._rows(depth, parts), self.of.c, self.of.dtypes[0]
        a_row, c_row = (e.b.op("mul", panel.across, i64(size)) for panel, size in ((a, lhs.get_byte()), (c, 4)))
        spec = TileGemmSpec(e.program.target, *self.of.dtypes, polled=ends_early(e, prod(self.of.most) // ELEMENTS))
        polled = [e.context] * spec.polled
        places = a.pointer, a_row, words, c.pointer, c_row
        e.b.invoke(emit_tile_gemm(e.b.module, spec), *places, m, n, *steps, self.of.accumulate, *polled)
        if polled:
            e.leave_after_an_error()
        for part in parts:
            e.arena.give_back(part)

    def _rest(self, first: Value, left: Value) -> None:
        """Emit what the last few products of each element add: in one short step as far as they are whole words."""
        b, words = self.of.e.b, self._in_words(left)
        known = static(words)
        in_words = b.op("mul", words, i64(self._kind.elements)) if known is None else i64(known * self._kind.elements)
        if known != 0:
            with b.when(b.compare("icmp sgt", words, i64(0))):
                replace(self, of=self._last(first, in_words))._add(in_words, (i64(1), words), None)
        if in_words != left:
            first, left = b.op("add", first, in_words), b.op("sub", left, in_words)
            with b.when(b.compare("icmp sgt", left, i64(0))):
                self._last(first, left).emit(1, (), 1)

    def _last(self, first: Value, count: Value) -> MatrixProduct:
        """Return the product of some products of each element, added to those before."""
        (m, n, _), most, (a, b) = self.of.extents, (*self.of.most[:2], self.depth), self.of.after(first)
        return replace(self.of, a=a, b=b, extents=(m, n, count), most=most, accumulate=TRUE)

    def _words(self, depth: Value, parts: list[Part]) -> Value:
        """Emit the words of the second matrix; return where they lie."""
        (_, n, _), (_, columns, most), b = self.of.extents, self.of.most, self.of.b
        made = self._room(self._kind.room(most, columns), parts)
        if static(b.along) == 1:
            self._make_words(b.pointer, b.across, made, depth, n)
            return made
        build, steps = self.of.e.b, self._in_words(depth)
        apart = self._in_words(b.along)
        with build.loop(i64(0), n, i64(self._kind.panel)) as first:
            panel = build.offset(made, build.op("mul", first, steps), I32)
            source = build.offset(b.pointer, build.op("mul", first, apart), I32)
            count = build.intrinsic("llvm.smin", build.op("sub", n, first), i64(self._kind.panel))
            self._pack(4, source, i64(1), apart, panel, i64(self._kind.panel), steps, count)
        return made

    def _rows(self, depth: Value, parts: list[Part]) -> Panel:
        """Return the rows of the first matrix, where they lie or as they were brought together."""
        (m, _, _), (rows, _, most), a = self.of.extents, self.of.most, self.of.a
        if static(a.along) == 1:
            return a
        build, size, length = self.of.e.b, self.of.dtypes[0].get_byte(), -(-most // self.depth) * self.depth
        made = self._room(-(-rows // SIDE) * SIDE * length * size, parts)
        if static(a.across) == 1:
            whole, deep = _divides(SIDE, m), _divides(self.depth, depth)
            name = emit_turned_rows(build.module, self._kind.elements, is_whole=whole, is_deep=deep)
            build.invoke(name, a.pointer, a.along, made, i64(length * size), m, depth)
        else:
            self._pack(size, *a, made, i64(length), m, depth)
        return Panel(made, i64(length), i64(1))

    @property
    def _kind(self) -> Words:
        return tile_words(self.of.dtypes[0])

    def _in_words(self, count: Value) -> Value:
        known, elements = static(count), self._kind.elements
        return self.of.e.b.op("udiv", count, i64(elements)) if known is None else i64(known // elements)

    def _room(self, size: int, parts: list[Part]) -> Value:
        parts.append(self.of.e.arena.take(size))
        return self.of.e.address(parts[-1][0])

    def _make_words(self, *args: Value) -> None:
        self.of.e.b.invoke(emit_words(self.of.e.b.module, self._kind), *args)

    def _pack(self, nbytes: int, source: Value, across: Value, *args: Value) -> None:
        module, spec = self.of.e.b.module, PackSpec(self.of.e.program.target, nbytes, transposed=True)
        spec = spec.of(args[-2:]) if static(across) == 1 else spec
        self.of.e.b.invoke(emit_pack(module, spec), source, across, *args)


def _divides(number: int, extent: Value) -> bool:
    known = static(extent)
    return known is not None and known % number == 0
