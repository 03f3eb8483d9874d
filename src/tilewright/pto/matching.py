"""Matching: which lines of two texts stand for each other, in time that grows with the lines times the differences.

E. W. Myers, "An O(ND) Difference Algorithm and Its Variations" (1986): of the paths through both texts that leave out
so many lines, the one that gets furthest is kept for each distance between its two places, until one reaches the ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher

_MOST = 1000
"""Differences that are counted; texts with more are matched by the lines that few others are equal to."""


def matched(a: Sequence[str], b: Sequence[str], most: int = _MOST) -> list[tuple[int, int]]:
    """Return the places of lines that are equal, in order: as many as can be where no more than `most` are left out."""
    fronts = _fronts(a, b, most)
    if fronts is None:
        blocks = SequenceMatcher(None, a, b).get_matching_blocks()
        return [(first + i, start + i) for first, start, size in blocks for i in range(size)]
    pairs: list[tuple[int, int]] = []
    x, y = len(a), len(b)
    for left_out in reversed(range(len(fronts))):
        apart = x - y
        first, is_theirs = _step(fronts[left_out], apart, left_out)
        pairs += [(i, i - apart) for i in range(x - 1, first - 1, -1)]
        x, y = (first, first - apart - 1) if is_theirs else (first - 1, first - apart)
    return pairs[::-1]


def _fronts(a: Sequence[str], b: Sequence[str], most: int) -> list[dict[int, int]] | None:
    """Return how far into `a` paths get before each line they leave out, by how far their two places are apart."""
    fronts = [{1: 0}]
    for left_out in range(most + 1):
        reached: dict[int, int] = {}
        for apart in range(-left_out, left_out + 1, 2):
            x, _ = _step(fronts[-1], apart, left_out)
            while x < len(a) and 0 <= x - apart < len(b) and a[x] == b[x - apart]:
                x += 1
            reached[apart] = x
            if x >= len(a) and x - apart >= len(b):
                return fronts
        fronts.append(reached)
    return None


def _step(front: dict[int, int], apart: int, left_out: int) -> tuple[int, bool]:
    """Return where a path goes on after it leaves one more line out, and whether that is a line of `b`."""
    is_theirs = apart == -left_out or (apart != left_out and front[apart - 1] < front[apart + 1])
    return (front[apart + 1], True) if is_theirs else (front[apart - 1] + 1, False)
