"""Coroutines: the functions of a group on stacks of their own, one running at a time, and the queues between them.

`pipes.switch` goes on with the next side that has not ended and returns when its caller's turn comes again, at once
where nobody else is left. `pipes.run` runs a group to its end: the first side on the caller's stack, the others where
`makecontext` puts them. Every side has a context of its own; `pipes.end` hands its error and its buffers on to the
caller's.
"""

from __future__ import annotations

from tilewright.native.context import Context

LANES, ERROR, PROGRESS, COUNT, QUEUES = range(5)
"""The words of a frame: lanes of the vector side, the first error, how much was pushed or ended, sides; then queues."""

CHANNELS = 32
SIDES = QUEUES + 2 * CHANNELS
"""Where the addresses of the sides are, after the first and last node of each queue."""

MOST_SIDES = 3
FRAME_WORDS = SIDES + MOST_SIDES

FRAME, ENDED, LANE, INDEX, TASK, DATA, STACK = range(7)
"""The words of a side: its frame, whether it has ended, its lane and number, what it runs, and its stack."""

CONTEXT, MACHINE = 8, 16
"""Where a side has its context, and what the processor's registers hold while others run."""

SIDE_WORDS = MACHINE + 1024
STACK_BYTES = 1 << 20

NEXT = 7
"""The word of a node that leads to the next one; its tile has its valid extents first and its elements 64 bytes on."""

DECLARED = (
    "declare i32 @getcontext(ptr)",
    "declare void @makecontext(ptr, ptr, i32, ...)",
    "declare i32 @swapcontext(ptr, ptr)",
    "declare i32 @setcontext(ptr)",
    "declare ptr @malloc(i64)",
    "declare void @free(ptr)",
)

