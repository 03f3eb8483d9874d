"""Graph code: the LLVM functions that start all kernels of a call at once, as one graph of CUDA's.

Starting a graph costs as much as starting one kernel, whatever it consists of. So the first calls of an entry start
their kernels one by one and write them down as a graph, each after the one before it; later ones only replace what its
nodes are, which any kernel and any grid can be, and start it once the entry is done. Nodes that a call has no kernel
for are switched off, and kernels that it has no node for are started behind it. A graph runs on the stream it was made
on, and never while somebody captures that or another thread uses it: then kernels are started one by one, as they are
where there is only one.

    state := calls that wrote it down, whether it is used, graph, its stream, nodes, those switched on, then the nodes
"""

from __future__ import annotations

from enum import IntEnum

STATES = "tilewright_cuda_graphs"
MOST = 64
"""Nodes of a graph at most."""
TRIES = 4
"""Calls that may write down a graph of more than one kernel; after them an entry is one that has none."""


class State(IntEnum):
    """The words of an entry's graph, before its nodes."""

    TRIES = 0
    BUSY = 1
    GRAPH = 2
    """The graph that can be started, nothing while there is none; the one that its nodes are of stays, too."""
    STREAM = 3
    NODES = 4
    ON = 5
    """How many of its nodes, the first ones, are switched on."""
    NODE = 6


STATE_WORDS = State.NODE + MOST


class Call(IntEnum):
    """The words of one call: its state, or nothing where kernels start one by one; kernels so far; the node's words."""

    STATE = 0
    COUNT = 1
    MADE = 2
    """The graph that is being written down, nothing where one is replaced."""
    FUNCTION = 3
    GRID_X = 4
    GRID_Z = 5
    BLOCK_Y = 6
    SHARED = 7
    PARAMS = 8
    EXTRA = 9
    KERNEL = 10
    CONTEXT = 11
    FAILED = 12
    """The driver's error where the graph could not be started, else 0."""


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


def _word(name: str, base: str, index: int) -> str:
    return f"%{name} = getelementptr i64, ptr %{base}, i64 {index}"


