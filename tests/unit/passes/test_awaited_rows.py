"""Rows that are awaited: which loops may begin with any step and wait for its rows, and which may not."""

from __future__ import annotations

import pytest

import tilewright.language as pl
from tilewright.core.program import Program
from tilewright.frontend.reductions import awaiting
from tilewright.passes.awaited_rows import AwaitedRows, awaited_rows

HEAD = """
import tilewright.language.distributed as pld

@pl.program
class Reading:
    @pl.function(type=pl.FunctionType.Orchestration)
    def read(self, w: pld.DistributedTensor[[12, 8], pl.FP32], y: pl.InOut[pl.Tensor[[12, 8], pl.FP32]], n: pl.Scalar[pl.INDEX]):
        with pl.at(level=pl.Level.CORE_GROUP):
"""  # noqa: E501
BY_ROWS = """
for step in pl.range(6):
    pl.store(pl.exp(pl.load(w, [step * 2, 0], [2, 8])), [step * 2, 0], y)
"""


def awaited(body: str) -> AwaitedRows | None:
    program = pl.parse(HEAD + "".join(f"            {line}\n" for line in body.strip().splitlines()))
    assert isinstance(program, Program)
    return awaited_rows(program, "read", 0, lambda steps: awaiting(steps // 2, 3))


def test_a_loop_begins_elsewhere_and_each_turn_waits_for_its_rows() -> None:
    made = awaited(BY_ROWS)
    assert made is not None and (made.rows, made.steps) == (2, 6)
    assert [param.name_hint for param in made.function.params] == ["w", "y", "n", "arrived", "first"]
    text = str(made.function)
    loop = text[text.index("for turn") :]
    assert "step: pl.Scalar[pl.INDEX, (0, 5)] = (turn + first) % 6" in loop
    assert loop.index("pl.distributed.wait(arrived, [step //") < loop.index("pl.tile.load(w, [step * 2, 0]")


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(BY_ROWS.replace("load(w, [step * 2", "load(w, [10 - step * 2"), id="rows backwards"),
        pytest.param(BY_ROWS.replace("range(6)", "range(n)"), id="so many steps as somebody says"),
        pytest.param(BY_ROWS + "pl.store(pl.load(w, [0, 0], [1, 8]), [0, 0], y)", id="read once more"),
        pytest.param(BY_ROWS.replace("[step * 2, 0], y", "[0, 0], y"), id="turns that write one place"),
        pytest.param(BY_ROWS.replace("[step * 2, 0], y", "[step, 0], y"), id="rows that overlap"),
        pytest.param(
            BY_ROWS.replace("pl.exp(", "pl.add(pl.load(y, [0, 0], [2, 8]), "), id="turns that read what others write"
        ),
        pytest.param(BY_ROWS.replace("y)", "y, atomic=pl.AtomicType.Add)"), id="turns that add to what is there"),
        pytest.param(
            "t = pl.full([2, 8], dtype=pl.FP32, value=0.0)\nfor step in pl.range(6):\n"
            "    t = pl.add(t, pl.load(w, [step * 2, 0], [2, 8]))\npl.store(t, [0, 0], y)",
            id="a sum over turns",
        ),
        pytest.param(BY_ROWS + "    if n > step:\n        break", id="a loop that may end early"),
    ],
)
def test_loops_whose_turns_keep_their_order_are_left_alone(body: str) -> None:
    assert awaited(body) is None
