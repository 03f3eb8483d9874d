"""Draws: tiles of random numbers, each drawn with the words that belong to its number."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tilewright.backends.cpu.compute.addresses import moved, view_of
from tilewright.backends.cpu.compute.copies import known_or, rows_of, tile_type, whole_extents
from tilewright.backends.cpu.compute.element_gathers import adjacent
from tilewright.backends.cpu.compute.indexed import numbers, strips
from tilewright.backends.cpu.compute.philox import Draw, draw_each, emit_words
from tilewright.backends.cpu.compute.storage import store
from tilewright.backends.cpu.compute.trigonometry import wave
from tilewright.backends.cpu.compute.vectormath import log, sqrt
from tilewright.backends.cpu.compute.views import within
from tilewright.backends.cpu.emit.function import FunctionEmitter, lowers
from tilewright.backends.cpu.emit.handlers import Bound
from tilewright.backends.cpu.emit.values import Tensor, Tile
from tilewright.core.expr import Call
from tilewright.native.llvm import I32, I64, Builder, Value, i64, lanes, vector
from tilewright.native.terms import Term
from tilewright.ops.draw import RANGE, SPAN, STREAMS
from tilewright.ops.philox import WORD

BLOCK = 4
"""How many elements are drawn from one block."""


@lowers("tile.rand")
def _rand(e: FunctionEmitter, call: Call, bound: Bound) -> Tile:
    return _drawn(e, call, bound, Draw("rand", (), _uniform))


@lowers("tile.randn")
def _randn(e: FunctionEmitter, call: Call, bound: Bound) -> Tile:
    return _drawn(e, call, bound, Draw("randn", (), _normal))


@lowers("tile.randint")
def _randint(e: FunctionEmitter, call: Call, bound: Bound) -> Tile:
    low, high = e.index(bound["low"]), e.index(bound["high"])
    span = e.b.op("sub", high, low)
    wrong = e.b.op("or", e.b.compare("icmp sge", low, high), e.b.compare("icmp ugt", span, i64(SPAN)))
    if e.checked:
        e.stop(wrong, f"there is no number from low up to high\n{RANGE}", call)
    return _drawn(e, call, bound, Draw("randint", (low, span), _whole))


def _drawn(e: FunctionEmitter, call: Call, bound: Bound, draw: Draw) -> Tile:
    seed, type_ = e.index(bound["seed"]), tile_type(call)
    key = e.b.op("and", seed, i64(WORD)), e.b.op("lshr", seed, i64(32))
    if bound["counters"] is not None:
        return _counted(e, call, bound["counters"], key, draw)
    asked = e.indices(bound["valid_shape"] or ())
    whole = whole_extents(type_)
    valid = [within(e, call, extent, most) for extent, most in zip(asked, whole, strict=False)]
    result = e.fresh(type_, known_or(type_, valid or whole))
    offset, pitch = e.index(bound["offset"]), whole[-1] if bound["pitch"] is None else e.index(bound["pitch"])
    made, name = view_of(e, result), emit_words(e.b.module, e.lanes // 2, 10, draw)
    some, stream = e.b.slot(f"[{BLOCK} x i32]"), i64(STREAMS[draw.name])
    with rows_of(e, result.valid[:-1]) as rows:
        number: Value = i64(0)
        for row, extent in zip(rows, whole[:-1], strict=True):
            number = e.b.op("add", e.b.op("mul", number, extent), row)
        first = e.b.op("add", offset, e.b.op("mul", number, pitch))
        row = Row(e, name, (*key, i64(0), stream, *draw.given))
        row.draw(moved(e, made, (*rows, i64(0))), first, result.valid[-1], some)
    return result


class Row:
    """Rows being drawn by a function that writes whole blocks."""

    def __init__(self, e: FunctionEmitter, name: str, given: Sequence[Value]) -> None:
        self.e, self.name, self.given = e, name, given

    def draw(self, to: Value, first: Value, count: Value, some: Value) -> None:
        """Emit so many elements from a number on: the rest of a block that has begun, by way of `some`, and others."""
        b = self.e.b
        skipped = b.op("and", first, i64(BLOCK - 1))
        left = b.op("and", b.op("sub", i64(BLOCK), skipped), i64(BLOCK - 1))
        head = b.intrinsic("llvm.smin", left, count)
        with b.when(b.compare("icmp sgt", head, i64(0))):
            b.invoke(self.name, some, b.op("ashr", first, i64(2)), i64(BLOCK), *self.given)
            with b.loop(i64(0), head, i64(1)) as at:
                taken = b.load(I32, b.offset(some, b.op("add", skipped, at), I32), 4)
                b.store(taken, b.offset(to, at, I32), 4)
        begin = b.op("ashr", b.op("add", first, i64(BLOCK - 1)), i64(2))
        b.invoke(self.name, b.offset(to, head, I32), begin, b.op("sub", count, head), *self.given)


def _counted(e: FunctionEmitter, call: Call, counters: Tile, key: Sequence[Value], draw: Draw) -> Tile:
    """Emit an element for each number of a tile."""
    places: Tensor = view_of(e, adjacent(e, counters))
    result = e.fresh(tile_type(call), counters.valid)
    made, dtype = view_of(e, result), places.dtype
    with rows_of(e, result.valid[:-1]) as rows:
        come, go = (moved(e, view, (*rows, i64(0))) for view in (places, made))

        def strip(column: Value, width: int, mask: Value | None) -> None:
            at = e.b.offset(come, column, f"i{8 * dtype.get_byte()}")
            found = numbers(e, at, dtype, width, mask, 64)
            drawn = draw_each(e.b, found, key, STREAMS[draw.name], draw)
            store(e.b, drawn, e.b.offset(go, column, I32), 4, mask)

        strips(e, result.valid[-1], e.lanes // 2, strip)
    return result


def _uniform(b: Builder, first: Value, second: Value, odd: Value, given: tuple[Value, ...]) -> Value:
    word = Term(b, b.select(odd, second, first))
    return (word.shifted_down(8).to("sitofp", "float") * 2.0**-24).value


def _normal(b: Builder, first: Value, second: Value, odd: Value, given: tuple[Value, ...]) -> Value:
    """Return a radius, by the first word, times the cosine or sine of an angle, by the second."""
    size = (Term(b, first).shifted_down(8) + 1).to("sitofp", "float") * 2.0**-24
    radius = Term(b, sqrt(b, (Term(b, log(b, size.value)) * -2.0).value))
    turn = Term(b, second).shifted_down(8)
    quarter = (turn + (1 << 21)) >> 22
    angle = (turn - (quarter << 22)).to("sitofp", "float") * (math.pi / 2 * 2.0**-22)
    even = Term(b, b.convert("zext", b.op("xor", odd, _ones(odd.type)), first.type))
    return (radius * wave(angle, quarter + even)).value


def _ones(type_: str) -> Value:
    return Value(type_, f"splat ({type_.split(' x ')[1].rstrip('>')} 1)" if lanes(type_) > 1 else "true")


def _whole(b: Builder, first: Value, second: Value, odd: Value, given: tuple[Value, ...]) -> Value:
    """Return a word of 32 bits scaled to the numbers there are, from the least on."""
    low, span = given
    count = lanes(first.type)
    word = b.convert("zext", b.select(odd, second, first), vector(I64, count))
    scaled = b.op("lshr", b.op("mul", word, b.splat(span, count)), Value(word.type, "splat (i64 32)"))
    return b.convert("trunc", b.op("add", scaled, b.splat(low, count)), first.type)
