"""Rows that are told: which loops make a window's rows in order and to their end, and which do not."""

from __future__ import annotations

import pytest

import tilewright.language as pl
from tilewright.core.program import Function, Program
from tilewright.frontend.reductions import telling
from tilewright.passes.told_rows import ToldRows, told_rows

HEAD = """
import tilewright.language.distributed as pld

@pl.program
class Making:
    @pl.function(type=pl.FunctionType.Orchestration)
    def make(self, x: pl.Tensor[[12, 8], pl.FP32], w: pl.InOut[pld.DistributedTensor[[12, 8], pl.FP32]], n: pl.Scalar[pl.INDEX]):
        with pl.at(level=pl.Level.CORE_GROUP):
"""  # noqa: E501
IN_ORDER = """
for step in pl.range(6):
    pl.store(pl.load(x, [step * 2, 0], [2, 8]), [step * 2, 0], w)
"""


def told(body: str) -> ToldRows | None:
    program = pl.parse(HEAD + "".join(f"            {line}\n" for line in body.strip().splitlines()))
    assert isinstance(program, Program)
    return told_rows(program, "make", 1, telling())


def test_a_step_that_makes_the_next_rows_is_told_to_every_rank() -> None:
    made = told(IN_ORDER)
    assert made is not None and (made.rows, made.steps) == (2, 6)
    function: Function = made.function
    assert [param.name_hint for param in function.params] == ["x", "w", "n", "told"]
    text = str(function)
    loop = text[text.index("for step") :]
    assert loop.index("pl.tile.store") < loop.index("for peer") < loop.index("pl.distributed.notify(told, peer")


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(IN_ORDER.replace("[step * 2, 0], w", "[10 - step * 2, 0], w"), id="backwards"),
        pytest.param(IN_ORDER.replace("[step * 2, 0], w", "[step, 0], w"), id="rows that overlap"),
        pytest.param(IN_ORDER.replace("range(6)", "range(n)"), id="so many steps as somebody says"),
        pytest.param(IN_ORDER.replace("range(6)", "range(1, 6)"), id="steps that do not begin with the first"),
        pytest.param(IN_ORDER + "pl.store(pl.load(x, [0, 0], [1, 8]), [0, 0], w)", id="written once more"),
        pytest.param(IN_ORDER.replace("], w)", "], pl.reshape(w, [12, 8]))"), id="a view"),
        pytest.param(IN_ORDER + "    if n > step:\n        break", id="a loop that may end early"),
        pytest.param("if n > 0:" + IN_ORDER.replace("\n", "\n    "), id="perhaps not at all"),
    ],
)
def test_rows_that_are_made_otherwise_are_not_told(body: str) -> None:
    assert told(body) is None
