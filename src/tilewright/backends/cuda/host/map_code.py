"""Map code: the descriptors by which a kernel loads blocks of tensors, made by the host when it starts the kernel."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.backends.cpu.emit.function import FunctionEmitter
from tilewright.backends.cuda.host.launch_code import TABLE, Table
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

_DESCRIBE = """
define internal i64 @describe(ptr %map, ptr %boxes, i64 %box, i32 %kind, ptr %base, i64 %rows, i64 %columns, i64 %bytes) nounwind {
  %none = icmp eq ptr %boxes, null
  br i1 %none, label %skip, label %make
skip:
  ret i64 0
make:
  %sizes = alloca [2 x i64]
  %strides = alloca [1 x i64]
  %extents = alloca [2 x i32]
  %steps = alloca [2 x i32]
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
  %code = call i32 @cuTensorMapEncodeTiled(ptr %map, i32 %kind, i32 2, ptr %base, ptr %sizes, ptr %strides, ptr %extents, ptr %steps, i32 0, i32 %swizzle, i32 3, i32 0)
  %far = or i64 %rows, %columns
  %beyond = lshr i64 %far, 31
  %wide = zext i32 %code to i64
  %bad = or i64 %beyond, %wide
  ret i64 %bad
}
"""  # noqa: E501


def described(e: FunctionEmitter, number: int, maps: Sequence[Map]) -> tuple[list[llvm.Value], llvm.Value]:
    """Emit a kernel's descriptors; return where they lie, and bits, some of them set where one cannot be made."""
    b, missing = e.b, i64(0)
    if not maps:
        return [], missing
    _add_to(b.module)
    row = i64(Table.KERNELS + 2 * number * Table.ROW + 3)
    boxes = b.load(PTR, b.offset(llvm.Value(PTR, f"@{TABLE}"), row, llvm.I64), 8)
    places: list[llvm.Value] = []
    for position, each in enumerate(maps):
        place, plane = _aligned(e), each.plane
        kind, stride = llvm.Value("i32", str(_KINDS[plane.size])), b.op("mul", plane.stride, i64(plane.size))
        words = plane.pointer, plane.rows, plane.columns, stride
        bad = b.call(llvm.I64, "describe", place, boxes, i64(_BOX * position), kind, *words)
        missing = b.op("or", missing, bad)
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