TEXT = f"""define internal void @pipes.switch(ptr %side) nounwind {{
entry:
  %frame = load ptr, ptr %side
  %index.at = getelementptr i64, ptr %side, i64 {INDEX}
  %index = load i64, ptr %index.at
  %count.at = getelementptr i64, ptr %frame, i64 {COUNT}
  %count = load i64, ptr %count.at
  br label %look
look:
  %k = phi i64 [ 1, %entry ], [ %following, %ended ]
  %far = add i64 %index, %k
  %number = urem i64 %far, %count
  %word = add i64 %number, {SIDES}
  %other.at = getelementptr i64, ptr %frame, i64 %word
  %other = load ptr, ptr %other.at
  %alone = icmp eq ptr %other, %side
  br i1 %alone, label %back, label %ask
ask:
  %ended.at = getelementptr i64, ptr %other, i64 {ENDED}
  %has.ended = load i64, ptr %ended.at
  %runs = icmp eq i64 %has.ended, 0
  br i1 %runs, label %go, label %ended
ended:
  %following = add i64 %k, 1
  br label %look
go:
  %mine = getelementptr i64, ptr %side, i64 {MACHINE}
  %theirs = getelementptr i64, ptr %other, i64 {MACHINE}
  %ignored = call i32 @swapcontext(ptr %mine, ptr %theirs)
  br label %back
back:
  ret void
}}

define internal void @pipes.work(ptr %side) nounwind {{
  %frame = load ptr, ptr %side
  %task.at = getelementptr i64, ptr %side, i64 {TASK}
  %task = load ptr, ptr %task.at
  %data.at = getelementptr i64, ptr %side, i64 {DATA}
  %data = load ptr, ptr %data.at
  call void %task(ptr %data, i64 0)
  %ended.at = getelementptr i64, ptr %side, i64 {ENDED}
  store i64 1, ptr %ended.at
  %progress.at = getelementptr i64, ptr %frame, i64 {PROGRESS}
  %progress = load i64, ptr %progress.at
  %more = add i64 %progress, 1
  store i64 %more, ptr %progress.at
  %error.at = getelementptr i64, ptr %side, i64 {CONTEXT + Context.ERROR}
  %error = load i64, ptr %error.at
  %first.at = getelementptr i64, ptr %frame, i64 {ERROR}
  %first = load i64, ptr %first.at
  %is.first = icmp eq i64 %first, 0
  %kept = select i1 %is.first, i64 %error, i64 %first
  store i64 %kept, ptr %first.at
  call void @pipes.switch(ptr %side)
  ret void
}}

define internal void @pipes.enter(i32 %high, i32 %low) nounwind {{
  %upper = zext i32 %high to i64
  %shifted = shl i64 %upper, 32
  %lower = zext i32 %low to i64
  %address = or i64 %shifted, %lower
  %side = inttoptr i64 %address to ptr
  call void @pipes.work(ptr %side)
  %frame = load ptr, ptr %side
  %main.at = getelementptr i64, ptr %frame, i64 {SIDES}
  %main = load ptr, ptr %main.at
  %registers = getelementptr i64, ptr %main, i64 {MACHINE}
  %ignored = call i32 @setcontext(ptr %registers)
  unreachable
}}

define internal i1 @pipes.prepare(ptr %side) nounwind {{
  %stack = call ptr @malloc(i64 {STACK_BYTES})
  %none = icmp eq ptr %stack, null
  br i1 %none, label %refused, label %there
refused:
  ret i1 false
there:
  %stack.at = getelementptr i64, ptr %side, i64 {STACK}
  store ptr %stack, ptr %stack.at
  %registers = getelementptr i64, ptr %side, i64 {MACHINE}
  %ignored = call i32 @getcontext(ptr %registers)
  %link.at = getelementptr i64, ptr %registers, i64 1
  store ptr null, ptr %link.at
  %base.at = getelementptr i64, ptr %registers, i64 2
  store ptr %stack, ptr %base.at
  %size.at = getelementptr i64, ptr %registers, i64 4
  store i64 {STACK_BYTES}, ptr %size.at
  %address = ptrtoint ptr %side to i64
  %upper = lshr i64 %address, 32
  %high = trunc i64 %upper to i32
  %low = trunc i64 %address to i32
  call void (ptr, ptr, i32, ...) @makecontext(ptr %registers, ptr @pipes.enter, i32 2, i32 %high, i32 %low)
  ret i1 true
}}

define internal void @pipes.end(ptr %frame, ptr %context) nounwind {{
entry:
  %error.at = getelementptr i64, ptr %frame, i64 {ERROR}
  %error = load i64, ptr %error.at
  %cell = getelementptr i64, ptr %context, i64 {Context.ERROR}
  %noted = cmpxchg ptr %cell, i64 0, i64 %error monotonic monotonic
  br label %queue
queue:
  %q = phi i64 [ 0, %entry ], [ %q.next, %queue.done ]
  %q.word = mul i64 %q, 2
  %q.at.word = add i64 %q.word, {QUEUES}
  %q.at = getelementptr i64, ptr %frame, i64 %q.at.word
  %first = load ptr, ptr %q.at
  br label %node
node:
  %n = phi ptr [ %first, %queue ], [ %n.next, %drop ]
  %n.none = icmp eq ptr %n, null
  br i1 %n.none, label %queue.done, label %drop
drop:
  %n.next.at = getelementptr i64, ptr %n, i64 {NEXT}
  %n.next = load ptr, ptr %n.next.at
  call void @free(ptr %n)
  br label %node
queue.done:
  %q.next = add i64 %q, 1
  %q.more = icmp ult i64 %q.next, {CHANNELS}
  br i1 %q.more, label %queue, label %sides
sides:
  %count.at = getelementptr i64, ptr %frame, i64 {COUNT}
  %count = load i64, ptr %count.at
  br label %side
side:
  %k = phi i64 [ 0, %sides ], [ %k.next, %stack ]
  %side.word = add i64 %k, {SIDES}
  %side.at = getelementptr i64, ptr %frame, i64 %side.word
  %s = load ptr, ptr %side.at
  %buffers.at = getelementptr i64, ptr %s, i64 {CONTEXT + Context.BUFFERS}
  %buffers = load ptr, ptr %buffers.at
  %no.buffers = icmp eq ptr %buffers, null
  br i1 %no.buffers, label %stack, label %walk
walk:
  %b = phi ptr [ %buffers, %side ], [ %older, %walk ]
  %older = load ptr, ptr %b
  %is.oldest = icmp eq ptr %older, null
  br i1 %is.oldest, label %splice, label %walk
splice:
  %head = getelementptr i64, ptr %context, i64 {Context.BUFFERS}
  %before = atomicrmw xchg ptr %head, ptr %buffers monotonic
  store ptr %before, ptr %b
  br label %stack
stack:
  %stack.at = getelementptr i64, ptr %s, i64 {STACK}
  %memory = load ptr, ptr %stack.at
  call void @free(ptr %memory)
  %k.next = add i64 %k, 1
  %k.more = icmp ult i64 %k.next, %count
  br i1 %k.more, label %side, label %done
done:
  call void @free(ptr %frame)
  ret void
}}
"""
