"""Unrolling: `pl.unroll` loops and short sums of tiles become their turns."""

from __future__ import annotations

import pytest
from unit.passes.texts import gives, kernel, leaves

from tilewright.passes import ssa, unroll


def test_an_unrolled_loop_becomes_one_copy_per_turn() -> None:
    before = kernel("for i in pl.unroll(1, 6, 2):\n    pl.write(y, [i, 0], a)")
    gives(unroll.run, before, kernel("pl.write(y, [1, 0], a)\npl.write(y, [3, 0], a)\npl.write(y, [5, 0], a)"))


def test_carried_values_pass_from_turn_to_turn() -> None:
    before = kernel("""
    s = n + 1
    for i in pl.unroll(2):
        s = s * 2
    pl.write(y, [s, 0], a)
    """)
    after = kernel("""
    s = n + 1
    t = s * 2
    u = t * 2
    pl.write(y, [u, 0], a)
    """)
    gives(unroll.run, ssa.run(before), after)


def test_a_loop_without_turns_leaves_nothing() -> None:
    gives(unroll.run, kernel("for i in pl.unroll(0):\n    pl.write(y, [i, 0], a)"), kernel("pass"))


def test_nested_unrolled_loops_are_both_written_out() -> None:
    before = kernel("for i in pl.unroll(2):\n    for j in pl.unroll(2):\n        pl.write(y, [i, j], a)")
    after = "pl.write(y, [0, 0], a)\npl.write(y, [0, 1], a)\npl.write(y, [1, 0], a)\npl.write(y, [1, 1], a)"
    gives(unroll.run, before, kernel(after))


def test_other_loops_stay() -> None:
    leaves(unroll.run, kernel("for i in pl.range(2):\n    pl.write(y, [i, 0], a)"))


def test_a_branch_that_a_turn_decides_is_taken_so_that_its_guard_counts() -> None:
    before = kernel(
        "for i in pl.unroll(4):\n    if i < 2:\n        pl.store(pl.load(x, [i * 8, 0], [8, 8]), [i * 8, 0], y)"
    )
    turn = "pl.store(pl.load(x, [{0}, 0], [8, 8]), [{0}, 0], y)\n"
    gives(unroll.run, before, kernel(turn.format(0) + turn.format(8)))


def test_a_load_that_a_turn_shows_to_be_cut_says_so() -> None:
    before = kernel("for i in pl.unroll(2):\n    pl.store(pl.load(x, [i * 9, 0], [9, 8]), [i * 7, 0], y)")
    after = kernel("""
    pl.store(pl.load(x, [0, 0], [9, 8]), [0, 0], y)
    pl.store(pl.load(x, [9, 0], [9, 8], clamp=True), [7, 0], y)
    """)
    gives(unroll.run, before, after)


STENCIL = """
t = pl.load(x, [0, 0], [8, 8])
s = pl.tile.full([4, 8], dtype=pl.FP32, value=0.0)
for i in pl.range({turns}):
    s = s + t[i : i + 4] * pl.read(y, [i, 0])
pl.store(s, [0, 0], y)
"""


def test_a_short_sum_of_windows_is_written_out() -> None:
    turn = "s = s + t[{0} : {0} + 4] * pl.read(y, [{0}, 0])\n"
    head, _, tail = STENCIL.partition("for i in pl.range({turns}):\n")
    after = kernel(head + turn.format(0) + turn.format(1) + turn.format(2) + tail.splitlines()[-1])
    gives(unroll.run, ssa.run(kernel(STENCIL.format(turns=3))), ssa.run(after))


@pytest.mark.parametrize("turns", ["n", "40", "6"], ids=["unknown", "many", "one that does not fit"])
def test_other_sums_of_windows_stay_loops(turns: str) -> None:
    leaves(unroll.run, ssa.run(kernel(STENCIL.format(turns=turns))))


LOADS = """
s = pl.tile.full([4, 8], dtype=pl.FP32, value=0.0)
for i in pl.range(0, {stop}, {step}):
    s = s + pl.load(x, [{start}, 0], [4, 8])
pl.store(s, [0, 0], y)
"""


@pytest.mark.parametrize("start", ["i", "i + 2", "2 + i"])
def test_a_short_sum_of_loads_that_overlap_is_written_out(start: str) -> None:
    head, _, tail = LOADS.partition("for i in pl.range(0, {stop}, {step}):\n")
    turns = [f"s = s + pl.load(x, [{start.replace('i', str(i))}, 0], [4, 8])\n" for i in range(3)]
    after = kernel(head + "".join(turns) + tail.splitlines()[-1])
    gives(unroll.run, ssa.run(kernel(LOADS.format(stop=3, step=1, start=start))), ssa.run(after))


@pytest.mark.parametrize(("start", "step"), [("i", 4), ("n", 1), ("n * i", 1)])
def test_sums_of_other_loads_stay_loops(start: str, step: int) -> None:
    leaves(unroll.run, ssa.run(kernel(LOADS.format(stop=2 * step, step=step, start=start))))


BRANCHES = """
s = pl.tile.full([4, 8], dtype=pl.FP32, value=0.0)
for i in pl.range(2):
    for j in pl.range(2):
        if i != {0} or j != 1:
            s = s + pl.load(x, [i, 0], [4, 8]) * pl.read(y, [i, j])
pl.store(s, [0, 0], y)
"""


def test_a_branch_on_the_turn_is_what_each_turn_does() -> None:
    turns = [f"s = s + pl.load(x, [{i}, 0], [4, 8]) * pl.read(y, [{i}, {j}])\n" for i, j in ((0, 0), (1, 0), (1, 1))]
    head, *_ = BRANCHES.partition("for i in pl.range(2):\n")
    after = kernel(head + "".join(turns) + BRANCHES.splitlines()[-1])
    gives(unroll.run, ssa.run(kernel(BRANCHES.format(0))), ssa.run(after))


def test_a_loop_with_another_branch_stays() -> None:
    leaves(unroll.run, ssa.run(kernel(BRANCHES.format("n"))))
