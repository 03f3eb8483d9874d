"""Prints: what kernels wrote for people, as words that the host reads when they are done, and the text of them.

    buffer := how many words were asked for, then records, as many as there is room for
    record := which print it is of, from one on; the turn of the grid that it ran in; extents; elements

Elements are words: integers of 64 bits, or the bits of doubles. Blocks run in any order, and their records are shown in
that of their turns, which is the one that the processor has on one thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

from tilewright.arrays import np
from tilewright.ops.printing import shown
from tilewright.records import record

HEAD = 2
"""Words of a record before its extents."""

LOST = "... more was printed than there is room for\n"


@record
class Print:
    """A print of a kernel: its texts, what an element of its value is, and of which extents the part is that is shown.

    `kind` is `f`, `i`, `u` or `b`, as NumPy has it, and empty where a text is all.
    """

    text: str
    end: str
    kind: str = ""
    box: Sequence[int] = ()
    form: str = ""
    """The form of a number, where it has one."""

    @property
    def size(self) -> int:
        """How many words a record of it has."""
        return HEAD + (len(self.box) + prod(self.box) if self.kind else 0)

    def said(self, words: Sequence[int]) -> str:
        """Return what it prints, given the words behind the head of a record."""
        if not self.kind:
            return self.text + self.end
        rank = len(self.box)
        extents = words[:rank]
        held: Any = np.array(words[rank:], np.int64)
        elements: Any = held != 0 if self.kind == "b" else held.view(f"{self.kind}8")
        part = elements.reshape(self.box)[tuple(slice(extent) for extent in extents)]
        return self.text + shown(part if rank else part[()], extents, self.form) + self.end


def said(words: Sequence[int], prints: Sequence[Print]) -> str:
    """Return what the records of a buffer print, in the order of the program."""
    asked, *rest = words
    found = sorted(_records(rest, prints), key=lambda each: each[0])
    return "".join(text for _, text in found) + LOST * (asked > len(rest))


def _records(words: Sequence[int], prints: Sequence[Print]) -> Iterator[tuple[int, str]]:
    """Yield the turn and the text of each record; those of a turn come in its own order."""
    at = 0
    while at < len(words) and words[at]:
        own = prints[words[at] - 1]
        yield words[at + 1], own.said(words[at + HEAD : at + own.size])
        at += own.size
