"""Graph words: what is kept of the graphs of an entry, one for each stream, and of a call that uses one.

state := calls that wrote it down, whether it is used, graph, its stream, nodes, those switched on, then memory that
         calls share, which is no more than that of one since they follow each other, then the nodes
node  := handle, kernel, blocks, how many words its parameters are or -1 where they are not known, then those
"""

from __future__ import annotations

from enum import IntEnum

STATES = "tilewright_cuda_graphs"
NODES = 32
"""Nodes of a graph at most."""
STREAMS = 3
"""How many streams an entry has graphs for, the first ones that it is called on."""
TRIES = 4
"""Calls that may write down a graph; an entry whose calls have no kernels has none."""
SHARED_BLOCKS, SHARED_BYTES = 8, 1 << 20
"""How many blocks of memory the calls of an entry share, and how large each is at most."""

MAP_WORDS = 16
"""Words of a descriptor."""


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
    END = 96


STATE_WORDS = State.NODE + NODES * Node.END
ENTRY_WORDS = STREAMS * STATE_WORDS


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


def word(name: str, base: str, index: int) -> str:
    """Return the line that finds a word of a table."""
    return f"%{name} = getelementptr i64, ptr %{base}, i64 {index}"


def loaded(name: str, base: str, index: int, kind: str = "i64") -> str:
    """Return the lines that find a word of a table, which `.at` is added to its name for, and load it."""
    return f"{word(f'{name}.at', base, index)}\n  %{name} = load {kind}, ptr %{name}.at, align 8"


def look(nothing: str) -> str:
    """Return the lines that find a call's state and go on where it has one, else to another block."""
    return f"""%state = load ptr, ptr %call, align 8
  %none = icmp eq ptr %state, null
  br i1 %none, label %{nothing}, label %look
look:"""
