"""Graph code: the LLVM functions that start all kernels of a call at once, as one graph of CUDA's.

Starting a graph costs less than starting a kernel, whatever it consists of. So the first call of an entry starts its
kernels one by one and writes them down as a graph, each after the one before it; later ones only replace what its nodes
are, which any kernel and any grid can be, where that is not what they are already, and start it once the entry is done.
Nodes that a call has no kernel for are switched off, and kernels that it has no node for are started behind it. A graph
runs on the stream it was made on, and never while somebody captures that or another thread uses it: then kernels are
started one by one.

    state := calls that wrote it down, whether it is used, graph, its stream, nodes, those switched on, then memory that
             calls share, which is no more than that of one since they follow each other, then the nodes
    node  := handle, kernel, blocks, words or -1 where they are not known, then its words
"""

from __future__ import annotations

from enum import IntEnum

STATES = "tilewright_cuda_graphs"
NODES = 64
"""Nodes of a graph at most."""
TRIES = 4
"""Calls that may write down a graph; an entry whose calls have no kernels has none."""
SHARED_BLOCKS, SHARED_BYTES = 8, 1 << 20
"""How many blocks of memory the calls of an entry share, and how large each is at most."""


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
    MEMORY = 6
    """Pairs of an address and how many bytes there are."""
    NODE = 6 + 2 * SHARED_BLOCKS


class Node(IntEnum):
    """The words of a node, and how many there are."""

    HANDLE = 0
    FUNCTION = 1
    BLOCKS = 2
    COUNT = 3
    WORD = 4
    END = 32


STATE_WORDS = State.NODE + NODES * Node.END


class Call(IntEnum):
    """The words of one call; from FUNCTION to CONTEXT they are a node's as the driver takes them."""

    STATE = 0
    """Its state, nothing where kernels are started one by one."""
    COUNT = 1
    """Kernels so far."""
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
    IS_STARTED = 13
    """Whether the graph was started, so that what follows is started one by one."""
    MEMORY = 14
    """Blocks of shared memory so far."""


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
  store [{len(Call)} x i64] zeroinitializer, ptr %call, align 8
  {_word("made", "call", Call.MADE)}
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

_DESCRIBE = f"""
define internal void @describe(ptr %call, ptr %function, i32 %blocks, i32 %threads, i32 %shared, ptr %params)
    nounwind {{
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
  ret void
}}
"""

