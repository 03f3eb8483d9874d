"""Philox: random words, some blocks of four at a time, their words in the low halves of 64-bit lanes.

Multiplying such lanes takes one instruction each, and leaves both halves of a product where the next round wants them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilewright.backends.cpu.compute.copies import element_at, known_or, tile_type
from tilewright.backends.cpu.compute.storage import first_lanes, splat, store
from tilewright.backends.cpu.compute.views import within
from tilewright.backends.cpu.emit.function import FunctionEmitter, lowers
from tilewright.backends.cpu.emit.handlers import Bound
from tilewright.backends.cpu.emit.values import Tile
from tilewright.core.expr import Call
from tilewright.native.llvm import I1, I32, I64, PTR, Builder, Module, Value, i64, vector
from tilewright.native.llvm import lanes as vector_lanes
from tilewright.ops.philox import INCREMENTS, MULTIPLIERS, WORD
from tilewright.records import record

_TO, _FIRST, _COUNT = Value(PTR, "%to"), Value(I64, "%first"), Value(I64, "%count")
_KEY = [Value(I64, f"%key{number}") for number in range(2)]
_LOW, _HIGH = Value(I64, "%low"), Value(I64, "%high")

TOGETHER = 2
"""How many vectors of blocks are mixed at once: a round of one waits for its products."""


@lowers("tile.random")
def _random(e: FunctionEmitter, call: Call, bound: Bound) -> Tile:
    type_, b = tile_type(call), e.b
    asked = [e.index(extent) for extent in bound["valid_shape"] or ()]
    checked = [within(e, call, extent, i64(most)) for extent, most in zip(asked, type_.shape, strict=False)]
    valid = known_or(type_, checked or [i64(extent) for extent in type_.shape])
    result = e.fresh(type_, valid)
    words = [b.op("and", e.index(bound[name]), i64(WORD)) for name in ("key0", "key1", *_COUNTER)]
    low, high = (b.op("or", words[at], b.op("shl", words[at + 1], i64(32))) for at in (2, 4))
    name = emit_words(b.module, e.lanes // 2, bound["rounds"])
    assert result.place is not None
    rows, columns = valid
    gap = _gap(b, columns)
    with b.loop(i64(0), rows, i64(1)) as row:
        to = element_at(e, type_.dtype, result.place, (row, i64(0)))
        b.invoke(name, to, b.op("mul", row, gap), columns, *words[:2], low, high)
    return result


_COUNTER = ("counter0", "counter1", "counter2", "counter3")


def _gap(b: Builder, columns: Value) -> Value:
    """Emit how many blocks a row is after the one above it."""
    runs = b.op("lshr", b.op("add", columns, i64(255)), i64(8))
    whole = b.op("shl", b.op("sub", runs, i64(1)), i64(6))
    last = b.op("and", b.op("sub", columns, i64(1)), i64(63))
    return b.op("add", b.op("add", whole, last), i64(1))


@record
class Draw:
    """What is made of random words: a name, what else it takes, and the code that makes an element of a pair."""

    name: str
    given: tuple[Value, ...]
    emit: Callable[[Builder, Value, Value, Value, tuple[Value, ...]], Value]
    """From the first and the second word of each element's pair, and whether it is the second element of two."""


def emit_words(module: Module, lanes: int, rounds: int, draw: Draw | None = None) -> str:
    """Return the name of a function that writes random words, or what is drawn with them, adding it to the module once.

    Its parameters are `ptr to, i64 first, i64 count, i64 key0, i64 key1, i64 low, i64 high`, then what the draw takes:
    so many words of the blocks from number `first` on, after a counter in two halves.
    """
    name = f"philox{rounds}" if draw is None else f"philox{rounds}.{draw.name}"
    if name not in module.defined:
        given = tuple(Value(value.type, f"%given{number}") for number, value in enumerate(draw.given if draw else ()))
        b = Builder(module, name, (_TO, _FIRST, _COUNT, *_KEY, _LOW, _HIGH, *given), attrs="noinline nounwind")
        step = 4 * lanes * TOGETHER
        whole = b.op("and", _COUNT, i64(-step))
        with b.loop(i64(0), whole, i64(step)) as at:
            for turn, words in enumerate(_blocks(b, at, lanes, rounds, TOGETHER)):
                here = b.op("add", at, i64(turn * 4 * lanes))
                b.store(_drawn(b, words, draw, given), b.offset(_TO, here, I32), 4)
        with b.loop(whole, _COUNT, i64(4 * lanes)) as at:
            (words,) = _blocks(b, at, lanes, rounds, 1)
            left = first_lanes(b, b.op("sub", _COUNT, at), 4 * lanes)
            store(b, _drawn(b, words, draw, given), b.offset(_TO, at, I32), 4, left)
        b.finish()
    return name


