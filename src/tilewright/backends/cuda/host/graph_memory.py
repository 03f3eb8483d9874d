"""Graph memory: the LLVM function that lends a call small temporaries, the same ones to every call.

Calls that use a graph follow each other on its stream, so what one has written is read before the next writes.
"""

from __future__ import annotations

from tilewright.backends.cuda.host.graph_words import SHARED_BLOCKS, SHARED_BYTES, Call, State, loaded, look, word

_MEMORY = f"""
define internal ptr @graph_memory(ptr %call, i64 %size, ptr %stream) nounwind {{
  {look("no")}
  {loaded("made", "call", Call.MADE, "ptr")}
  %writes = icmp ne ptr %made, null
  {word("memory.at", "call", Call.MEMORY)}
  %number = load i64, ptr %memory.at, align 8
  %is.full = icmp sge i64 %number, {SHARED_BLOCKS}
  %is.large = icmp ugt i64 %size, {SHARED_BYTES}
  %not.now = or i1 %writes, %is.full
  %not.this = or i1 %not.now, %is.large
  br i1 %not.this, label %no, label %find
find:
  %next = add i64 %number, 1
  store i64 %next, ptr %memory.at, align 8
  %pair = mul i64 %number, 2
  {word("pairs", "state", State.MEMORY)}
  %pair.at = getelementptr i64, ptr %pairs, i64 %pair
  {word("size.at", "pair.at", 1)}
  %have = load i64, ptr %size.at, align 8
  %memory = load ptr, ptr %pair.at, align 8
  %is.enough = icmp uge i64 %have, %size
  br i1 %is.enough, label %yes, label %grow
grow:
  store i64 0, ptr %size.at, align 8
  %is.old = icmp ne ptr %memory, null
  br i1 %is.old, label %free, label %make
free:
  %freed = call i32 @cuMemFreeAsync(ptr %memory, ptr %stream)
  br label %make
make:
  store ptr null, ptr %pair.at, align 8
  %code = call i32 @cuMemAllocAsync(ptr %pair.at, i64 %size, ptr %stream)
  %fine = icmp eq i32 %code, 0
  br i1 %fine, label %keep, label %no
keep:
  store i64 %size, ptr %size.at, align 8
  %fresh = load ptr, ptr %pair.at, align 8
  ret ptr %fresh
yes:
  ret ptr %memory
no:
  ret ptr null
}}
"""

FUNCTIONS = (_MEMORY,)
