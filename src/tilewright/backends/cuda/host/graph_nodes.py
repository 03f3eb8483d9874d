"""Graph nodes: the LLVM functions that describe a kernel to a graph, and tell whether a node is that kernel already.

A kernel is known by its parameters: words, which lie one after the other, then descriptors of tensors, then the same
place twice. One with more of them than a node has room for is told anew.
"""

from __future__ import annotations

from tilewright.backends.cuda.host.graph_words import MAP_WORDS, Call, Node, word

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
  %index = phi i64 [ 0, %0 ], [ %following, %word ], [ %following, %map ]
  %used = phi i64 [ 0, %0 ], [ %used.word, %word ], [ %used.map, %map ]
  %same = phi i1 [ %is.both, %0 ], [ %same.word, %word ], [ %same.map, %map ]
  %place.at = getelementptr ptr, ptr %params, i64 %index
  %place = load ptr, ptr %place.at, align 8
  %following = add i64 %index, 1
  %next.at = getelementptr ptr, ptr %params, i64 %following
  %next.place = load ptr, ptr %next.at, align 8
  %is.last = icmp eq ptr %next.place, %place
  br i1 %is.last, label %known, label %look
look:
  %wanted = getelementptr i64, ptr %first, i64 %index
  %is.word = icmp eq ptr %place, %wanted
  %used.word = add i64 %used, 1
  %used.map = add i64 %used, {MAP_WORDS}
  %wants = select i1 %is.word, i64 %used.word, i64 %used.map
  %word.at = getelementptr i64, ptr %words, i64 %used
  %has.room = icmp sle i64 %wants, {Node.END - Node.WORD}
  br i1 %has.room, label %hold, label %unknown
hold:
  br i1 %is.word, label %word, label %map
word:
  %value = load i64, ptr %place, align 8
  %held = load i64, ptr %word.at, align 8
  store i64 %value, ptr %word.at, align 8
  %is.held = icmp eq i64 %value, %held
  %same.word = and i1 %same, %is.held
  br label %next
map:
  %values = load <{MAP_WORDS} x i64>, ptr %place, align 8
  %helds = load <{MAP_WORDS} x i64>, ptr %word.at, align 8
  store <{MAP_WORDS} x i64> %values, ptr %word.at, align 8
  %differ = icmp ne <{MAP_WORDS} x i64> %values, %helds
  %bits = bitcast <{MAP_WORDS} x i1> %differ to i{MAP_WORDS}
  %are.held = icmp eq i{MAP_WORDS} %bits, 0
  %same.map = and i1 %same, %are.held
  br label %next
known:
  store i64 %used, ptr %count.at, align 8
  %is.count = icmp eq i64 %used, %old.count
  %answer = and i1 %same, %is.count
  ret i1 %answer
unknown:
  ret i1 false
}}
"""

FUNCTIONS = _DESCRIBE, _IS_SAME
