"""Domains: how native code knows the ranks around it.

Of every window, the eight bytes in front of its memory say where its domain's record lies. The record's words are the
rank, how many there are, the address of a word that is not 0 once the run is over, in how many memories the parts lie,
who brings them where they are copies, and where the part of each rank starts. A rank that waits looks at its cell, lets
other threads run, and sleeps a little when that takes long: it counts its sleeps behind that word, and the waits that
it began to sleep in and left again, so that one who looks on knows.
"""

from __future__ import annotations

from enum import IntEnum

HEAD = 64
"""Bytes in front of a window's memory; the last eight say where the record lies."""


class Record(IntEnum):
    """The words of a domain's record."""

    RANK = 0
    COUNT = 1
    ABORT = 2
    COPIES = 3
    DISTANT = 4
    """Who is told of what code reads and writes of parts that are copies; 0 where ranks share memory."""
    PARTS = 5


class Touch(IntEnum):
    """What code tells of a region of a copy, or of a cell: the first two bring something, the others take it away."""

    FETCH = 0
    CLEAR = 1
    SEND = 2
    ADD = 3
    SET = 4
    RAISE = 5


NAPS, SLEEPS = 8, 9
"""Behind the word that ends waits, in words: how often its rank has slept, and a number that is odd while it does."""

SPINS, TURNS, NAP = 200, 20_000, 50
"""How often a wait looks before it lets others run, how often it does that before it sleeps, and how long: in us."""

PAUSE = (
    "declare i32 @sched_yield()",
    "declare i32 @usleep(i32)",
    f"""
define internal void @rank.turned(ptr %abort) noinline nounwind {{
  %sleeps = getelementptr i64, ptr %abort, i64 {SLEEPS}
  %turned = atomicrmw add ptr %sleeps, i64 1 seq_cst
  ret void
}}
""",
    f"""
define internal i1 @rank.pause(ptr %context, ptr %abort, i64 %times) noinline nounwind {{
entry:
  %short = icmp slt i64 %times, {SPINS}
  br i1 %short, label %go, label %long
long:
  %sleeps = icmp sgt i64 %times, {TURNS}
  br i1 %sleeps, label %begin, label %turn
begin:
  %is_first = icmp eq i64 %times, {TURNS + 1}
  br i1 %is_first, label %first, label %nap
first:
  call void @rank.turned(ptr %abort)
  br label %nap
nap:
  %naps = getelementptr i64, ptr %abort, i64 {NAPS}
  %counted = atomicrmw add ptr %naps, i64 1 seq_cst
  %slept = call i32 @usleep(i32 {NAP})
  %stopped = call i1 @poll(ptr %context)
  br i1 %stopped, label %end, label %look
turn:
  %yielded = call i32 @sched_yield()
  br label %look
look:
  %word = load atomic i64, ptr %abort acquire, align 8
  %over = icmp ne i64 %word, 0
  ret i1 %over
go:
  ret i1 false
end:
  ret i1 true
}}
""",
)
"""The function that a wait calls between two looks, with what it needs; it tells whether the run is over.

A wait that has slept calls `rank.turned` when it is left."""
