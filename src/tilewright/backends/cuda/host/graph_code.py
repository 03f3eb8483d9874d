"""Graph code: the LLVM functions that start all kernels of a call at once, as one graph of CUDA's.

Starting a graph costs less than starting a kernel, whatever it consists of. So the first call of an entry starts its
kernels one by one and writes them down as a graph, each after the one before it; later ones only replace what its nodes
are, which any kernel and any grid can be, where that is not what they are already, and start it once the entry is done.
Nodes that a call has no kernel for are switched off, and kernels that it has no node for are started behind it. A graph
runs on the stream it was made on, and never while somebody captures that or another thread uses it; then, and on more
streams than there are graphs for, kernels are started one by one.
"""

from __future__ import annotations

from tilewright.backends.cuda.host import graph_memory, graph_nodes
from tilewright.backends.cuda.host.graph_words import (
    NODES,
    STATE_WORDS,
    STATES,
    STREAMS,
    TRIES,
    Call,
    Node,
    State,
    loaded,
    look,
    word,
)

DECLARED = f"""
@{STATES} = external global [{STATE_WORDS} x i64]
declare i32 @cuStreamIsCapturing(ptr, ptr)
declare i32 @cuGraphCreate(ptr, i32)
declare i32 @cuGraphDestroy(ptr)
declare i32 @cuGraphAddKernelNode_v2(ptr, ptr, ptr, i64, ptr)
declare i32 @cuGraphInstantiateWithFlags(ptr, ptr, i64)
declare i32 @cuGraphExecKernelNodeSetParams_v2(ptr, ptr, ptr)
declare i32 @cuGraphNodeSetEnabled(ptr, ptr, i32)
declare i32 @cuGraphLaunch(ptr, ptr)
""".strip()


_BEGIN = f"""
define internal void @graph_begin(ptr %call, ptr %states, ptr %stream) nounwind {{
  store [{len(Call)} x i64] zeroinitializer, ptr %call, align 8
  {word("made", "call", Call.MADE)}
  br label %search
search:
  %number = phi i64 [ 0, %0 ], [ %next, %other ]
  %place = mul i64 %number, {STATE_WORDS}
  %state = getelementptr i64, ptr %states, i64 %place
  {loaded("graph", "state", State.GRAPH, "ptr")}
  {word("stream.at", "state", State.STREAM)}
  %own = load ptr, ptr %stream.at, align 8
  %is.there = icmp ne ptr %graph, null
  %is.own = icmp eq ptr %own, %stream
  %is.free = xor i1 %is.there, true
  %is.either = or i1 %is.free, %is.own
  br i1 %is.either, label %found, label %other
other:
  %next = add i64 %number, 1
  %is.more = icmp slt i64 %next, {STREAMS}
  br i1 %is.more, label %search, label %done
found:
  %tries = load i64, ptr %state, align 8
  %is.new = icmp slt i64 %tries, {TRIES}
  %may = or i1 %is.there, %is.new
  br i1 %may, label %take, label %done
take:
  {word("busy", "state", State.BUSY)}
  %was = cmpxchg ptr %busy, i64 0, i64 1 acquire monotonic
  %free = extractvalue {{ i64, i1 }} %was, 1
  br i1 %free, label %ask, label %done
ask:
  %status = alloca i32
  store i32 1, ptr %status, align 4
  %asked = call i32 @cuStreamIsCapturing(ptr %stream, ptr %status)
  %captures = load i32, ptr %status, align 4
  %either = or i32 %asked, %captures
  %is.seen = icmp ne i32 %either, 0
  br i1 %is.seen, label %leave, label %ready
ready:
  br i1 %is.there, label %use, label %write
write:
  %more = add i64 %tries, 1
  store i64 %more, ptr %state, align 8
  %created = call i32 @cuGraphCreate(ptr %made, i32 0)
  %fine = icmp eq i32 %created, 0
  br i1 %fine, label %use, label %leave
use:
  store ptr %state, ptr %call, align 8
  ret void
leave:
  store atomic i64 0, ptr %busy release, align 8
  br label %done
done:
  ret void
}}
"""