_IS_SAME = f"""
define internal i1 @is_same(ptr %node, ptr %function, i32 %blocks, ptr %params) nounwind {{
  {_word("function.at", "node", Node.FUNCTION)}
  %old = load ptr, ptr %function.at, align 8
  {_word("blocks.at", "node", Node.BLOCKS)}
  %old.blocks = load i64, ptr %blocks.at, align 8
  {_word("count.at", "node", Node.COUNT)}
  %old.count = load i64, ptr %count.at, align 8
  {_word("words", "node", Node.WORD)}
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

_TAKES = f"""
define internal i1 @graph_takes(ptr %call, ptr %stream, ptr %function, i32 %blocks, i32 %threads, i32 %shared,
    ptr %params) nounwind {{
  %state = load ptr, ptr %call, align 8
  %none = icmp eq ptr %state, null
  br i1 %none, label %no, label %look
look:
  {_word("started.at", "call", Call.IS_STARTED)}
  %started = load i64, ptr %started.at, align 8
  %is.started = icmp ne i64 %started, 0
  br i1 %is.started, label %no, label %find
find:
  {_word("count.at", "call", Call.COUNT)}
  %count = load i64, ptr %count.at, align 8
  {_word("node.words", "call", Call.FUNCTION)}
  {_word("nodes", "state", State.NODE)}
  %place = mul i64 %count, {Node.END}
  %node.at = getelementptr i64, ptr %nodes, i64 %place
  %next = add i64 %count, 1
  {_word("made.at", "call", Call.MADE)}
  %made = load ptr, ptr %made.at, align 8
  %writes = icmp ne ptr %made, null
  br i1 %writes, label %write, label %replace

write:
  %has.room = icmp slt i64 %count, {NODES}
  br i1 %has.room, label %add, label %no
add:
  call void @describe(ptr %call, ptr %function, i32 %blocks, i32 %threads, i32 %shared, ptr %params)
  {_word("before", "node.at", -Node.END)}
  %is.first = icmp eq i64 %count, 0
  %after = select i1 %is.first, ptr null, ptr %before
  %several = select i1 %is.first, i64 0, i64 1
  %added = call i32 @cuGraphAddKernelNode_v2(ptr %node.at, ptr %made, ptr %after, i64 %several, ptr %node.words)
  {_word("known.at", "node.at", Node.COUNT)}
  store i64 -1, ptr %known.at, align 8
  %is.added = icmp eq i32 %added, 0
  %now = select i1 %is.added, i64 %next, i64 %count
  store i64 %now, ptr %count.at, align 8
  br label %no

replace:
  {_word("all.at", "state", State.NODES)}
  %all = load i64, ptr %all.at, align 8
  %is.one = icmp slt i64 %count, %all
  br i1 %is.one, label %compare, label %flush
compare:
  {_word("graph.at", "state", State.GRAPH)}
  %graph = load ptr, ptr %graph.at, align 8
  %node = load ptr, ptr %node.at, align 8
  %same = call i1 @is_same(ptr %node.at, ptr %function, i32 %blocks, ptr %params)
  br i1 %same, label %switch, label %set
set:
  call void @describe(ptr %call, ptr %function, i32 %blocks, i32 %threads, i32 %shared, ptr %params)
  %code = call i32 @cuGraphExecKernelNodeSetParams_v2(ptr %graph, ptr %node, ptr %node.words)
  %fine = icmp eq i32 %code, 0
  br i1 %fine, label %switch, label %forget
forget:
  {_word("unknown.at", "node.at", Node.COUNT)}
  store i64 -1, ptr %unknown.at, align 8
  br label %flush
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
  %state = load ptr, ptr %call, align 8
  %none = icmp eq ptr %state, null
  br i1 %none, label %done, label %look
look:
  {_word("made.at", "call", Call.MADE)}
  %made = load ptr, ptr %made.at, align 8
  %writes = icmp ne ptr %made, null
  {_word("started.at", "call", Call.IS_STARTED)}
  %started = load i64, ptr %started.at, align 8
  %is.started = icmp ne i64 %started, 0
  {_word("count.at", "call", Call.COUNT)}
  %count = load i64, ptr %count.at, align 8
  %is.empty = icmp eq i64 %count, 0
  %is.over = or i1 %writes, %is.started
  %is.nothing = or i1 %is.over, %is.empty
  br i1 %is.nothing, label %done, label %replaced
replaced:
  store i64 1, ptr %started.at, align 8
  {_word("graph.at", "state", State.GRAPH)}
  %graph = load ptr, ptr %graph.at, align 8
  {_word("on.at", "state", State.ON)}
  %on = load i64, ptr %on.at, align 8
  {_word("nodes", "state", State.NODE)}
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
  {_word("failed", "call", Call.FAILED)}
  store i32 %launched, ptr %failed, align 8
  br label %done
done:
  ret void
}}
"""

_END = f"""
define internal void @graph_end(ptr %call, ptr %stream) nounwind {{
  %state = load ptr, ptr %call, align 8
  %none = icmp eq ptr %state, null
  br i1 %none, label %nothing, label %look
look:
  call void @graph_start(ptr %call, ptr %stream)
  {_word("made.at", "call", Call.MADE)}
  %made = load ptr, ptr %made.at, align 8
  %writes = icmp ne ptr %made, null
  br i1 %writes, label %wrote, label %leave
wrote:
  {_word("count.at", "call", Call.COUNT)}
  %count = load i64, ptr %count.at, align 8
  {_word("graph.at", "state", State.GRAPH)}
  %is.worth = icmp sgt i64 %count, 0
  br i1 %is.worth, label %instantiate, label %drop
instantiate:
  %code = call i32 @cuGraphInstantiateWithFlags(ptr %graph.at, ptr %made, i64 0)
  %fine = icmp eq i32 %code, 0
  br i1 %fine, label %keep, label %forget
keep:
  {_word("nodes.at", "state", State.NODES)}
  store i64 %count, ptr %nodes.at, align 8
  {_word("on.at", "state", State.ON)}
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
leave:
  store ptr null, ptr %call, align 8
  {_word("busy", "state", State.BUSY)}
  store atomic i64 0, ptr %busy release, align 8
  br label %nothing
nothing:
  ret void
}}
"""

_MEMORY = f"""
define internal ptr @graph_memory(ptr %call, i64 %size, ptr %stream) nounwind {{
  %state = load ptr, ptr %call, align 8
  %none = icmp eq ptr %state, null
  br i1 %none, label %no, label %look
look:
  {_word("made.at", "call", Call.MADE)}
  %made = load ptr, ptr %made.at, align 8
  %writes = icmp ne ptr %made, null
  {_word("memory.at", "call", Call.MEMORY)}
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
  {_word("pairs", "state", State.MEMORY)}
  %pair.at = getelementptr i64, ptr %pairs, i64 %pair
  {_word("size.at", "pair.at", 1)}
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

FUNCTIONS = _BEGIN, _DESCRIBE, _IS_SAME, _TAKES, _START, _END, _MEMORY
