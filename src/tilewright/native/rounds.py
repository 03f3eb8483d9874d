"""Rounds: the blocks of a launch run in turn on one thread, each as far as the next barrier before any goes on.

A block has a stack of its own, and waits by changing to that of whoever runs them all (`swapcontext`). The blocks of a
launch share a context, a copy of the program's with one word more: where whoever runs them can be found. What they
note in it and make is handed to the program's own in the end. A block that has failed is over, and none waits for it.
"""

from __future__ import annotations

from tilewright.native import coroutines as co
from tilewright.native.context import Context

GRID = len(Context)
"""The word of a launch's context that says where its blocks wait."""

FIELDS = co.REGISTERS
SPACE = FIELDS + 1024
"""Bytes of a block's record: its registers, and from `FIELDS` on what it runs."""
STACK = 1 << 18

NEEDED = (
    *co.DECLARED,
    "declare ptr @calloc(i64, i64)",
    "declare void @free(ptr)",
    "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
    co.TEXT,
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

define internal void @block(ptr %fields) noinline nounwind {{
entry:  ; two words say how it starts, the others what it runs
  %fn.at = getelementptr ptr, ptr %fields, i64 2
  %fn = load ptr, ptr %fn.at
  %data.at = getelementptr ptr, ptr %fields, i64 3
  %data = load ptr, ptr %data.at
  %chunk.at = getelementptr i64, ptr %fields, i64 4
  %chunk = load i64, ptr %chunk.at
  call void %fn(ptr %data, i64 %chunk)
  %over.at = getelementptr i64, ptr %fields, i64 5
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
  %stack = getelementptr i8, ptr %record, i64 {SPACE}
  %fields = getelementptr i8, ptr %record, i64 {FIELDS}
  store ptr @block, ptr %fields
  %fields.at = getelementptr ptr, ptr %fields, i64 1
  store ptr %fields, ptr %fields.at
  %fn.at = getelementptr ptr, ptr %fields, i64 2
  store ptr %fn, ptr %fn.at
  %data.at = getelementptr ptr, ptr %fields, i64 3
  store ptr %data, ptr %data.at
  %chunk.at = getelementptr i64, ptr %fields, i64 4
  store i64 %i, ptr %chunk.at
  call void @coroutine.make(ptr %record, ptr %stack, i64 {STACK}, ptr %runner, ptr %fields)
  %i.next = add i64 %i, 1
  %more = icmp slt i64 %i.next, %count
  br i1 %more, label %prepare, label %round
round:
  %k = phi i64 [ 0, %prepare ], [ %k.next, %next ], [ 0, %ended ]
  %waits = phi i64 [ 0, %prepare ], [ %waits.next, %next ], [ 0, %ended ]
  %turn.place = mul i64 %k, {SPACE + STACK}
  %turn = getelementptr i8, ptr %records, i64 %turn.place
  %turn.fields = getelementptr i8, ptr %turn, i64 {FIELDS}
  %over.at = getelementptr i64, ptr %turn.fields, i64 5
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
  call void @coroutine.hand(ptr %own, ptr %context)
  br label %done
done:
  ret void
}}
"""
