"""Draws: tiles of random words and of numbers drawn with them, each with the words of Philox that belong to its number.

Every element mixes the whole block that it takes a word of: threads ask each other for nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from tilewright.backends.cuda.ttir import extents
from tilewright.backends.cuda.ttir.convert import as_element
from tilewright.backends.cuda.ttir.elements import UFUNCS, Elements, literal
from tilewright.backends.cuda.ttir.kernel import Kernel
from tilewright.backends.cuda.ttir.recipes import Bound, recipe
from tilewright.backends.cuda.ttir.shape import within
from tilewright.backends.cuda.ttir.text import I32, I64, Text, Value
from tilewright.backends.cuda.ttir.tiles import tile_type
from tilewright.backends.cuda.ttir.values import Extent, Scalar, Tile, padded
from tilewright.core.expr import Call
from tilewright.dtypes import FP32, INT32, INT64, UINT32, UINT64
from tilewright.ops.draw import RANGE, SPAN, STREAMS
from tilewright.ops.philox import INCREMENTS, MULTIPLIERS, WORD

Draw = Callable[[Elements, Elements, Value], Elements]
"""Makes an element of its pair of words, and of whether it is the second of two."""


@recipe("tile.random")
def _random(k: Kernel, call: Call, bound: Bound) -> Tile:
    t, type_ = k.t, tile_type(call)
    shape, asked = padded(type_.shape), bound["valid_shape"]
    valid = within(k, call, k.indices(asked), type_.shape) if asked is not None else list(type_.shape)
    rows, columns = (extents.positions(t, shape, axis) for axis in range(2))
    gap = t.splat(extents.held(t, _gap(t, valid[1])), rows.shape)
    quarter = t.simple("arith.shrui", columns, t.integer(2, I64, columns.shape))
    number = _sum(t, t.simple("arith.muli", rows, gap), quarter, shape)
    low, high = (_joined(k, [bound[f"counter{at}"], bound[f"counter{at + 1}"]]) for at in (0, 2))
    counter = _counted(t, number, low, high)
    words = _mixed(t, counter, [_word(k, bound[f"key{at}"]) for at in range(2)], int(bound["rounds"]))
    late, odd = (_has_bit(t, extents.spread(t, columns, shape), bit) for bit in (2, 1))
    pairs = [t.select(odd, words[at + 1], words[at]) for at in (0, 2)]
    return k.tile(t.select(late, pairs[1], pairs[0]), type_, valid)


def _gap(t: Text, columns: Extent) -> Extent:
    """Return how many blocks a row is after the one above it."""
    if isinstance(columns, int):
        return 64 * (-(-columns // 256) - 1) + (columns - 1) % 64 + 1
    runs = t.simple("arith.shrui", t.simple("arith.addi", columns, t.integer(255)), t.integer(8))
    whole = t.simple("arith.shli", t.simple("arith.subi", runs, t.integer(1)), t.integer(6))
    last = t.simple("arith.andi", t.simple("arith.subi", columns, t.integer(1)), t.integer(63))
    return t.simple("arith.addi", t.simple("arith.addi", whole, last), t.integer(1))


def _sum(t: Text, a: Value, b: Value, shape: Sequence[int]) -> Value:
    return t.simple("arith.addi", extents.spread(t, a, shape), extents.spread(t, b, shape))


def _word(k: Kernel, given: Scalar) -> Value:
    """Return the low word of an integer."""
    return k.t.convert("arith.trunci", extents.held(k.t, k.index(given)), I32)


def _joined(k: Kernel, words: Sequence[Scalar]) -> Value:
    t = k.t
    low, high = (t.convert("arith.extui", _word(k, word), I64) for word in words)
    return t.simple("arith.ori", low, t.simple("arith.shli", high, t.integer(32)))


def _halves(t: Text, value: Value) -> list[Value]:
    """Return the low and the high word of 64 bits."""
    upper = t.simple("arith.shrui", value, t.integer(32, I64, value.shape))
    return [t.convert("arith.trunci", each, I32) for each in (value, upper)]


def _counted(t: Text, number: Value, low: Value, high: Value) -> list[Value]:
    """Return a counter of 128 bits, in two halves, plus some numbers, as four words each."""
    first = t.simple("arith.addi", t.splat(low, number.shape), number)
    carry = t.convert("arith.extui", t.compare("cmpi ult", first, number), I64)
    second = t.simple("arith.addi", t.splat(high, number.shape), carry)
    return [*_halves(t, first), *_halves(t, second)]


def _mixed(t: Text, block: Sequence[Value], key: Sequence[Value], rounds: int) -> tuple[Value, ...]:
    """Return the words of blocks after so many rounds."""
    a, b, c, d = block
    shape = a.shape
    factors = [literal(t, factor, a) for factor in MULTIPLIERS]
    for turn in range(rounds):
        k0, k1 = (
            t.splat(t.simple("arith.addi", word, literal(t, turn * step & WORD, word)), shape)
            for word, step in zip(key, INCREMENTS, strict=True)
        )
        (low, low_up), (high, high_up) = (
            (t.simple("arith.muli", word, factor), t.simple("tt.mulhiui", word, factor))
            for word, factor in zip((a, c), factors, strict=True)
        )
        first = t.simple("arith.xori", t.simple("arith.xori", high_up, b), k0)
        third = t.simple("arith.xori", t.simple("arith.xori", low_up, d), k1)
        a, b, c, d = first, high, third, low
    return a, b, c, d


def _has_bit(t: Text, value: Value, bit: int) -> Value:
    masked = t.simple("arith.andi", value, t.integer(bit, I64, value.shape))
    return t.compare("cmpi ne", masked, t.integer(0, I64, value.shape))


@recipe("tile.rand")
def _rand(k: Kernel, call: Call, bound: Bound) -> Tile:
    def uniform(first: Elements, second: Elements, odd: Value) -> Elements:
        return _fraction(first.of(k.t.select(odd, second.value, first.value)))

    return _drawn(k, call, bound, uniform)


def _upper(word: Elements) -> Elements:
    """Return the upper 24 bits of words."""
    return UFUNCS["right_shift"](word, word.like(8))


def _fraction(word: Elements, more: int = 0) -> Elements:
    return _single(_upper(word) + more) * 2.0**-24


def _single(whole: Elements) -> Elements:
    return whole.of(as_element(whole.t, whole.value, whole.element, FP32), FP32)


@recipe("tile.randn")
def _randn(k: Kernel, call: Call, bound: Bound) -> Tile:
    def normal(first: Elements, second: Elements, odd: Value) -> Elements:
        """Return a radius, by the first word, times the cosine or sine of an angle, by the second."""
        radius = UFUNCS["sqrt"](UFUNCS["log"](_fraction(first, 1)) * -2.0)
        turn = _upper(second).of(_upper(second).value, INT32)
        quarter = UFUNCS["right_shift"](turn + (1 << 21), turn.like(22))
        left = turn - UFUNCS["left_shift"](quarter, quarter.like(22))
        angle = _single(left) * (math.pi / 2 * 2.0**-22)
        one = turn.like(1).value
        quarter = quarter + turn.of(k.t.select(odd, turn.like(0).value, one))
        wave = angle.function("where", ((quarter & 1) != 0, UFUNCS["cos"](angle), UFUNCS["sin"](angle)))
        return radius * wave.function("where", ((quarter & 2) != 0, -wave, wave))

    return _drawn(k, call, bound, normal)


@recipe("tile.randint")
def _randint(k: Kernel, call: Call, bound: Bound) -> Tile:
    t = k.t
    low, high = (extents.held(t, k.index(bound[name])) for name in ("low", "high"))
    span = t.simple("arith.subi", high, low)
    wrong = t.simple("arith.ori", t.compare("cmpi sge", low, high), t.compare("cmpi ugt", span, t.integer(SPAN)))
    k.fail(wrong, f"there is no number from low up to high\n{RANGE}", call.span)

    def whole(first: Elements, second: Elements, odd: Value) -> Elements:
        """Return a word of 32 bits scaled to the numbers there are, from the least on."""
        word = t.convert("arith.extui", t.select(odd, second.value, first.value), I64)
        wide = first.of(t.simple("arith.muli", word, t.splat(span, word.shape)), UINT64)
        scaled = UFUNCS["right_shift"](wide, wide.like(32)).value
        found = t.simple("arith.addi", scaled, t.splat(low, word.shape))
        return first.of(t.convert("arith.trunci", found, I32), INT32)

    return _drawn(k, call, bound, whole)


def _drawn(k: Kernel, call: Call, bound: Bound, draw: Draw) -> Tile:
    t, type_ = k.t, tile_type(call)
    number, valid = _numbers(k, call, bound)
    seed = extents.held(t, k.index(bound["seed"]))
    blocks = t.simple("arith.shrsi", number, t.integer(2, I64, number.shape))
    counter = _counted(t, blocks, t.integer(0), t.integer(STREAMS[call.op.spec.name]))
    words = _mixed(t, counter, _halves(t, seed), 10)
    late, odd = (_has_bit(t, number, bit) for bit in (2, 1))
    first, second = (Elements(t, t.select(late, words[at + 2], words[at]), UINT32) for at in range(2))
    return k.tile(draw(first, second, odd).value, type_, valid)


def _numbers(k: Kernel, call: Call, bound: Bound) -> tuple[Value, Sequence[Extent]]:
    """Return the number of each element, and how many are valid."""
    t, type_, counters = k.t, tile_type(call), bound["counters"]
    if counters is not None:
        return as_element(t, counters.value, counters.type.dtype, INT64), list(counters.valid)
    shape, asked = padded(type_.shape), bound["valid_shape"]
    valid = within(k, call, k.indices(asked), type_.shape) if asked is not None else list(type_.shape)
    pitch: Extent = type_.shape[-1] if bound["pitch"] is None else k.index(bound["pitch"])
    number, apart = extents.positions(t, shape, len(shape) - 1), pitch
    for axis in reversed(range(len(shape) - 1)):
        steps = extents.positions(t, shape, axis)
        steps = t.simple("arith.muli", steps, t.splat(extents.held(t, apart), steps.shape))
        number = _sum(t, number, steps, [max(a, b) for a, b in zip(number.shape, steps.shape, strict=True)])
        apart = extents.times(t, apart, type_.shape[axis])
    number = extents.spread(t, number, shape)
    offset = t.splat(extents.held(t, k.index(bound["offset"])), shape)
    return t.simple("arith.addi", number, offset), valid
