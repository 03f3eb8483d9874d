"""Segments: memory that the processes of a group share, without a name that anybody could leave behind.

Each process makes one and opens those of the others through the file descriptors of whoever made them: memory is gone
with the last process that has it, however that ends. In front lie words of control, one page; what follows is laid out
by whoever asks for it.
"""

from __future__ import annotations

import mmap
import os
from enum import IntEnum

from tilewright.arrays import np
from tilewright.core.region import Array
from tilewright.native.domains import NAPS, SLEEPS
from tilewright.native.pages import held_pages, map_pages

PAGE = 4096
TEXT = 1024
"""Where in the page the text of an error starts."""


class Control(IntEnum):
    """The words in front of a segment; its own process writes all but ABORT."""

    ABORT = 0
    """Not 0 once the run is over."""
    EPOCH = 1
    """How many meetings its process has come to."""
    TURNS = 2
    """How many turns its rank has had in this run."""
    ANSWER = 3
    """The run, by its number, that its process has given up; the text says why."""
    ELSEWHERE = 4
    """More than the meetings which its process has heard others come to, while it plans or runs for other arguments."""
    FAILED = 5
    """The run, by its number, that its own mistake has ended."""
    AWAITED = 6
    """The rank for whose turn or meeting its process waits, counted from 1, or 0."""
    WORD = 7
    """Which word of that rank it looks at: the two behind this one native waits count in."""
    NUMBER = SLEEPS + 1
    """What that word has to reach."""
    SENT = NUMBER + 1
    """How many messages that change something its process has sent, where memory is not shared."""
    HEARD = NUMBER + 2
    """And how many have come to it."""
    JOINED = NUMBER + 3
    """How many actions of the plan come before the collective that it has joined last, and that one."""
    BEAT = NUMBER + 4
    """How often its process has looked on while its rank was at work."""


class Segment:
    """A piece of shared memory, mapped here."""

    def __init__(self, descriptor: int, size: int) -> None:
        self.descriptor = descriptor
        self.size = size
        memory = held_pages(map_pages(None, size, mmap.MAP_SHARED, descriptor, 0), size)
        self.memory: Array = memory
        self.words: Array = memory[:PAGE].view(np.int64)

    @staticmethod
    def made(size: int) -> Segment:
        """Return a new segment, all of it zero."""
        descriptor = os.memfd_create("tilewright", os.MFD_CLOEXEC)
        os.ftruncate(descriptor, PAGE + size)
        return Segment(descriptor, PAGE + size)

    @staticmethod
    def opened(process: int, descriptor: int, size: int) -> Segment:
        """Return the segment of another process."""
        return Segment(os.open(f"/proc/{process}/fd/{descriptor}", os.O_RDWR | os.O_CLOEXEC), size)

    def part(self, offset: int, size: int) -> Array:
        """Return memory behind the page of control."""
        return self.memory[PAGE + offset : PAGE + offset + size]

    @property
    def abort(self) -> int:
        """The address of the word that ends waits."""
        return self.memory.ctypes.data + 8 * Control.ABORT

    def begin(self) -> None:
        """Make ready for a run: it has had no turn, and waits for nothing."""
        for word in (Control.TURNS, Control.AWAITED, Control.JOINED, NAPS, SLEEPS):
            self.words[word] = 0

    def say(self, run: int, text: str) -> None:
        """Leave why this process has given up a run."""
        data = text.encode(errors="replace")[: PAGE - TEXT - 1]
        self.memory[TEXT : TEXT + len(data) + 1] = np.frombuffer(data + b"\0", np.uint8)
        self.words[Control.ANSWER] = run

    def said(self) -> str:
        """Return why its process has given up."""
        return self.memory[TEXT:PAGE].tobytes().partition(b"\0")[0].decode(errors="replace")

    def close(self) -> None:
        """Give up the descriptor; what is mapped goes with the last view of it."""
        os.close(self.descriptor)
