"""Python's own loops and lists in kernels: what is known is written out while the kernel is read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from unit.frontend.texts import in_core, jitted, ramp

from tilewright.core.stmt import ForStmt
from tilewright.core.visitor import statements
from tilewright.errors import StaticAssertionError, UnsupportedFeatureError

WEIGHTS = (0.5, 2.0, 3.0)
X = ramp(8, 8)

LISTS = """
tiles = []
for i in range(4):
    tiles.append(pl.load(x, [i * 2, 0], [2, 8]))
alias, holder = tiles, (tiles, 1)
tiles.append(tiles[0])
scaled = [pl.load(x, [i * 2, 0], [2, 8]) * w for i, w in enumerate(WEIGHTS) if w > 0.6]
acc = tiles[0] * 0.0 + (len(alias) + len(holder[0]))
for w, t in zip(WEIGHTS, tiles):
    if w == 3.0:
        break
    acc = acc + t * w
for _ in range(turns):
    acc = acc + 1.0
for i in range(len(WEIGHTS)):
    acc += WEIGHTS[i]
for key, shift in SHIFTS.items():
    if key == "a":
        continue
    acc += shift
for i in pl.unroll(3):
    for j in range(3):
        if i == j:
            acc += tiles[i]
tiles[1] = acc
last = tiles.pop()
acc = sum(s for s in scaled) + tiles[1] + last + len(tiles)
pl.store(acc + sum(range(x.shape[0])), [0, 0], out)
"""


def lists(turns: int) -> Any:
    return jitted(in_core(*LISTS.splitlines()), WEIGHTS=WEIGHTS, SHIFTS={"a": 1.0, "b": 2.0}, turns=turns)


def test_lists_of_tiles_are_built_and_indexed() -> None:
    out, tiles = np.zeros((2, 8), np.float32), [X[i * 2 : i * 2 + 2] for i in range(4)]
    lists(turns=3)(X, out)
    acc = tiles[0] * 0.5 + tiles[1] * 2.0 + 10 + 3 + sum(WEIGHTS) + 2.0 + tiles[0] + tiles[1] + tiles[2]
    np.testing.assert_allclose(out, tiles[1] * 2.0 + tiles[2] * 3.0 + acc + tiles[0] + 4 + 28)


def test_a_range_that_only_counts_is_a_loop_of_the_program() -> None:
    program = lists(turns=7).specialize(X, X[:2]).program
    found = [s for function in program.functions.values() for s in statements(function.body)]
    assert [str(loop.stop) for loop in found if isinstance(loop, ForStmt)] == ["7", "3", "3", "3"]


def test_a_branch_of_the_program_builds_no_list() -> None:
    kernel = jitted("parts = [1.0]\nif pl.read(x, [0, 0]) > 0.0:\n    parts.append(2.0)")
    with pytest.raises(UnsupportedFeatureError, match="built while it is read"):
        kernel(X)


def test_messages_hold_numbers_in_their_formats() -> None:
    kernel = jitted("n, part = x.shape[0], 0.125\npl.static_assert(n == 3, f\"{'rows'!r}: {n:>3} of {part:.2f}\")")
    with pytest.raises(StaticAssertionError, match="'rows':   8 of 0.12"):
        kernel(X)
