"""The context: words that a running program shares with its caller and among its tasks."""

from __future__ import annotations

from enum import IntEnum


class Context(IntEnum):
    """The words of a context."""

    PARALLEL = 0
    """Where the code lies that runs chunks side by side."""
    ERROR = 1
    """The number of the first error: 0 while there is none, INTERRUPTED where a signal ended the program.

    The upper half is the index that it names, where a device has noted it.
    """
    BUFFERS = 2
    """The list of buffers that the caller frees."""
    LOOK = 3
    """Where the code lies that looks for signals while the program runs; 0 where nobody sends any."""
    SINCE = 4
    """When it last looked."""
    PIPES = 5
    """The side of a group that runs, as `coroutines` has it; 0 outside of a group."""
    THREADS = 6
    """How many threads run chunks side by side at most; 0 where nobody says."""
    WAITS = 7
    """Where the words lie by which waits for other ranks are ended (`domains`); 0 where one runs alone."""
    FIRST = 8
    SECOND = 9
    THIRD = 10
    FOURTH = 11
    """The numbers that the first error names, written by whoever notes it; nobody reads them without one."""


INTERRUPTED = -1

NUMBERS = (Context.FIRST, Context.SECOND, Context.THIRD, Context.FOURTH)

INDEX = "{index}"
"""Stands in an error's message for the index that it names."""


def context_words(parallel: int, look: int, threads: int, waits: int = 0) -> tuple[int, ...]:
    """Return the context of a program that is about to run on so many threads, perhaps as one of several ranks."""
    return parallel, 0, 0, look, 0, 0, threads, waits
