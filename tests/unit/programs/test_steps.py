"""Steps: which windows are zeroed when a run begins."""

from __future__ import annotations

import pytest

from tilewright.dtypes import FP32, INT32
from tilewright.interpret.hosts import Collective, Plan, Window, WindowBuffer
from tilewright.programs.distributed.steps import steps_of
from tilewright.programs.distributed.windows import own_parts

RANKS, SIZE = 2, 8


def cleared(name: str, rows: int) -> set[str]:
    """Return which windows of a collective are zeroed first, its target being a window of so many rows."""
    source = "local_data" if name == "allgather" else "input"
    shapes = {source: (1 if name == "allgather" else RANKS, SIZE), "target": (RANKS, SIZE), "signal": (RANKS, 1)}
    sizes = {key: 4 * shape[0] * shape[1] for key, shape in shapes.items()} | {"target": 4 * rows * SIZE}
    buffers = {key: WindowBuffer(size, {*range(RANKS)}) for key, size in sizes.items()}
    windows = {key: Window(buffers[key], shape, INT32 if key == "signal" else FP32) for key, shape in shapes.items()}
    plan = Plan(RANKS, [*buffers.values()], [Collective(name, windows, {})], [[] for _ in range(RANKS)])
    parts = {buffer: own_parts(buffer, {}) for buffer in buffers.values()}
    made = steps_of(plan, pytest.fail, pytest.fail, [], parts, [], 1)
    return {key for key, buffer in buffers.items() if parts[buffer] in made.cleared}


@pytest.mark.parametrize(("name", "source"), [("allgather", "local_data"), ("all_to_all", "input")])
def test_what_a_collective_fills_first_is_not_zeroed_before(name: str, source: str) -> None:
    assert cleared(name, RANKS) == {source, "signal"}
    assert cleared(name, RANKS + 1) == {source, "target", "signal"}


def test_what_a_collective_leaves_in_part_is_zeroed_before() -> None:
    assert cleared("reduce_scatter", RANKS) == {"input", "target", "signal"}
