"""Launch code: the LLVM functions around the driver's, the same in every program.

What they need of the driver and of the framework are symbols, and handles are in a table beside the object, filled when
it is loaded on a device: so the object can be kept.

    table := context, device, error word of the host's, its address on the device, how many blocks may wait for other
             ranks at a time, then a row for each kernel
    row   := function, nothing before its first launch; threads; bytes of shared memory; boxes of its descriptors;
             how many blocks it has at most; 1 where it waits for the kernel before it by itself

An entry is run between `begin` and `end`, which `started` writes around it: they find the stream once, and give memory
back. What launches share lies behind the words of the context that the entry is called with.
"""

from __future__ import annotations

from enum import IntEnum

from tilewright.backends.cuda.host import graph_code, graph_words
from tilewright.native.context import INDEX as NUMBER
from tilewright.native.context import Context
from tilewright.native.llvm import Module

TABLE = "tilewright_cuda_table"
STREAM = "tilewright_cuda_stream"
"""The function that tells the current stream of a device: `i32 (i32 device, ptr stream)`."""


LOAD = "tilewright_cuda_load"
"""The function that loads a kernel and writes it into its row: `i32 (i64 number)`."""


PRINT = "tilewright_cuda_print"
"""The function that waits for kernels and shows what they printed: `i32 (ptr stream, ptr buffer, i64 words)`."""

HEAD = "tilewright_cuda_head"
"""The function that tells where the host can read what lies in front of a window: `ptr (ptr window)`."""

REFUSED = f"the GPU refused to start this kernel, or an earlier one has failed: the driver's error {NUMBER}"

EARLIER = 1 << 31
"""Marks the number of an error that a call finds when it begins, and that another one has made."""

SHORT = 1 << 14
"""Blocks from which on a grid takes so long that nothing is gained by starting it early."""

TOO_MANY = 2**31
"""Blocks that no grid has."""


class Table(IntEnum):
    """The words at the beginning of the table, and how many a kernel has."""

    CONTEXT = 0
    DEVICE = 1
    ERROR_WORD = 2
    ERROR_ADDRESS = 3
    ROOM = 4
    KERNELS = 5
    ROW = 6


class Shared(IntEnum):
    """The words behind those of a context: what the launches of one call share."""

    STREAM = len(Context)
    MUST_LEAVE = len(Context) + 1
    """Whether another context was current, and will be again."""
    END = len(Context) + 2


_DECLARED = f"""
@{TABLE} = external global [{Table.KERNELS + Table.ROW} x i64]
declare i32 @{STREAM}(i32, ptr)
declare i32 @{LOAD}(i64)
declare i32 @cuCtxGetCurrent(ptr)
declare i32 @cuCtxSetCurrent(ptr)
declare i32 @cuCtxPushCurrent_v2(ptr)
declare i32 @cuCtxPopCurrent_v2(ptr)
@dependent = internal constant [9 x i64] [i64 6, i64 1, i64 0, i64 0, i64 0, i64 0, i64 0, i64 0, i64 0]
declare i32 @cuLaunchKernelEx(ptr, ptr, ptr, ptr)
declare i32 @cuMemAllocAsync(ptr, i64, ptr)
declare i32 @cuMemFreeAsync(ptr, ptr)
declare i32 @cuMemsetD8Async(ptr, i8, i64, ptr)
{graph_code.DECLARED}
"""

DRIVER = [line.split("@")[1].split("(")[0] for line in _DECLARED.splitlines() if "@cu" in line]
"""The functions of the driver that programs call."""

_NOTED = f"""
define internal i1 @noted(ptr %context) nounwind {{
  %held = getelementptr i64, ptr @{TABLE}, i64 {Table.ERROR_WORD}
  %word = load ptr, ptr %held, align 8
  %number = load volatile i64, ptr %word, align 8
  %clean = icmp eq i64 %number, 0
  br i1 %clean, label %nothing, label %report
report:
  store volatile i64 0, ptr %word, align 8
  %cell = getelementptr i64, ptr %context, i64 {Context.ERROR}
  store atomic i64 %number, ptr %cell monotonic, align 8
  ret i1 true
nothing:
  ret i1 false
}}
"""
"""Hands what kernels have noted to the context, and returns whether they have."""

