"""Map code: the descriptors by which a kernel loads blocks of tensors, made by the host when it starts the kernel.

A descriptor is a function of its tensor's address, extents and stride, and of what is the same at every launch of one
place: element type, box and swizzling. So each place keeps the last ones that it made, by those four words, and nothing
makes a kept one wrong, be the memory freed and used again. The driver copies descriptors when a kernel is launched or
captured; until then they lie in the frame of the call, so that other threads may replace what is kept meanwhile.

    slot := descriptor; address, rows, columns, bytes between rows; whether it is empty, held, or in use by a thread
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

from tilewright.backends.cpu.emit.function import FunctionEmitter
from tilewright.backends.cuda.host.graph_words import MAP_WORDS
from tilewright.backends.cuda.host.launch_code import TABLE, Table
from tilewright.backends.cuda.host.plane_code import rows_of
from tilewright.backends.cuda.ttir.parameters import Map
from tilewright.native import llvm
from tilewright.native.llvm import PTR, Module, i64

DRIVER = ("cuTensorMapEncodeTiled",)
"""The functions of the driver that make descriptors."""

_BOX = 3
"""Words of a box: rows, columns, swizzling."""
_KINDS = {1: 0, 2: 1, 4: 2}
"""Unsigned integers as the driver numbers them, by their bytes: descriptors only move elements."""

_DECLARED = "declare i32 @cuTensorMapEncodeTiled(ptr, i32, i32, ptr, ptr, ptr, ptr, ptr, i32, i32, i32, i32)"


class Slot(IntEnum):
    """The words of a kept descriptor, and how many there are: as many bytes as it is aligned to, or a multiple."""

    MAP = 0
    KEY = MAP_WORDS
    STATE = MAP_WORDS + 4
    END = MAP_WORDS + 8


EMPTY, HELD, IN_USE = range(3)
SLOTS_BITS = 5
"""Bits of a hash of the address, by which a tensor finds one of the slots."""
_MIXER = -7046029254386353131
"""An odd number by which addresses, multiples of 512, are multiplied: its high bits depend on all of theirs."""

_KEY = "\n".join(
    f"  %key.{number + 1} = insertelement <4 x i64> %key.{number}, i64 %{word}, i64 {number}"
    for number, word in enumerate(("address", "rows", "columns", "bytes"))
).replace("%key.0", "poison")

_DESCRIBE = f"""
define internal i64 @describe(ptr %map, ptr %slots, ptr %boxes, i64 %box, i32 %kind, ptr %base, i64 %rows, i64 %columns,
    i64 %bytes) nounwind {{
  %sizes = alloca [2 x i64]
  %strides = alloca [1 x i64]
  %extents = alloca [2 x i32]
  %steps = alloca [2 x i32]
  %none = icmp eq ptr %boxes, null
  br i1 %none, label %skip, label %look
skip:
  ret i64 0

look:
  %address = ptrtoint ptr %base to i64
{_KEY}
  %mixed = mul i64 %address, {_MIXER}
  %number = lshr i64 %mixed, {64 - SLOTS_BITS}
  %start = mul i64 %number, {Slot.END}
  %slot = getelementptr i64, ptr %slots, i64 %start
  %key.at = getelementptr i64, ptr %slot, i64 {Slot.KEY}
  %state = getelementptr i64, ptr %slot, i64 {Slot.STATE}
  %was = atomicrmw xchg ptr %state, i64 {IN_USE} acquire
  %is.held = icmp eq i64 %was, {HELD}
  br i1 %is.held, label %compare, label %make
compare:
  %held.key = load <4 x i64>, ptr %key.at, align 32
  %equal = icmp eq <4 x i64> %held.key, %key.4
  %bits = bitcast <4 x i1> %equal to i4
  %is.same = icmp eq i4 %bits, -1
  br i1 %is.same, label %found, label %make
found:
  %held = load <{MAP_WORDS} x i64>, ptr %slot, align 64
  store <{MAP_WORDS} x i64> %held, ptr %map, align 64
  store atomic i64 {HELD}, ptr %state release, align 8
  ret i64 0

make:
  store i64 %columns, ptr %sizes, align 8
  %second = getelementptr i64, ptr %sizes, i64 1
  store i64 %rows, ptr %second, align 8
  store i64 %bytes, ptr %strides, align 8
  %at = getelementptr i64, ptr %boxes, i64 %box
  %height = load i32, ptr %at, align 8
  %next = getelementptr i64, ptr %at, i64 1
  %width = load i32, ptr %next, align 8
  %last = getelementptr i64, ptr %at, i64 2
  %swizzle = load i32, ptr %last, align 8
  store i32 %width, ptr %extents, align 4
  %tall = getelementptr i32, ptr %extents, i64 1
  store i32 %height, ptr %tall, align 4
  store i32 1, ptr %steps, align 4
  %other = getelementptr i32, ptr %steps, i64 1
  store i32 1, ptr %other, align 4
  %code = call i32 @cuTensorMapEncodeTiled(ptr %map, i32 %kind, i32 2, ptr %base, ptr %sizes, ptr %strides,
      ptr %extents, ptr %steps, i32 0, i32 %swizzle, i32 3, i32 0)
  %far = or i64 %rows, %columns
  %beyond = lshr i64 %far, 31
  %wide = zext i32 %code to i64
  %bad = or i64 %beyond, %wide
  %is.own = icmp ne i64 %was, {IN_USE}
  br i1 %is.own, label %keep, label %done
keep:
  %is.good = icmp eq i64 %bad, 0
  br i1 %is.good, label %write, label %leave
write:
  %made = load <{MAP_WORDS} x i64>, ptr %map, align 64
  store <{MAP_WORDS} x i64> %made, ptr %slot, align 64
  store <4 x i64> %key.4, ptr %key.at, align 32
  br label %leave
leave:
  %now = phi i64 [ {EMPTY}, %keep ], [ {HELD}, %write ]
  store atomic i64 %now, ptr %state release, align 8
  br label %done
done:
  ret i64 %bad
}}
"""


def described(e: FunctionEmitter, number: int, maps: Sequence[Map]) -> tuple[list[llvm.Value], llvm.Value]:
    """Emit a kernel's descriptors; return where they lie, and bits, some of them set where one cannot be made."""
    b, missing = e.b, i64(0)
    if not maps:
        return [], missing
    _add_to(b.module)
    row = i64(Table.KERNELS + 2 * number * Table.ROW + 3)
    boxes = b.load(PTR, b.offset(llvm.Value(PTR, f"@{TABLE}"), row, llvm.I64), 8)
    kept, words = f"maps{len(b.module.declarations)}", Slot.END << SLOTS_BITS
    b.module.declare(f"@{kept} = internal global [{len(maps) * words} x i64] zeroinitializer, align 64")
    places: list[llvm.Value] = []
    for position, each in enumerate(maps):
        place, plane = _aligned(e), each.plane
        kind, stride = llvm.Value("i32", str(_KINDS[plane.size])), b.op("mul", plane.stride, i64(plane.size))
        slots = b.offset(llvm.Value(PTR, f"@{kept}"), i64(words * position), llvm.I64)
        rows, uneven = rows_of(e, plane)
        key = plane.pointer, rows, plane.columns, stride
        bad = b.call(llvm.I64, "describe", place, slots, boxes, i64(_BOX * position), kind, *key)
        missing = b.op("or", b.op("or", missing, uneven), bad)
        places.append(place)
    return places, missing


def _aligned(e: FunctionEmitter) -> llvm.Value:
    """Return 128 bytes of the frame whose address is a multiple of 64."""
    b = e.b
    room = b.value(llvm.I64, f"ptrtoint {b.slot('[24 x i64]')} to i64")
    start = b.op("and", b.op("add", room, i64(63)), i64(-64))
    return b.value(PTR, f"inttoptr {start} to ptr")


def _add_to(module: Module) -> None:
    if "describe" in module.defined:
        return
    module.defined.add("describe")
    module.declare(_DECLARED)
    module.functions.insert(0, _DESCRIBE)
