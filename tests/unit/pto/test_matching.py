"""Matching of lines: pairs are equal, in order, and as many as there can be."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest

from tilewright.pto.matching import matched


def most_pairs(a: str, b: str) -> int:
    """Return how many lines two texts have in common, in order."""
    row = [0] * (len(b) + 1)
    for x in a:
        before, row = row, [0]
        for j, y in enumerate(b):
            row.append(before[j] + 1 if x == y else max(before[j + 1], row[j]))
    return row[-1]


@pytest.mark.parametrize("most", [0, 2, 100])
@pytest.mark.parametrize("letters", ["a", "ab", "abcd"])
def test_pairs_are_equal_and_in_order_and_as_many_as_can_be(letters: str, most: int) -> None:
    rng = Random(7)
    for _ in range(300):
        a, b = ("".join(rng.choices(letters, k=rng.randrange(12))) for _ in range(2))
        pairs = matched(a, b, most)
        assert all(a[i] == b[j] for i, j in pairs)
        assert all(i < k and j < n for (i, j), (k, n) in pairwise(pairs))
        common = most_pairs(a, b)
        if len(a) + len(b) - 2 * common <= most:
            assert len(pairs) == common, (a, b)