_BEGIN = f"""
define internal i1 @begin(ptr %context, ptr %state) nounwind {{
  %failed = call i1 @noted(ptr %context)
  br i1 %failed, label %report, label %enter
report:
  %cell = getelementptr i64, ptr %context, i64 {Context.ERROR}
  %number = load i64, ptr %cell, align 8
  %marked = or i64 %number, {EARLIER}
  store i64 %marked, ptr %cell, align 8
  ret i1 false
enter:
  %now = alloca ptr
  store ptr null, ptr %now, align 8
  %want = load ptr, ptr @{TABLE}, align 8
  %asked = call i32 @cuCtxGetCurrent(ptr %now)
  %have = load ptr, ptr %now, align 8
  %same = icmp eq ptr %have, %want
  br i1 %same, label %ready, label %other
other:
  %none = icmp eq ptr %have, null
  br i1 %none, label %adopt, label %push
adopt:
  %set = call i32 @cuCtxSetCurrent(ptr %want)
  br label %ready
push:
  %pushed = call i32 @cuCtxPushCurrent_v2(ptr %want)
  br label %ready
ready:
  %must = phi i64 [ 0, %enter ], [ 0, %adopt ], [ 1, %push ]
  %leave = getelementptr i64, ptr %context, i64 {Shared.MUST_LEAVE}
  store i64 %must, ptr %leave, align 8
  %place = getelementptr i64, ptr @{TABLE}, i64 {Table.DEVICE}
  %device = load i32, ptr %place, align 8
  %stream = getelementptr i64, ptr %context, i64 {Shared.STREAM}
  %told = call i32 @{STREAM}(i32 %device, ptr %stream)
  %handle = load ptr, ptr %stream, align 8
  %graph = getelementptr i64, ptr %context, i64 {Shared.END}
  call void @graph_begin(ptr %graph, ptr %state, ptr %handle)
  ret i1 true
}}
"""

_END = f"""
define internal void @end(ptr %context, i1 %keeps, i64 %note) nounwind {{
  %at = getelementptr i64, ptr %context, i64 {Shared.STREAM}
  %stream = load ptr, ptr %at, align 8
  %graph = getelementptr i64, ptr %context, i64 {Shared.END}
  call void @graph_end(ptr %graph, ptr %stream)
  %failed = getelementptr i64, ptr %graph, i64 {graph_words.Call.FAILED}
  %code = load i32, ptr %failed, align 8
  call void @refused(ptr %context, i32 %code, i64 %note)
  %head = getelementptr i64, ptr %context, i64 {Context.BUFFERS}
  %first = load ptr, ptr %head, align 8
  br i1 %keeps, label %kept, label %look
look:
  %node = phi ptr [ %first, %0 ], [ %following, %give ]
  %last = icmp eq ptr %node, null
  br i1 %last, label %given, label %give
give:
  %following = load ptr, ptr %node, align 8
  %second = getelementptr i64, ptr %node, i64 1
  %memory = load ptr, ptr %second, align 8
  %freed = call i32 @cuMemFreeAsync(ptr %memory, ptr %stream)
  call void @free(ptr %node)
  br label %look
given:
  store ptr null, ptr %head, align 8
  br label %kept
kept:
  %leave = getelementptr i64, ptr %context, i64 {Shared.MUST_LEAVE}
  %must = load i64, ptr %leave, align 8
  %pops = icmp ne i64 %must, 0
  br i1 %pops, label %pop, label %done
pop:
  %gone = alloca ptr
  %popped = call i32 @cuCtxPopCurrent_v2(ptr %gone)
  br label %done
done:
  ret void
}}

define internal void @refused(ptr %context, i32 %code, i64 %note) nounwind {{
  %fine = icmp eq i32 %code, 0
  br i1 %fine, label %done, label %refused
refused:
  %cell = getelementptr i64, ptr %context, i64 {Context.ERROR}
  %wide = zext i32 %code to i64
  %high = shl i64 %wide, 32
  %error = or i64 %high, %note
  store atomic i64 %error, ptr %cell monotonic, align 8
  br label %done
done:
  ret void
}}
"""

