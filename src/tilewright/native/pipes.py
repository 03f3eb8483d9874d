"""Pipes: the functions of a group as coroutines that go on with each other, and the queues between them.

`pipes.switch` goes on with the next side that has not ended and returns when its caller's turn comes again, at once
where nobody else is left. `pipes.work` runs a side to its end: the first one on the caller's stack, the others where
`pipes.prepare` puts them. Every side has a context of its own, and hands it on when it ends.
"""

from __future__ import annotations

from tilewright.native import coroutines as co
from tilewright.native.rounds import GRID

LANES, CALLER, PROGRESS, COUNT, QUEUES = range(5)
"""The words of a frame: lanes of the vector side, the caller's context, how much was pushed or ended, sides; queues."""

CHANNELS = 64
SIDES = QUEUES + 2 * CHANNELS
"""Where the addresses of the sides are, after the first and last node of each queue."""

MOST_SIDES = 3
FRAME_WORDS = SIDES + MOST_SIDES

FRAME, ENDED, LANE, INDEX, TASK, DATA, STACK, RUNS, SELF = range(9)
"""The words of a side: its frame, whether it has ended, lane and number, what it runs, its stack, how it starts."""

CONTEXT = 10
MACHINE = CONTEXT + GRID + 2
"""Where a side has its context, a grid's word with it, and what the processor's registers hold while others run."""

SIDE_WORDS = MACHINE + co.REGISTERS // 8
STACK_BYTES = 1 << 20

NEXT = 7
"""The word of a node that leads to the next one; its tile has its valid extents first and its elements 64 bytes on."""

DECLARED = (*co.DECLARED, "declare ptr @malloc(i64)", "declare void @free(ptr)", co.TEXT)
"""What the code below needs."""

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
  %own = getelementptr i64, ptr %side, i64 {CONTEXT}
  %caller.at = getelementptr i64, ptr %frame, i64 {CALLER}
  %caller = load ptr, ptr %caller.at
  call void @coroutine.hand(ptr %own, ptr %caller)
  call void @pipes.switch(ptr %side)
  ret void
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
  %runs.at = getelementptr i64, ptr %side, i64 {RUNS}
  store ptr @pipes.work, ptr %runs.at
  %self.at = getelementptr i64, ptr %side, i64 {SELF}
  store ptr %side, ptr %self.at
  %registers = getelementptr i64, ptr %side, i64 {MACHINE}
  %frame = load ptr, ptr %side
  %first.at = getelementptr i64, ptr %frame, i64 {SIDES}
  %first = load ptr, ptr %first.at
  %then = getelementptr i64, ptr %first, i64 {MACHINE}
  call void @coroutine.make(ptr %registers, ptr %stack, i64 {STACK_BYTES}, ptr %then, ptr %runs.at)
  ret i1 true
}}

define internal void @pipes.end(ptr %frame) nounwind {{
entry:
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
  %none = icmp eq ptr %s, null
  br i1 %none, label %done, label %stack
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
