"""Work: what a compilation costs grows with the program, not with how deeply it nests."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import pytest
from unit.passes.texts import kernel

import tilewright
from tilewright import ir
from tilewright.core.program import Program

PACKAGE = str(tilewright.__path__[0])
LINES = {
    "a store": "y = pl.store(pl.load(x, [0, 0], [1, 8]), [0, 0], y)",
    "a scalar": "s = s + n",
    "a tile": "t = t + 1.0",
}


def work(program: Program) -> int:
    """Return how many calls a compilation makes, as a measure that no other process disturbs."""
    count = 0

    def counted(frame: FrameType, event: str, _: Any) -> None:
        nonlocal count
        count += event == "call" and frame.f_code.co_filename.startswith(PACKAGE)

    ir.compile(program)  # what is done once is done before
    sys.setprofile(counted)
    try:
        ir.compile(program)
    finally:
        sys.setprofile(None)
    return count


def nested(depth: int, loop: str, line: str) -> Program:
    """Return a kernel with one line inside `depth` loops."""
    inner = [f"{'    ' * k}for i{k} in {loop}:" for k in range(depth)]
    body = ["s = n + 1", "t = pl.load(x, [0, 0], [1, 8])", *inner, f"{'    ' * depth}{line}"]
    end = ["pl.write(y, [s, 0], a)", "y = pl.store(t, [0, 0], y)"]
    return kernel("\n" + "\n".join(f"    {each}" for each in (*body, *end)) + "\n")


@pytest.mark.parametrize("loop", ["pl.range(1)", "pl.range(n)", "pl.parallel(1)"])
@pytest.mark.parametrize("line", LINES)
def test_a_loop_more_costs_no_more_than_the_loops_around_it(loop: str, line: str) -> None:
    few, many = (work(nested(depth, loop, LINES[line])) for depth in (4, 12))
    assert many < 9 * few  # the square of three times as many; walks that double would be 256 times as many