_KERNEL = "ptr %function, i32 %blocks, i32 %threads, i32 %shared, ptr %params"

_CONFIGURED = "\n".join(
    f"  %c{at} = getelementptr i8, ptr %config, i64 {at}\n  store {value}, ptr %c{at}, align 4"
    for at, value in {
        0: "i32 %blocks", 4: "i32 1", 8: "i32 1", 12: "i32 %threads", 16: "i32 1", 20: "i32 1", 24: "i32 %shared",
        32: "ptr %stream", 40: "ptr @dependent", 48: "i32 %waits",
    }.items()
)  # fmt: skip
"""What a launch is told: the grid, and that it may begin before the kernel ahead has ended, where its own waits."""

_LAUNCH = f"""
define internal void @launch(ptr %context, i64 %number, i64 %count, ptr %params, i64 %note) nounwind {{
  %cell = getelementptr i64, ptr %context, i64 {Context.ERROR}
  %failed = load atomic i64, ptr %cell monotonic, align 8
  %some = icmp sgt i64 %count, 0
  %well = icmp eq i64 %failed, 0
  %go = and i1 %some, %well
  br i1 %go, label %start, label %done
start:
  %slot = getelementptr i64, ptr %context, i64 {Shared.STREAM}
  %stream = load ptr, ptr %slot, align 8
  %first = mul i64 %number, {Table.ROW}
  %at = add i64 %first, {Table.KERNELS}
  %row = getelementptr i64, ptr @{TABLE}, i64 %at
  %known = load ptr, ptr %row, align 8
  %is.new = icmp eq ptr %known, null
  br i1 %is.new, label %load, label %ready
load:
  %loaded = call i32 @{LOAD}(i64 %number)
  call void @refused(ptr %context, i32 %loaded, i64 %note)
  %is.loaded = icmp eq i32 %loaded, 0
  br i1 %is.loaded, label %ready, label %done
ready:
  %function = load ptr, ptr %row, align 8
  %second = getelementptr i64, ptr %row, i64 1
  %threads = load i32, ptr %second, align 8
  %third = getelementptr i64, ptr %row, i64 2
  %shared = load i32, ptr %third, align 8
  %fourth = getelementptr i64, ptr %row, i64 4
  %limit = load i64, ptr %fourth, align 8
  %few = call i64 @llvm.umin.i64(i64 %count, i64 %limit)
  %fits = icmp ult i64 %count, {TOO_MANY}
  %most = select i1 %fits, i64 %few, i64 {TOO_MANY}
  %blocks = trunc i64 %most to i32
  %graph = getelementptr i64, ptr %context, i64 {Shared.END}
  %taken = call i1 @graph_takes(ptr %graph, ptr %stream, {_KERNEL})
  br i1 %taken, label %done, label %plain
plain:
  %fifth = getelementptr i64, ptr %row, i64 5
  %can.wait = load i32, ptr %fifth, align 8
  %short = icmp ult i32 %blocks, {SHORT}
  %waits = select i1 %short, i32 %can.wait, i32 0
  %config = alloca [7 x i64], align 8
{_CONFIGURED}
  %code = call i32 @cuLaunchKernelEx(ptr %config, ptr %function, ptr %params, ptr null)
  call void @refused(ptr %context, i32 %code, i64 %note)
  br label %done
done:
  ret void
}}
"""

