"""Findings: what there is to know about how the turns of a call touch its arguments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

from tilewright.arrays import np
from tilewright.explore.page import Argument, Finding, Touch, Turn

READS, WRITES, ADDS = "reads", "writes", "adds to"
GAP = "gap"
"""The kind of finding about elements that nobody touches."""
NARROW = 16
"""Bytes: pieces of a row that are shorter waste most of what memory brings."""


def found_in(arguments: Sequence[Argument], turns: Sequence[Turn]) -> Iterator[Finding]:
    """Yield what is remarkable about each argument."""
    for number, argument in enumerate(arguments):
        touches = [[touch for touch in turn.touches if touch.argument == number] for turn in turns]
        read = _counts(argument, touches, (READS,))
        written = _counts(argument, touches, (WRITES, ADDS))
        yield from _gaps(argument, read, written)
        is_plain = _counts(argument, touches, (WRITES,)) > 0  # turns may add to one element as they like
        yield from _repeats(argument, read, np.where(is_plain, written, 0))
        yield from _strides(argument, [touch for turn in touches for touch in turn])


def _counts(argument: Argument, turns: Sequence[Sequence[Touch]], kinds: Sequence[str]) -> Any:
    """Return in how many turns each element is touched so."""
    total: Any = np.zeros(prod(argument.shape), np.int64)
    for touches in turns:
        once: Any = np.zeros(len(total), bool)
        for touch in touches:
            for start, stop in touch.runs if touch.access in kinds else ():
                once[start:stop] = True
        total += once
    return total


def _gaps(argument: Argument, read: Any, written: Any) -> Iterator[Finding]:
    is_output = argument.direction != "In"
    touched = written if is_output and written.any() else read + written
    missing = np.flatnonzero(touched == 0)
    if not len(missing):
        return
    what = "written" if is_output and written.any() else "touched"
    first = _index(argument, int(missing[0]))
    yield Finding(GAP, argument.name, f"{len(missing)} of {len(touched)} elements are never {what}, {first} first")


def _repeats(argument: Argument, read: Any, written: Any) -> Iterator[Finding]:
    if len(written) and written.max() > 1:
        often = np.flatnonzero(written > 1)
        first, most = _index(argument, int(often[0])), int(written.max())
        yield Finding(
            "overlap", argument.name, f"{len(often)} elements are written by several turns, up to {most}; {first} first"
        )
    if len(read) and read.max() > 1:
        factor = read.sum() / max(1, int((read > 0).sum()))
        often = f"elements are read by {factor:.1f} turns on average, up to {int(read.max())}"
        yield Finding("repeated", argument.name, f"{often}: larger tiles read them less often")


def _strides(argument: Argument, touches: Sequence[Touch]) -> Iterator[Finding]:
    for access in (READS, WRITES):
        steps = {step for touch in touches if touch.access == access for step in _step(touch)}
        if steps:
            text = f"a turn {access} single elements, {', '.join(map(str, sorted(steps)[:3]))} apart in memory"
            yield Finding("strided", argument.name, text)


def _step(touch: Touch) -> Iterator[int]:
    """Yield how far apart the elements are that are touched one by one."""
    if len(touch.runs) > 2 and all(stop - start == 1 for start, stop in touch.runs):
        starts = [start for start, _ in touch.runs]
        gaps = {after - before for before, after in zip(starts, starts[1:], strict=False)}
        if len(gaps) == 1:
            yield gaps.pop()


def _index(argument: Argument, flat: int) -> str:
    where = ", ".join(str(int(index)) for index in np.unravel_index(flat, argument.shape)) if argument.shape else ""
    return f"{argument.name}[{where}]"
