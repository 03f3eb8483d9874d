"""Merged parts: sums that several turns add to memory are one sum, where there are tiles enough without them."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright.language as pl
from tilewright.core.program import Program
from tilewright.core.region import whole
from tilewright.frontend.programs import as_program
from tilewright.interpret.machine import run
from tilewright.passes.grid_forms import in_one_form
from tilewright.passes.manager import PassManager
from tilewright.passes.merged_parts import merged_parts

COUNTED, STEPPED = "for s in pl.parallel(3):", "for s in pl.parallel(0, 96, 32):"
ADD = "pl.store(acc, [i, j], c, atomic=pl.AtomicType.Add)"


def lowered(over: str = COUNTED, part: str = "s * 32, s * 32 + 32", end: str = ADD, rows: int = 64) -> Program:
    """Return a product of so many rows whose inner dimension is 96, in parts."""
    text = f"""
import tilewright.language as pl
@pl.program
class P:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, a: pl.Tensor[[{rows}, 96], pl.FP32], b: pl.Tensor[[96, 40], pl.FP32],
             c: pl.InOut[pl.Tensor[[{rows}, 40], pl.FP32]]):
        for i in pl.parallel(0, {rows}, 16):
            {over}
                for j in pl.parallel(0, 40, 16):
                    with pl.at(level=pl.Level.CORE_GROUP):
                        acc = pl.tile.full([16, 16], dtype=pl.FP32, value=0.0)
                        for k in pl.range({part}, 8):
                            acc = pl.matmul_acc(acc, pl.load(a, [i, k], [16, 8]), pl.load(b, [k, j], [8, 16]))
                        {end}
"""
    return in_one_form(PassManager.get_strategy().run_passes(as_program(pl.parse(text))))


@pytest.mark.parametrize(("over", "part"), [(COUNTED, "s * 32, s * 32 + 32"), (STEPPED, "s, s + 32")])
def test_parts_that_are_added_to_memory_are_one_sum(over: str, part: str) -> None:
    program = lowered(over, part)
    merged = merged_parts(program)
    assert "pl.range(0, 96, 8" in str(merged) and over not in str(merged)
    a, b = (np.random.default_rng(0).integers(-4, 5, shape).astype(np.float32) for shape in ((64, 96), (96, 40)))
    for each in (program, merged):
        c = np.ones((64, 40), np.float32)
        run(each, "main", [*map(whole, (a, b, c))])
        np.testing.assert_array_equal(c, a @ b + 1)


@pytest.mark.parametrize(
    "changes",
    [
        {"rows": 16},
        {"end": "pl.store(acc, [i, j], c)"},
        {"end": "pl.store(pl.relu(acc), [i, j], c, atomic=pl.AtomicType.Add)"},
        {"part": "s * 32, s * 32 + 24"},
        {"part": "s * 36, s * 36 + 36"},
        {"part": "0, s * 32 + 32"},
        {"over": "for s in pl.parallel(0, 3, 2):"},
    ],
    ids=str,
)
def test_parts_that_are_something_else_stay_apart(changes: dict[str, str | int]) -> None:
    program = lowered(**changes)  # pyright: ignore[reportArgumentType]
    assert merged_parts(program) is program