def _drawn(b: Builder, words: Value, draw: Draw | None, given: tuple[Value, ...]) -> Value:
    """Emit what is made of words in order: of each two neighbours the pair."""
    if draw is None:
        return words
    count = vector_lanes(words.type)
    first, second = (_repeated(b, words, [lane - lane % 2 + part for lane in range(count)]) for part in range(2))
    odd = Value(vector(I1, count), f"<{', '.join(f'i1 {lane % 2}' for lane in range(count))}>")
    return draw.emit(b, first, second, odd, given)


def _repeated(b: Builder, words: Value, order: Sequence[int]) -> Value:
    lanes = ", ".join(f"i32 {lane}" for lane in order)
    return b.value(words.type, f"shufflevector {words}, {words}, <{len(order)} x i32> <{lanes}>")


def draw_each(b: Builder, numbers: Value, key: Sequence[Value], stream: int, draw: Draw) -> Value:
    """Emit the elements of any numbers, in 64-bit lanes: one of a block of four each."""
    lanes = vector_lanes(numbers.type)
    block = mixed(b, _counted(b, b.op("ashr", numbers, splat(numbers.type, 2)), i64(0), i64(stream)), key, 10)
    words = [b.convert("trunc", word, vector(I32, lanes)) for word in block]
    late, odd = (b.compare("icmp ne", b.op("and", numbers, bit), splat(numbers.type, 0)) for bit in _bits(numbers.type))
    first, second = (b.select(late, words[at + 2], words[at]) for at in range(2))
    return draw.emit(b, first, second, odd, draw.given)


def _bits(type_: str) -> tuple[Value, Value]:
    return splat(type_, 2), splat(type_, 1)


def _blocks(b: Builder, at: Value, lanes: int, rounds: int, count: int) -> list[Value]:
    """Emit some vectors of blocks from a word on; return their words in order."""
    type_ = vector(I64, lanes)
    each = Value(type_, f"<{', '.join(f'i64 {number}' for number in range(lanes))}>")
    first = b.op("add", _FIRST, b.op("lshr", at, i64(2)))
    blocks: list[list[Value]] = []
    for turn in range(count):
        number = b.op("add", b.splat(b.op("add", first, i64(turn * lanes)), lanes), each)
        blocks.append(_counted(b, number, _LOW, _HIGH))
    for turn in range(rounds):
        keys = [_round_key(b, key, turn * step, lanes) for key, step in zip(_KEY, INCREMENTS, strict=True)]
        blocks = [_mixed(b, block, keys) for block in blocks]
    return [_in_order(b, block, lanes) for block in blocks]


def mixed(b: Builder, block: list[Value], key: Sequence[Value], rounds: int) -> list[Value]:
    """Emit all rounds of a vector of blocks."""
    lanes = vector_lanes(block[0].type)
    for turn in range(rounds):
        block = _mixed(b, block, [_round_key(b, k, turn * s, lanes) for k, s in zip(key, INCREMENTS, strict=True)])
    return block


def _counted(b: Builder, number: Value, low: Value, high: Value) -> list[Value]:
    """Emit a counter of 128 bits, in two halves, plus some numbers, a word in each lane."""
    lanes = vector_lanes(number.type)
    low = b.op("add", b.splat(low, lanes), number)
    carry = b.convert("zext", b.compare("icmp ult", low, number), number.type)
    high = b.op("add", b.splat(high, lanes), carry)
    return [low, _upper(b, low), high, _upper(b, high)]


def _upper(b: Builder, value: Value) -> Value:
    return b.op("lshr", value, splat(value.type, 32))


def _round_key(b: Builder, key: Value, step: int, lanes: int) -> Value:
    return b.splat(b.op("add", key, i64(step & WORD)), lanes)


def _mixed(b: Builder, block: list[Value], keys: list[Value]) -> list[Value]:
    """Emit one round; what is above the words of lanes does not matter."""
    low, high = (
        b.op("mul", b.op("and", word, splat(word.type, WORD)), splat(word.type, factor))
        for word, factor in zip((block[0], block[2]), MULTIPLIERS, strict=True)
    )
    first = b.op("xor", b.op("xor", _upper(b, high), block[1]), keys[0])
    third = b.op("xor", b.op("xor", _upper(b, low), block[3]), keys[1])
    return [first, high, third, low]


def _in_order(b: Builder, block: list[Value], lanes: int) -> Value:
    """Return the words of blocks one after the other."""
    pairs = [
        b.op("or", b.op("and", even, splat(even.type, WORD)), b.op("shl", odd, splat(odd.type, 32)))
        for even, odd in (block[:2], block[2:])
    ]
    order = ", ".join(f"i32 {number + part * lanes}" for number in range(lanes) for part in range(2))
    both = vector(I64, 2 * lanes)
    joined = b.value(both, f"shufflevector {pairs[0]}, {pairs[1]}, <{2 * lanes} x i32> <{order}>")
    return b.convert("bitcast", joined, vector(I32, 4 * lanes))
