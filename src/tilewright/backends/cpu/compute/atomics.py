"""Atomic sums: elements added to memory that other threads add to at the same time."""

from __future__ import annotations

from tilewright.backends.cpu.compute.traced import Lanes, from_memory, to_memory
from tilewright.backends.cpu.emit.llvm_types import memory_type
from tilewright.native.llvm import I1, I64, Builder, Value, element, i64


def add_each(b: Builder, pointer: Value, lane: Lanes, stride: Value, mask: Value | None) -> None:
    """Emit the adding of lanes, one after the other, to elements `stride` apart; a mask's lanes are the first ones."""
    if lane.count == 1:
        _add(b, pointer, lane)
        return
    type_ = element(lane.value.type)
    held = b.slot(lane.value.type)
    b.store(lane.value, held, 1)
    with b.loop(i64(0), i64(lane.count) if mask is None else _count(b, mask, lane.count), i64(1)) as index:
        at = b.offset(pointer, b.op("mul", index, stride), memory_type(lane.element))
        _add(b, at, Lanes(b, b.load(type_, b.offset(held, index, type_), 1), lane.element))


def _count(b: Builder, mask: Value, lanes: int) -> Value:
    """Return how many lanes a mask lets through."""
    bits = b.convert("bitcast", mask, f"i{lanes}")
    return b.convert("zext", b.intrinsic("llvm.ctpop", bits), I64)


def _add(b: Builder, pointer: Value, lane: Lanes) -> None:
    """Emit the adding of one element; floats, which no instruction adds, until nobody else came between."""
    if not lane.element.is_float():
        b.do(f"atomicrmw add {pointer}, {to_memory(lane)} monotonic")
        return
    word, stored = f"i{lane.element.bits}", memory_type(lane.element)
    seen, again, done = b.slot(word), b.label("again"), b.label("added")
    now = b.value(word, f"load atomic {word}, {pointer} monotonic, align {lane.element.get_byte()}")
    b.store(now, seen, 1)
    b.do(f"br label %{again}")
    b.begin(again)
    old = b.load(word, seen, 1)
    total = to_memory(from_memory(b, b.convert("bitcast", old, stored), lane.element) + lane)
    new = b.convert("bitcast", total, word)
    swap = b.value(f"{{ {word}, i1 }}", f"cmpxchg {pointer}, {old}, {new} monotonic monotonic")
    b.store(b.value(word, f"extractvalue {swap}, 0"), seen, 1)
    b.do(f"br {b.value(I1, f'extractvalue {swap}, 1')}, label %{done}, label %{again}")
    b.begin(done)
