"""Coroutines: functions on stacks of their own, one running at a time on a thread (`swapcontext`).

What runs as a coroutine has a context of its own; in the end it hands its error and its buffers on.
"""

from __future__ import annotations

from tilewright.native.context import NUMBERS, Context

REGISTERS = 7168
"""Bytes that hold the processor's registers while others run; they take 4.5 KB on ARM."""

DECLARED = (
    "declare i32 @getcontext(ptr)",
    "declare void @makecontext(ptr, ptr, i32, ...)",
    "declare i32 @swapcontext(ptr, ptr)",
    "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
)
"""What the code below and its users call, each declared as others declare it."""

TEXT = f"""
define internal void @coroutine.start(i32 %high, i32 %low) noinline nounwind {{
entry:  ; an address in two halves: what runs, and what it is given
  %high.wide = zext i32 %high to i64
  %low.wide = zext i32 %low to i64
  %shifted = shl i64 %high.wide, 32
  %address = or i64 %shifted, %low.wide
  %pair = inttoptr i64 %address to ptr
  %fn = load ptr, ptr %pair
  %given.at = getelementptr ptr, ptr %pair, i64 1
  %given = load ptr, ptr %given.at
  call void %fn(ptr %given)
  ret void
}}

define internal void @coroutine.make(ptr %registers, ptr %stack, i64 %size, ptr %then, ptr %pair) noinline nounwind {{
entry:  ; `then` goes on when the function of the pair has returned
  %got = call i32 @getcontext(ptr %registers)
  %then.at = getelementptr i64, ptr %registers, i64 1
  store ptr %then, ptr %then.at
  %stack.at = getelementptr i64, ptr %registers, i64 2
  store ptr %stack, ptr %stack.at
  %size.at = getelementptr i64, ptr %registers, i64 4
  store i64 %size, ptr %size.at
  %address = ptrtoint ptr %pair to i64
  %high.wide = lshr i64 %address, 32
  %high = trunc i64 %high.wide to i32
  %low = trunc i64 %address to i32
  call void (ptr, ptr, i32, ...) @makecontext(ptr %registers, ptr @coroutine.start, i32 2, i32 %high, i32 %low)
  ret void
}}

define internal void @coroutine.hand(ptr %own, ptr %context) noinline nounwind {{
entry:
  %own.error = getelementptr i64, ptr %own, i64 {Context.ERROR.value}
  %error = load i64, ptr %own.error
  %error.at = getelementptr i64, ptr %context, i64 {Context.ERROR.value}
  %told = cmpxchg ptr %error.at, i64 0, i64 %error monotonic monotonic
  %is.first = extractvalue {{ i64, i1 }} %told, 1
  br i1 %is.first, label %name, label %rest
name:
  %own.numbers = getelementptr i64, ptr %own, i64 {NUMBERS[0].value}
  %numbers = getelementptr i64, ptr %context, i64 {NUMBERS[0].value}
  call void @llvm.memcpy.p0.p0.i64(ptr %numbers, ptr %own.numbers, i64 {8 * len(NUMBERS)}, i1 false)
  br label %rest
rest:
  %own.buffers = getelementptr i64, ptr %own, i64 {Context.BUFFERS.value}
  %head = load ptr, ptr %own.buffers
  %is.empty = icmp eq ptr %head, null
  br i1 %is.empty, label %done, label %walk
walk:
  %at = phi ptr [ %head, %rest ], [ %following, %walk ]
  %following = load ptr, ptr %at
  %is.last = icmp eq ptr %following, null
  br i1 %is.last, label %join, label %walk
join:
  %buffers.at = getelementptr i64, ptr %context, i64 {Context.BUFFERS.value}
  %older = atomicrmw xchg ptr %buffers.at, ptr %head monotonic
  store ptr %older, ptr %at
  br label %done
done:
  ret void
}}
"""
