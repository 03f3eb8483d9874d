"""Ragged turns: what hangs over in the last turn of a loop does not slow the others down, or change what they give."""

from __future__ import annotations

import numpy as np
import pytest
from unit.backends.cpu.running import native
from unit.passes.texts import gives, kernel, leaves

from tilewright.passes import ragged_turns

TENSORS = "x: pl.Tensor[[8, 100], pl.FP32], y: pl.InOut[pl.Tensor[[8, 32], pl.FP32]]"
FULL = "first = pl.tile.full([8, 32], dtype=pl.FP32, value=0.0)"
STORE = "pl.store({}, [0, 0], y)"


def loop(turns: str, carried: str, given: str, body: str = "{0} + {1}", load: str = "[0, c], [8, 32], pad=0.0") -> str:
    """Return a loop that carries one tile on, under some name, from what is given."""
    return f"""
for c, ({carried},) in pl.range({turns}, init_values=({given},)):
    t_{carried} = pl.load(x, {load})
    {carried}_next = {body.format(carried, f"t_{carried}")}
    {carried}_last = pl.yield_({carried}_next)
"""


def test_the_last_turn_is_made_by_itself_and_the_others_load_what_is_there() -> None:
    before = kernel(FULL + loop("0, 100, 32", "acc", "first") + STORE.format("acc_last"), TENSORS)
    whole = loop("0, 96, 32", "one", "first", load="[0, c], [8, 32]")
    rest = loop("96, 100, 32", "acc", "one_last")
    gives(ragged_turns.run, before, kernel(FULL + whole + rest + STORE.format("acc_last"), TENSORS))


def test_a_load_that_finds_everything_fills_nothing_up() -> None:
    before, after = (
        loop("0, 96, 32", "acc", "first", load=load) for load in ("[0, c], [8, 32], pad=0.0", "[0, c], [8, 32]")
    )
    texts = [kernel(FULL + each + STORE.format("acc_last"), TENSORS) for each in (before, after)]
    gives(ragged_turns.run, *texts)


@pytest.mark.parametrize(
    ("body", "load"),
    [
        ("{0} * {0} + {1}", "[0, c], [8, 32], pad=0.0"),
        ("{0} + pl.col_sum({1})", "[0, c], [8, 32], pad=0.0"),
        ("{0} + {1}", "[1, c], [8, 32], pad=0.0"),
        ("{0} + {1}", "[0, c + 5], [8, 32], pad=0.0"),
    ],
)
def test_other_loops_stay_as_they_are(body: str, load: str) -> None:
    text = FULL + loop("0, 100, 32", "acc", "first", body, load) + STORE.format("acc_last")
    leaves(ragged_turns.run, kernel(text, TENSORS))


@pytest.mark.parametrize("op", ["+", "* 0.5 -"])
@pytest.mark.parametrize("columns", [64, 70, 100, 127, 3])
def test_ragged_chunks_are_summed_as_the_interpreter_does(columns: int, op: str) -> None:
    text = f"""
@pl.program
class P:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[16, {columns}], pl.FP32], out: pl.Out[pl.Tensor[[16, 1], pl.FP32]]):
        for r in pl.parallel(0, 16, 8):
            with pl.at(level=pl.Level.CORE_GROUP):
                acc = pl.tile.full([8, 32], dtype=pl.FP32, value=0.0)
                for c in pl.range(0, {columns}, 32):
                    acc = acc {op} pl.load(x, [r, c], [8, 32], pad=0.0)
                pl.store(pl.row_sum(acc), [r, 0], out)
"""
    x = np.random.default_rng(columns).uniform(-1, 1, (16, columns)).astype(np.float32)
    native(text).check(x, np.zeros((16, 1), np.float32))