_TAKES = f"""
define internal i1 @graph_takes(ptr %call, ptr %stream, ptr %function, i32 %blocks, i32 %threads, i32 %shared,
    ptr %params) nounwind {{
  {look("no")}
  {loaded("started", "call", Call.IS_STARTED)}
  %is.started = icmp ne i64 %started, 0
  br i1 %is.started, label %no, label %find
find:
  {loaded("count", "call", Call.COUNT)}
  {word("node.words", "call", Call.FUNCTION)}
  {word("nodes", "state", State.NODE)}
  %place = mul i64 %count, {Node.END}
  %node.at = getelementptr i64, ptr %nodes, i64 %place
  %next = add i64 %count, 1
  {loaded("made", "call", Call.MADE, "ptr")}
  %writes = icmp ne ptr %made, null
  br i1 %writes, label %write, label %replace

write:
  %has.room = icmp slt i64 %count, {NODES}
  br i1 %has.room, label %add, label %no
add:
  call void @graph_describe(ptr %call, ptr %function, i32 %blocks, i32 %threads, i32 %shared, ptr %params)
  {word("before", "node.at", -Node.END)}
  %is.first = icmp eq i64 %count, 0
  %after = select i1 %is.first, ptr null, ptr %before
  %several = select i1 %is.first, i64 0, i64 1
  %added = call i32 @cuGraphAddKernelNode_v2(ptr %node.at, ptr %made, ptr %after, i64 %several, ptr %node.words)
  {word("known.at", "node.at", Node.COUNT)}
  store i64 -1, ptr %known.at, align 8
  %is.added = icmp eq i32 %added, 0
  %now = select i1 %is.added, i64 %next, i64 %count
  store i64 %now, ptr %count.at, align 8
  br label %no

replace:
  {loaded("all", "state", State.NODES)}
  %is.one = icmp slt i64 %count, %all
  br i1 %is.one, label %compare, label %flush
compare:
  {loaded("graph", "state", State.GRAPH, "ptr")}
  %node = load ptr, ptr %node.at, align 8
  %same = call i1 @graph_is_same(ptr %node.at, ptr %function, i32 %blocks, ptr %params)
  br i1 %same, label %switch, label %set
set:
  call void @graph_describe(ptr %call, ptr %function, i32 %blocks, i32 %threads, i32 %shared, ptr %params)
  %code = call i32 @cuGraphExecKernelNodeSetParams_v2(ptr %graph, ptr %node, ptr %node.words)
  %fine = icmp eq i32 %code, 0
  br i1 %fine, label %switch, label %forget
forget:
  {word("unknown.at", "node.at", Node.COUNT)}
  store i64 -1, ptr %unknown.at, align 8
  br label %flush
switch:
  store i64 %next, ptr %count.at, align 8
  {loaded("on", "state", State.ON)}
  %is.on = icmp slt i64 %count, %on
  br i1 %is.on, label %yes, label %enable
enable:
  %enabled = call i32 @cuGraphNodeSetEnabled(ptr %graph, ptr %node, i32 1)
  store i64 %next, ptr %on.at, align 8
  br label %yes
flush:
  call void @graph_start(ptr %call, ptr %stream)
  br label %no
yes:
  ret i1 true
no:
  ret i1 false
}}
"""

_START = f"""
define internal void @graph_start(ptr %call, ptr %stream) nounwind {{
  {look("done")}
  {loaded("made", "call", Call.MADE, "ptr")}
  %writes = icmp ne ptr %made, null
  {loaded("started", "call", Call.IS_STARTED)}
  %is.started = icmp ne i64 %started, 0
  {loaded("count", "call", Call.COUNT)}
  %is.empty = icmp eq i64 %count, 0
  %is.over = or i1 %writes, %is.started
  %is.nothing = or i1 %is.over, %is.empty
  br i1 %is.nothing, label %done, label %replaced
replaced:
  store i64 1, ptr %started.at, align 8
  {loaded("graph", "state", State.GRAPH, "ptr")}
  {loaded("on", "state", State.ON)}
  {word("nodes", "state", State.NODE)}
  br label %rest
rest:
  %which = phi i64 [ %count, %replaced ], [ %following, %disable ]
  %is.more = icmp slt i64 %which, %on
  br i1 %is.more, label %disable, label %start
disable:
  %place = mul i64 %which, {Node.END}
  %node.at = getelementptr i64, ptr %nodes, i64 %place
  %node = load ptr, ptr %node.at, align 8
  %disabled = call i32 @cuGraphNodeSetEnabled(ptr %graph, ptr %node, i32 0)
  %following = add i64 %which, 1
  br label %rest
start:
  store i64 %count, ptr %on.at, align 8
  %launched = call i32 @cuGraphLaunch(ptr %graph, ptr %stream)
  {word("failed", "call", Call.FAILED)}
  store i32 %launched, ptr %failed, align 8
  br label %done
done:
  ret void
}}
"""

_END = f"""
define internal void @graph_end(ptr %call, ptr %stream) nounwind {{
  {look("nothing")}
  call void @graph_start(ptr %call, ptr %stream)
  {loaded("made", "call", Call.MADE, "ptr")}
  %writes = icmp ne ptr %made, null
  br i1 %writes, label %wrote, label %leave
wrote:
  {loaded("count", "call", Call.COUNT)}
  {word("graph.at", "state", State.GRAPH)}
  %is.worth = icmp sgt i64 %count, 0
  br i1 %is.worth, label %instantiate, label %drop
instantiate:
  %code = call i32 @cuGraphInstantiateWithFlags(ptr %graph.at, ptr %made, i64 0)
  %fine = icmp eq i32 %code, 0
  br i1 %fine, label %keep, label %forget
keep:
  {word("nodes.at", "state", State.NODES)}
  store i64 %count, ptr %nodes.at, align 8
  {word("on.at", "state", State.ON)}
  store i64 %count, ptr %on.at, align 8
  {word("stream.at", "state", State.STREAM)}
  store ptr %stream, ptr %stream.at, align 8
  br label %leave
forget:
  store ptr null, ptr %graph.at, align 8
  br label %drop
drop:
  %dropped = call i32 @cuGraphDestroy(ptr %made)
  br label %leave
leave:
  store ptr null, ptr %call, align 8
  {word("busy", "state", State.BUSY)}
  store atomic i64 0, ptr %busy release, align 8
  br label %nothing
nothing:
  ret void
}}
"""

FUNCTIONS = *graph_nodes.FUNCTIONS, *graph_memory.FUNCTIONS, _BEGIN, _TAKES, _START, _END
