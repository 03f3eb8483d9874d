"""Rounds: the blocks of a launch run in turn on one thread, each as far as the next barrier before any goes on.

A block has a stack of its own, and waits by changing to that of whoever runs them all (`swapcontext`). The blocks of a
launch share a context, a copy of the program's with one word more: where whoever runs them can be found. What they
note in it and make is handed to the program's own in the end. A block that has failed is over, and none waits for it.
"""

from __future__ import annotations

from tilewright.native.context import Context

GRID = len(Context)
"""The word of a launch's context that says where its blocks wait."""

SPACE = 8192
"""Bytes of a block's record: its registers, which take 4.5 KB on ARM, and from `FIELDS` on what it runs."""
FIELDS = 7168
STACK = 1 << 18

NEEDED = (
    "declare i32 @getcontext(ptr)",
    "declare void @makecontext(ptr, ptr, i32, ...)",
    "declare i32 @swapcontext(ptr, ptr)",
    "declare ptr @calloc(i64, i64)",
    "declare void @free(ptr)",
    "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1 immarg)",
)
"""What the code below calls, each declared as others declare it."""

ROUNDS = f"""
define internal void @pause(ptr %context) noinline nounwind {{
entry:  ; the word says where two pointers lie: whoever runs the blocks, and the block that runs
  %grid.at = getelementptr i64, ptr %context, i64 {GRID}
  %grid = load ptr, ptr %grid.at
  %current.at = getelementptr ptr, ptr %grid, i64 1
  %runner = load ptr, ptr %grid
  %current = load ptr, ptr %current.at
  %changed = call i32 @swapcontext(ptr %current, ptr %runner)
  ret void
}}

define internal void @block(i32 %high, i32 %low) noinline nounwind {{
entry:
  %high.wide = zext i32 %high to i64
  %low.wide = zext i32 %low to i64
  %shifted = shl i64 %high.wide, 32
  %address = or i64 %shifted, %low.wide
  %record = inttoptr i64 %address to ptr
  %fields = getelementptr i8, ptr %record, i64 {FIELDS}
  %fn = load ptr, ptr %fields
  %data.at = getelementptr ptr, ptr %fields, i64 1
  %data = load ptr, ptr %data.at
  %chunk.at = getelementptr i64, ptr %fields, i64 2
  %chunk = load i64, ptr %chunk.at
  call void %fn(ptr %data, i64 %chunk)
  %over.at = getelementptr i64, ptr %fields, i64 3
  store volatile i64 1, ptr %over.at
  ret void
}}

define internal void @rounds(ptr %fn, ptr %data, i64 %count, ptr %context, ptr %own, i64 %note) noinline nounwind {{
entry:
  %runner = alloca [{SPACE} x i8], align 64
  %grid = alloca [2 x ptr], align 8
  call void @llvm.memcpy.p0.p0.i64(ptr %own, ptr %context, i64 {8 * GRID}, i1 false)
  %own.error = getelementptr i64, ptr %own, i64 {Context.ERROR.value}
  store i64 0, ptr %own.error
  %own.buffers = getelementptr i64, ptr %own, i64 {Context.BUFFERS.value}
  store i64 0, ptr %own.buffers
  %own.grid = getelementptr i64, ptr %own, i64 {GRID}
  store ptr %grid, ptr %own.grid
  store ptr %runner, ptr %grid
  %current.at = getelementptr ptr, ptr %grid, i64 1
  %error.at = getelementptr i64, ptr %context, i64 {Context.ERROR.value}
  %none = icmp slt i64 %count, 1
  br i1 %none, label %done, label %make
make:
  %records = call ptr @calloc(i64 %count, i64 {SPACE + STACK})
  %refused = icmp eq ptr %records, null
  br i1 %refused, label %fail, label %prepare
fail:
  %failed = cmpxchg ptr %error.at, i64 0, i64 %note monotonic monotonic
  br label %done
prepare:
  %i = phi i64 [ 0, %make ], [ %i.next, %prepare ]
  %place = mul i64 %i, {SPACE + STACK}
  %record = getelementptr i8, ptr %records, i64 %place
  %got = call i32 @getcontext(ptr %record)
  %link.at = getelementptr i8, ptr %record, i64 8
  store ptr %runner, ptr %link.at
  %stack.at = getelementptr i8, ptr %record, i64 16
  %stack = getelementptr i8, ptr %record, i64 {SPACE}
  store ptr %stack, ptr %stack.at
  %size.at = getelementptr i8, ptr %record, i64 32
  store i64 {STACK}, ptr %size.at
  %fields = getelementptr i8, ptr %record, i64 {FIELDS}
  store ptr %fn, ptr %fields
  %data.at = getelementptr ptr, ptr %fields, i64 1
  store ptr %data, ptr %data.at
  %chunk.at = getelementptr i64, ptr %fields, i64 2
  store i64 %i, ptr %chunk.at
  %address = ptrtoint ptr %record to i64
  %high.wide = lshr i64 %address, 32
  %high = trunc i64 %high.wide to i32
  %low = trunc i64 %address to i32
  call void (ptr, ptr, i32, ...) @makecontext(ptr %record, ptr @block, i32 2, i32 %high, i32 %low)
  %i.next = add i64 %i, 1
  %more = icmp slt i64 %i.next, %count
  br i1 %more, label %prepare, label %round
round:
  %k = phi i64 [ 0, %prepare ], [ %k.next, %next ], [ 0, %ended ]
  %waits = phi i64 [ 0, %prepare ], [ %waits.next, %next ], [ 0, %ended ]
  %turn.place = mul i64 %k, {SPACE + STACK}
  %turn = getelementptr i8, ptr %records, i64 %turn.place
  %turn.fields = getelementptr i8, ptr %turn, i64 {FIELDS}
  %over.at = getelementptr i64, ptr %turn.fields, i64 3
  %over = load volatile i64, ptr %over.at
  %is.over = icmp ne i64 %over, 0
  br i1 %is.over, label %next, label %run
run:
  store ptr %turn, ptr %current.at
  %changed = call i32 @swapcontext(ptr %runner, ptr %turn)
  br label %next
next:
  %state = load volatile i64, ptr %over.at
  %waiting = xor i64 %state, 1
  %waits.next = or i64 %waits, %waiting
  %k.next = add i64 %k, 1
  %in.round = icmp slt i64 %k.next, %count
  br i1 %in.round, label %round, label %ended
ended:
  %again = icmp ne i64 %waits.next, 0
  br i1 %again, label %round, label %free
free:
  call void @free(ptr %records)
  %error = load i64, ptr %own.error
  %fine = icmp eq i64 %error, 0
  br i1 %fine, label %collect, label %tell
tell:
  %told = cmpxchg ptr %error.at, i64 0, i64 %error monotonic monotonic
  br label %collect
collect:
  %head = load ptr, ptr %own.buffers
  %is.empty = icmp eq ptr %head, null
  br i1 %is.empty, label %done, label %walk
walk:
  %at = phi ptr [ %head, %collect ], [ %following, %walk ]
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
