"""Picks in native code: sums of rows of which one element counts, the same as the interpreter sums them."""

from __future__ import annotations

import numpy as np
import pytest
from unit.backends.cpu.running import native, program_of

from tilewright.core.expr import Call
from tilewright.core.stmt import AssignStmt
from tilewright.core.visitor import statements
from tilewright.passes.manager import PassManager
from tilewright.passes.picks import pick_of

KERNEL = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[21, {n}], pl.FP32], wanted: pl.Tensor[[21, 1], pl.INT32],
             out: pl.Out[pl.Tensor[[21, 1], pl.FP32]]):
        for row in pl.parallel(0, 21, 8):
            with pl.at(level=pl.Level.CORE_GROUP):
                t, at = pl.load(x, [row, 0], [8, {n}]), pl.load(wanted, [row, 0], [8, 1])
                numbers = pl.arange({first}, {first} + {n})
                {body}
                pl.store(total, [row, 0], out)
"""
BODIES = {
    "loaded": "total = pl.sum(pl.where(numbers == at, t, 0.0), axis=-1, keepdims=True)",
    "computed": "total = pl.row_sum(pl.where(at == numbers, pl.exp(t - pl.row_max(t)) * 2.0, 0.0))",
    "beside others": "total = pl.row_sum(pl.where(numbers == at, t, 0.0)) + pl.row_sum(t)",
    "read twice": "c = pl.where(numbers == at, t, 0.0); total = pl.row_sum(c) + pl.row_max(c)",
    "of all": "total = pl.row_sum(pl.where(numbers <= at, t, 0.0))",
    "and one more": "total = pl.row_sum(pl.where(numbers == at, t, 1.0))",
}


@pytest.mark.parametrize("first", [0, -3, 5])
@pytest.mark.parametrize("n", [7, 40])
@pytest.mark.parametrize("body", BODIES)
def test_an_element_is_picked_or_none(body: str, n: int, first: int) -> None:
    random = np.random.default_rng(n)
    x = random.uniform(-1, 1, (21, n)).astype(np.float32)
    wanted = random.integers(first - 2, first + n + 2, (21, 1)).astype(np.int32)
    wanted[:3, 0] = (-(2**31), 2**31 - 1, first)
    native(KERNEL.format(n=n, first=first, body=BODIES[body])).check(x, wanted, np.zeros((21, 1), np.float32))


def test_what_is_not_picked_does_not_matter_and_zeros_are_positive() -> None:
    x = np.full((21, 40), np.nan, np.float32)
    x[:, 4] = -0.0
    wanted, out = np.full((21, 1), 4, np.int32), np.ones((21, 1), np.float32)
    program = native(KERNEL.format(n=40, first=0, body=BODIES["loaded"]))
    program.check(x, wanted, out)
    (*_, total), _ = program.run((x, wanted, out))
    assert not np.signbit(total).any() and (total == 0).all()


@pytest.mark.parametrize("body", BODIES)
def test_only_sums_of_zeros_and_one_element_pick(body: str) -> None:
    lowered = PassManager.get_strategy().run_passes(program_of(KERNEL.format(n=40, first=0, body=BODIES[body])))
    every = [stmt for function in lowered.function_list for stmt in statements(function.body)]
    made = {s.var: s.value for s in every if isinstance(s, AssignStmt) and isinstance(s.value, Call)}
    picks = [call for call in made.values() if call.op.name == "tile.row_sum" and pick_of(call, made) is not None]
    assert len(picks) == (body not in ("of all", "and one more"))
