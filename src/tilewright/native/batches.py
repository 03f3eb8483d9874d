"""Batches: entries called one after the other without Python between them.

A list has three words for each: where the entry lies, its words and its context. The first that notes an error is the
last to run. The count of those before it is given back, and the sign bit is set where any left buffers to be freed.
"""

from tilewright.native.context import Context

BATCH = f"""
define i64 @batch(ptr %list, i64 %count) nounwind {{
entry:
  %some = icmp sgt i64 %count, 0
  br i1 %some, label %loop, label %none
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %on ]
  %left = phi i64 [ 0, %entry ], [ %kept, %on ]
  %place = mul i64 %i, 3
  %fn.at = getelementptr ptr, ptr %list, i64 %place
  %fn = load ptr, ptr %fn.at
  %words.at = getelementptr ptr, ptr %fn.at, i64 1
  %words = load ptr, ptr %words.at
  %context.at = getelementptr ptr, ptr %fn.at, i64 2
  %context = load ptr, ptr %context.at
  call void %fn(ptr %words, ptr %context)
  %buffers.at = getelementptr i64, ptr %context, i64 {Context.BUFFERS.value}
  %buffers = load i64, ptr %buffers.at
  %made = icmp ne i64 %buffers, 0
  %flag = select i1 %made, i64 {-(1 << 63)}, i64 0
  %kept = or i64 %left, %flag
  %error.at = getelementptr i64, ptr %context, i64 {Context.ERROR.value}
  %error = load i64, ptr %error.at
  %failed = icmp ne i64 %error, 0
  br i1 %failed, label %stop, label %on
on:
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %count
  br i1 %more, label %loop, label %all
stop:
  %told = or i64 %kept, %i
  ret i64 %told
all:
  %whole = or i64 %kept, %count
  ret i64 %whole
none:
  ret i64 0
}}
"""
