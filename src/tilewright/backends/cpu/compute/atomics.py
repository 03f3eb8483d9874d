"""Atomic steps: elements of memory changed while other threads change them too."""

from __future__ import annotations

from tilewright.backends.cpu.compute.traced import Lanes, combine, from_memory, to_memory
from tilewright.backends.cpu.emit.llvm_types import memory_type
from tilewright.native.llvm import I1, I64, Builder, Value, element, i64
from tilewright.ops.atomics import EXCHANGE

_INSTRUCTIONS = {
    "add": "add", "maximum": "max", "minimum": "min", "bitwise_and": "and", "bitwise_or": "or", "bitwise_xor": "xor",
}  # fmt: skip
"""What the processor does to integers in one step, by NumPy function."""


def add_each(b: Builder, pointer: Value, lane: Lanes, stride: Value, mask: Value | None) -> None:
    """Emit the adding of lanes, one after the other, to elements `stride` apart; a mask's lanes are the first ones."""
    if lane.count == 1:
        change(b, pointer, "add", lane)
        return
    type_ = element(lane.value.type)
    held = b.slot(lane.value.type)
    b.store(lane.value, held, 1)
    with b.loop(i64(0), i64(lane.count) if mask is None else _count(b, mask, lane.count), i64(1)) as index:
        at = b.offset(pointer, b.op("mul", index, stride), memory_type(lane.element))
        change(b, at, "add", Lanes(b, b.load(type_, b.offset(held, index, type_), 1), lane.element))


def _count(b: Builder, mask: Value, lanes: int) -> Value:
    """Return how many lanes a mask lets through."""
    bits = b.convert("bitcast", mask, f"i{lanes}")
    return b.convert("zext", b.intrinsic("llvm.ctpop", bits), I64)


def change(b: Builder, pointer: Value, name: str, lane: Lanes) -> Value:
    """Emit the combining of one element with another; return what it was, as it lies in memory."""
    dtype, stored = lane.element, memory_type(lane.element)
    word = f"i{8 * dtype.get_byte()}"
    if name == EXCHANGE:
        new = b.convert("bitcast", to_memory(lane), word)
        return b.convert("bitcast", b.value(word, f"atomicrmw xchg {pointer}, {new} monotonic"), stored)
    if dtype.is_float():
        return b.convert("bitcast", _tried(b, pointer, name, lane, word), stored)
    unsigned = "u" if dtype.is_unsigned_int() and name in ("maximum", "minimum") else ""
    return b.value(word, f"atomicrmw {unsigned}{_INSTRUCTIONS[name]} {pointer}, {to_memory(lane)} monotonic")


def swap(b: Builder, pointer: Value, expected: Lanes, lane: Lanes) -> Value:
    """Emit the replacing of one element where it has the bits of another; return what it was, as it lies in memory."""
    stored, word = memory_type(lane.element), f"i{8 * lane.element.get_byte()}"
    old, new = (b.convert("bitcast", to_memory(each), word) for each in (expected, lane))
    return b.convert("bitcast", b.value(word, f"extractvalue {_swapped(b, pointer, old, new)}, 0"), stored)


def _tried(b: Builder, pointer: Value, name: str, lane: Lanes, word: str) -> Value:
    """Emit the combining of floats, for which there is no instruction, until nobody else came between."""
    stored = memory_type(lane.element)
    seen, again, done = b.slot(word), b.label("again"), b.label("changed")
    now = b.value(word, f"load atomic {word}, {pointer} monotonic, align {lane.element.get_byte()}")
    b.store(now, seen, 1)
    b.do(f"br label %{again}")
    b.begin(again)
    old = b.load(word, seen, 1)
    made = combine(name)(from_memory(b, b.convert("bitcast", old, stored), lane.element), lane)
    new = b.convert("bitcast", to_memory(made), word)
    both = _swapped(b, pointer, old, new)
    b.store(b.value(word, f"extractvalue {both}, 0"), seen, 1)
    b.do(f"br {b.value(I1, f'extractvalue {both}, 1')}, label %{done}, label %{again}")
    b.begin(done)
    return old


def _swapped(b: Builder, pointer: Value, old: Value, new: Value) -> Value:
    return b.value(f"{{ {old.type}, i1 }}", f"cmpxchg {pointer}, {old}, {new} monotonic monotonic")
