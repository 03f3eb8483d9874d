"""Graph nodes: the LLVM functions that describe a kernel to a graph, and tell whether a node is that kernel already.

A kernel whose parameters are words that lie one after the other is known by them; one with others is told anew.
"""

from __future__ import annotations

from tilewright.backends.cuda.host.graph_words import Call, Node, word

_DESCRIBE = f"""
define internal void @graph_describe(ptr %call, ptr %function, i32 %blocks, i32 %threads, i32 %shared, ptr %params)
    nounwind {{
  {word("p0", "call", Call.FUNCTION)}
  store ptr %function, ptr %p0, align 8
  {word("p1", "call", Call.GRID_X)}
  store i64 4294967297, ptr %p1, align 8
  store i32 %blocks, ptr %p1, align 8
  {word("p2", "call", Call.GRID_Z)}
  %thread.bits = zext i32 %threads to i64
  %high = shl i64 %thread.bits, 32
  %third = or i64 %high, 1
  store i64 %third, ptr %p2, align 8
  {word("p3", "call", Call.BLOCK_Y)}
  store i64 4294967297, ptr %p3, align 8
  {word("p4", "call", Call.SHARED)}
  %bytes = zext i32 %shared to i64
  store i64 %bytes, ptr %p4, align 8
  {word("p5", "call", Call.PARAMS)}
  store ptr %params, ptr %p5, align 8
  ret void
}}
"""

_IS_SAME = f"""
define internal i1 @graph_is_same(ptr %node, ptr %function, i32 %blocks, ptr %params) nounwind {{
  {word("function.at", "node", Node.FUNCTION)}
  %old = load ptr, ptr %function.at, align 8
  {word("blocks.at", "node", Node.BLOCKS)}
  %old.blocks = load i64, ptr %blocks.at, align 8
  {word("count.at", "node", Node.COUNT)}
  %old.count = load i64, ptr %count.at, align 8
  {word("words", "node", Node.WORD)}
  store ptr %function, ptr %function.at, align 8
  %new.blocks = zext i32 %blocks to i64
  store i64 %new.blocks, ptr %blocks.at, align 8
  store i64 -1, ptr %count.at, align 8
  %is.function = icmp eq ptr %old, %function
  %is.grid = icmp eq i64 %old.blocks, %new.blocks
  %is.both = and i1 %is.function, %is.grid
  %first = load ptr, ptr %params, align 8
  br label %next
next:
  %index = phi i64 [ 0, %0 ], [ %following, %on ]
  %same = phi i1 [ %is.both, %0 ], [ %still, %on ]
  %place.at = getelementptr ptr, ptr %params, i64 %index
  %place = load ptr, ptr %place.at, align 8
  %wanted = getelementptr i64, ptr %first, i64 %index
  %is.word = icmp eq ptr %place, %wanted
  %has.room = icmp slt i64 %index, {Node.END - Node.WORD}
  %is.known = and i1 %is.word, %has.room
  br i1 %is.known, label %look, label %unknown
look:
  %following = add i64 %index, 1
  %next.at = getelementptr ptr, ptr %params, i64 %following
  %next.place = load ptr, ptr %next.at, align 8
  %is.last = icmp eq ptr %next.place, %place
  br i1 %is.last, label %known, label %on
on:
  %value = load i64, ptr %place, align 8
  %word.at = getelementptr i64, ptr %words, i64 %index
  %held = load i64, ptr %word.at, align 8
  store i64 %value, ptr %word.at, align 8
  %is.held = icmp eq i64 %value, %held
  %still = and i1 %same, %is.held
  br label %next
known:
  store i64 %index, ptr %count.at, align 8
  %is.count = icmp eq i64 %index, %old.count
  %answer = and i1 %same, %is.count
  ret i1 %answer
unknown:
  ret i1 false
}}
"""

FUNCTIONS = _DESCRIBE, _IS_SAME