_MEMORY = f"""
define internal ptr @device_memory(ptr %context, i64 %size, i1 %clear, i64 %note) nounwind {{
  %made = alloca ptr
  store ptr null, ptr %made, align 8
  %slot = getelementptr i64, ptr %context, i64 {Shared.STREAM}
  %stream = load ptr, ptr %slot, align 8
  %least = call i64 @llvm.umax.i64(i64 %size, i64 16)
  %graph = getelementptr i64, ptr %context, i64 {Shared.END}
  %lent = call ptr @graph_memory(ptr %graph, i64 %least, ptr %stream)
  %has.lent = icmp ne ptr %lent, null
  br i1 %has.lent, label %ready, label %make
make:
  %code = call i32 @cuMemAllocAsync(ptr %made, i64 %least, ptr %stream)
  %own = load ptr, ptr %made, align 8
  %fine = icmp eq i32 %code, 0
  br i1 %fine, label %keep, label %refused
keep:
  %node = call ptr @calloc(i64 2, i64 8)
  %second = getelementptr i64, ptr %node, i64 1
  store ptr %own, ptr %second, align 8
  %head = getelementptr i64, ptr %context, i64 {Context.BUFFERS}
  %older = atomicrmw xchg ptr %head, ptr %node monotonic
  store ptr %older, ptr %node, align 8
  br label %ready
ready:
  %memory = phi ptr [ %lent, %0 ], [ %own, %keep ]
  br i1 %clear, label %zero, label %done
zero:
  %cleared = call i32 @cuMemsetD8Async(ptr %memory, i8 0, i64 %size, ptr %stream)
  br label %done
refused:
  %cell = getelementptr i64, ptr %context, i64 {Context.ERROR}
  store atomic i64 %note, ptr %cell monotonic, align 8
  br label %done
done:
  %found = phi ptr [ %memory, %ready ], [ %memory, %zero ], [ null, %refused ]
  ret ptr %found
}}
"""


def started(name: str, entry: str, number: int, note: int, *, keeps: bool) -> str:
    """Return the function that is called from outside: an entry between `begin` and `end`, in a context of its own.

    Memory of an entry that `keeps` it is left to whoever reads its results, and none that calls share.
    """
    given, words = (f"[{count} x i64]" for count in (len(Context), Shared.END + len(graph_words.Call)))
    lent = graph_words.SHARED_BLOCKS if keeps else 0
    return f"""
define void @{name}(ptr %words, ptr %outer) nounwind {{
  %context = alloca {words}, align 8
  %given = load {given}, ptr %outer, align 8
  store {given} %given, ptr %context, align 8
  %state = getelementptr i64, ptr @{graph_words.STATES}, i64 {number * graph_words.ENTRY_WORDS}
  %go = call i1 @begin(ptr %context, ptr %state)
  br i1 %go, label %run, label %done
run:
  %lent = getelementptr i64, ptr %context, i64 {Shared.END + graph_words.Call.MEMORY}
  store i64 {lent}, ptr %lent, align 8
  call void @{entry}(ptr %words, ptr %context)
  call void @end(ptr %context, i1 {str(keeps).lower()}, i64 {note})
  br label %done
done:
  %left = load {given}, ptr %context, align 8
  store {given} %left, ptr %outer, align 8
  ret void
}}
"""


def add_to(module: Module) -> None:
    """Let a module call `launch` and `device_memory`."""
    if "launch" in module.defined:
        return
    module.defined.add("launch")
    for line in _DECLARED.strip().splitlines():
        module.declare(line)
    module.intrinsic("llvm.umin.i64", "i64", "i64", "i64")
    module.intrinsic("llvm.umax.i64", "i64", "i64", "i64")
    module.intrinsic("calloc", "ptr", "i64", "i64")
    module.intrinsic("free", "void", "ptr")
    module.functions[:0] = [*graph_code.FUNCTIONS, _NOTED, _BEGIN, _END, _LAUNCH, _MEMORY]
