"""Element code: the LLVM functions with which the host reads, fills and shows elements of the device.

What was launched before comes first: kernels that wait to be started as a graph are started now, and the rest of the
call starts its kernels one by one. Reading waits for the device; filling does not, and needs no memory of the host.
"""

from __future__ import annotations

from tilewright.backends.cuda.host import graph_words
from tilewright.backends.cuda.host.launch_code import PRINT, Shared
from tilewright.native.context import Context
from tilewright.native.llvm import Module

BUSY = (
    "the host waits here for what the GPU has computed, and cannot while a CUDA graph is captured\n"
    "capture around it, or let the kernel itself read what it needs"
)

DECLARED = """
declare i32 @cuMemcpyDtoHAsync_v2(ptr, ptr, i64, ptr)
declare i32 @cuStreamSynchronize(ptr)
declare i32 @cuMemsetD16Async(ptr, i16, i64, ptr)
declare i32 @cuMemsetD32Async(ptr, i32, i64, ptr)
declare i32 @cuMemsetD2D32Async(ptr, i64, i32, i64, i64, ptr)
""".strip()

DRIVER = [line.split("@")[1].split("(")[0] for line in DECLARED.splitlines()]

_ANOTHER = 906
"""The driver's error for waiting on the usual stream while another one is captured."""

_FLUSHED = f"""
define internal ptr @device_flushed(ptr %context, i64 %note) nounwind {{
  %at = getelementptr i64, ptr %context, i64 {Shared.STREAM}
  %stream = load ptr, ptr %at, align 8
  %graph = getelementptr i64, ptr %context, i64 {Shared.END}
  call void @graph_start(ptr %graph, ptr %stream)
  %failed = getelementptr i64, ptr %graph, i64 {graph_words.Call.FAILED}
  %code = load i32, ptr %failed, align 8
  call void @refused(ptr %context, i32 %code, i64 %note)
  ret ptr %stream
}}
"""

_WAITS = f"""
define internal i1 @device_waits(ptr %context, i64 %busy) nounwind {{
  %at = getelementptr i64, ptr %context, i64 {Shared.STREAM}
  %stream = load ptr, ptr %at, align 8
  %status = alloca i32
  store i32 0, ptr %status, align 4
  %asked = call i32 @cuStreamIsCapturing(ptr %stream, ptr %status)
  %captures = load i32, ptr %status, align 4
  %is.own = icmp ne i32 %captures, 0
  %is.another = icmp eq i32 %asked, {_ANOTHER}
  %cannot = or i1 %is.own, %is.another
  br i1 %cannot, label %refuse, label %may
refuse:
  %cell = getelementptr i64, ptr %context, i64 {Context.ERROR}
  store atomic i64 %busy, ptr %cell monotonic, align 8
  ret i1 false
may:
  ret i1 true
}}
"""
"""Returns whether the host may wait, which is an error where somebody captures the stream."""

_READ = """
define internal void @device_read(ptr %context, ptr %to, ptr %from, i64 %size, i64 %note, i64 %busy) nounwind {
  %may = call i1 @device_waits(ptr %context, i64 %busy)
  br i1 %may, label %wait, label %done
wait:
  %stream = call ptr @device_flushed(ptr %context, i64 %note)
  %copied = call i32 @cuMemcpyDtoHAsync_v2(ptr %to, ptr %from, i64 %size, ptr %stream)
  call void @refused(ptr %context, i32 %copied, i64 %note)
  %waited = call i32 @cuStreamSynchronize(ptr %stream)
  call void @refused(ptr %context, i32 %waited, i64 %note)
  %failed = call i1 @noted(ptr %context)
  br label %done
done:
  ret void
}
"""

_PRINT = f"""
define internal void @device_print(ptr %context, ptr %buffer, i64 %room, i64 %note, i64 %busy) nounwind {{
  %may = call i1 @device_waits(ptr %context, i64 %busy)
  br i1 %may, label %wait, label %done
wait:
  %stream = call ptr @device_flushed(ptr %context, i64 %note)
  %shown = call i32 @{PRINT}(ptr %stream, ptr %buffer, i64 %room)
  call void @refused(ptr %context, i32 %shown, i64 %note)
  %failed = call i1 @noted(ptr %context)
  br label %done
done:
  ret void
}}
"""

_FILL = """
define internal void @device_fill(ptr %context, ptr %to, i64 %bits, i64 %size, i64 %count, i64 %note) nounwind {
  %stream = call ptr @device_flushed(ptr %context, i64 %note)
  %some = icmp sgt i64 %count, 0
  br i1 %some, label %start, label %done
start:
  %low = trunc i64 %bits to i32
  switch i64 %size, label %eight [ i64 1, label %one i64 2, label %two i64 4, label %four ]
one:
  %byte = trunc i64 %bits to i8
  %code1 = call i32 @cuMemsetD8Async(ptr %to, i8 %byte, i64 %count, ptr %stream)
  br label %look
two:
  %half = trunc i64 %bits to i16
  %code2 = call i32 @cuMemsetD16Async(ptr %to, i16 %half, i64 %count, ptr %stream)
  br label %look
four:
  %code4 = call i32 @cuMemsetD32Async(ptr %to, i32 %low, i64 %count, ptr %stream)
  br label %look
eight:
  %upper = lshr i64 %bits, 32
  %high = trunc i64 %upper to i32
  %above = getelementptr i8, ptr %to, i64 4
  %first = call i32 @cuMemsetD2D32Async(ptr %to, i64 8, i32 %low, i64 1, i64 %count, ptr %stream)
  call void @refused(ptr %context, i32 %first, i64 %note)
  %code8 = call i32 @cuMemsetD2D32Async(ptr %above, i64 8, i32 %high, i64 1, i64 %count, ptr %stream)
  br label %look
look:
  %code = phi i32 [ %code1, %one ], [ %code2, %two ], [ %code4, %four ], [ %code8, %eight ]
  call void @refused(ptr %context, i32 %code, i64 %note)
  br label %done
done:
  ret void
}
"""


def add_to(module: Module) -> None:
    """Let a module that can launch call `device_read`, `device_print` and `device_fill`."""
    if "device_read" in module.defined:
        return
    module.defined.add("device_read")
    for line in DECLARED.splitlines():
        module.declare(line)
    module.declare(f"declare i32 @{PRINT}(ptr, ptr, i64)")
    module.functions += [_FLUSHED, _WAITS, _READ, _PRINT, _FILL]