_BEGIN = f"""
define internal void @graph_begin(ptr %call, ptr %state, ptr %stream) nounwind {{
  store ptr null, ptr %call, align 8
  {_word("count", "call", Call.COUNT)}
  store i64 0, ptr %count, align 8
  {_word("made", "call", Call.MADE)}
  store ptr null, ptr %made, align 8
  {_word("failed", "call", Call.FAILED)}
  store i64 0, ptr %failed, align 8
  %tries = load i64, ptr %state, align 8
  {_word("graph.at", "state", State.GRAPH)}
  %graph = load ptr, ptr %graph.at, align 8
  {_word("stream.at", "state", State.STREAM)}
  %own = load ptr, ptr %stream.at, align 8
  %is.there = icmp ne ptr %graph, null
  %is.own = icmp eq ptr %own, %stream
  %is.new = icmp slt i64 %tries, {TRIES}
  %may = select i1 %is.there, i1 %is.own, i1 %is.new
  br i1 %may, label %take, label %done
take:
  {_word("busy", "state", State.BUSY)}
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

_NODE = f"""
define internal void @graph_node(ptr %call, ptr %function, i32 %blocks, i32 %threads, i32 %shared, ptr %params)
    nounwind {{
  %state = load ptr, ptr %call, align 8
  %none = icmp eq ptr %state, null
  br i1 %none, label %done, label %fill
fill:
  {_word("p0", "call", Call.FUNCTION)}
  store ptr %function, ptr %p0, align 8
  {_word("p1", "call", Call.GRID_X)}
  store i64 4294967297, ptr %p1, align 8
  store i32 %blocks, ptr %p1, align 8
  {_word("p2", "call", Call.GRID_Z)}
  %thread.bits = zext i32 %threads to i64
  %high = shl i64 %thread.bits, 32
  %third = or i64 %high, 1
  store i64 %third, ptr %p2, align 8
  {_word("p3", "call", Call.BLOCK_Y)}
  store i64 4294967297, ptr %p3, align 8
  {_word("p4", "call", Call.SHARED)}
  %bytes = zext i32 %shared to i64
  store i64 %bytes, ptr %p4, align 8
  {_word("p5", "call", Call.PARAMS)}
  store ptr %params, ptr %p5, align 8
  {_word("p6", "call", Call.EXTRA)}
  store [3 x i64] zeroinitializer, ptr %p6, align 8
  br label %done
done:
  ret void
}}
"""

_TAKES = f"""
define internal i1 @graph_takes(ptr %call, ptr %stream) nounwind {{
  %state = load ptr, ptr %call, align 8
  %none = icmp eq ptr %state, null
  br i1 %none, label %no, label %look
look:
  {_word("count.at", "call", Call.COUNT)}
  %count = load i64, ptr %count.at, align 8
  {_word("node.words", "call", Call.FUNCTION)}
  {_word("nodes", "state", State.NODE)}
  %node.at = getelementptr ptr, ptr %nodes, i64 %count
  %next = add i64 %count, 1
  {_word("made.at", "call", Call.MADE)}
  %made = load ptr, ptr %made.at, align 8
  %writes = icmp ne ptr %made, null
  br i1 %writes, label %write, label %replace

write:
  %has.room = icmp slt i64 %count, {MOST}
  br i1 %has.room, label %add, label %no
add:
  %before = getelementptr ptr, ptr %node.at, i64 -1
  %is.first = icmp eq i64 %count, 0
  %after = select i1 %is.first, ptr null, ptr %before
  %several = select i1 %is.first, i64 0, i64 1
  %added = call i32 @cuGraphAddKernelNode_v2(ptr %node.at, ptr %made, ptr %after, i64 %several, ptr %node.words)
  %is.added = icmp eq i32 %added, 0
  %now = select i1 %is.added, i64 %next, i64 %count
  store i64 %now, ptr %count.at, align 8
  br label %no

replace:
  {_word("all.at", "state", State.NODES)}
  %all = load i64, ptr %all.at, align 8
  %is.one = icmp slt i64 %count, %all
  br i1 %is.one, label %set, label %flush
set:
  {_word("graph.at", "state", State.GRAPH)}
  %graph = load ptr, ptr %graph.at, align 8
  %node = load ptr, ptr %node.at, align 8
  %code = call i32 @cuGraphExecKernelNodeSetParams_v2(ptr %graph, ptr %node, ptr %node.words)
  %fine = icmp eq i32 %code, 0
  br i1 %fine, label %switch, label %flush
switch:
  store i64 %next, ptr %count.at, align 8
  {_word("on.at", "state", State.ON)}
  %on = load i64, ptr %on.at, align 8
  %is.on = icmp slt i64 %count, %on
  br i1 %is.on, label %yes, label %enable
enable:
  %enabled = call i32 @cuGraphNodeSetEnabled(ptr %graph, ptr %node, i32 1)
  store i64 %next, ptr %on.at, align 8
  br label %yes
flush:
  call void @graph_end(ptr %call, ptr %stream)
  br label %no
yes:
  ret i1 true
no:
  ret i1 false
}}
"""

_END = f"""
define internal void @graph_end(ptr %call, ptr %stream) nounwind {{
  %state = load ptr, ptr %call, align 8
  %none = icmp eq ptr %state, null
  br i1 %none, label %nothing, label %look
look:
  store ptr null, ptr %call, align 8
  {_word("count.at", "call", Call.COUNT)}
  %count = load i64, ptr %count.at, align 8
  {_word("graph.at", "state", State.GRAPH)}
  {_word("on.at", "state", State.ON)}
  {_word("made.at", "call", Call.MADE)}
  %made = load ptr, ptr %made.at, align 8
  %writes = icmp ne ptr %made, null
  br i1 %writes, label %wrote, label %replaced

wrote:
  %is.worth = icmp sgt i64 %count, 1
  br i1 %is.worth, label %instantiate, label %drop
instantiate:
  %code = call i32 @cuGraphInstantiateWithFlags(ptr %graph.at, ptr %made, i64 0)
  %fine = icmp eq i32 %code, 0
  br i1 %fine, label %keep, label %forget
keep:
  {_word("nodes.at", "state", State.NODES)}
  store i64 %count, ptr %nodes.at, align 8
  store i64 %count, ptr %on.at, align 8
  {_word("stream.at", "state", State.STREAM)}
  store ptr %stream, ptr %stream.at, align 8
  br label %leave
forget:
  store ptr null, ptr %graph.at, align 8
  br label %drop
drop:
  %dropped = call i32 @cuGraphDestroy(ptr %made)
  br label %leave

replaced:
  %graph = load ptr, ptr %graph.at, align 8
  %on = load i64, ptr %on.at, align 8
  {_word("nodes", "state", State.NODE)}
  br label %rest
rest:
  %which = phi i64 [ %count, %replaced ], [ %following, %disable ]
  %is.more = icmp slt i64 %which, %on
  br i1 %is.more, label %disable, label %start
disable:
  %node.at = getelementptr ptr, ptr %nodes, i64 %which
  %node = load ptr, ptr %node.at, align 8
  %disabled = call i32 @cuGraphNodeSetEnabled(ptr %graph, ptr %node, i32 0)
  %following = add i64 %which, 1
  br label %rest
start:
  store i64 %count, ptr %on.at, align 8
  %some = icmp sgt i64 %count, 0
  br i1 %some, label %launch, label %leave
launch:
  %launched = call i32 @cuGraphLaunch(ptr %graph, ptr %stream)
  {_word("failed", "call", Call.FAILED)}
  store i32 %launched, ptr %failed, align 8
  br label %leave

leave:
  {_word("busy", "state", State.BUSY)}
  store atomic i64 0, ptr %busy release, align 8
  ret void
nothing:
  ret void
}}
"""

FUNCTIONS = _BEGIN, _NODE, _TAKES, _END
