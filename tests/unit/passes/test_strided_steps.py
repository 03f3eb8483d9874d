"""Strided steps: sums of products over windows of memory take longer steps, unless the windows say otherwise."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright.language as pl
from tilewright.core.program import Program
from tilewright.core.region import whole
from tilewright.frontend.programs import as_program
from tilewright.interpret.machine import run
from tilewright.passes.manager import PassManager
from tilewright.passes.product_grids import Wanted
from tilewright.passes.widen import widened

WANTED = Wanted(depth=64)
LEFT = "x = pl.tensor.as_strided(a, [16, 16], [128, 1], (i * 2048 + k) * 4, dtype=pl.FP32)"
RIGHT = "y = pl.tensor.as_strided(b, [16, 32], [32, 1], k * 128, dtype=pl.FP32)"
SUM = "acc = pl.matmul_acc(acc, pl.load(x, [0, 0], [16, 16]), pl.load(y, [0, 0], [16, 32]), init_cond=k == 0)"


def lowered(*stmts: str, start: str = "0", stop: str = "128") -> Program:
    """Return a product of 48 x 128 and 128 x 32 elements that lie in flat buffers, a band of rows a turn."""
    body = "\n                    ".join(stmts)
    text = f"""
import tilewright.language as pl
@pl.program
class P:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, n: pl.Scalar[pl.INDEX], a: pl.Tensor[[6144], pl.FP32], b: pl.Tensor[[4096], pl.FP32],
             c: pl.InOut[pl.Tensor[[1536], pl.FP32]]):
        for i in pl.parallel(n):
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="band"):
                acc = pl.move(pl.tile.full([16, 32], dtype=pl.FP32, value=0.0), target_memory=pl.Mem.Acc)
                for k in pl.range({start}, {stop}, 16):
                    {body}
                z = pl.tensor.as_strided(c, [16, 32], [32, 1], i * 2048, dtype=pl.FP32)
                pl.store(acc, [0, 0], z)
"""
    return PassManager.get_strategy().run_passes(as_program(pl.parse(text)))


def notes(*stmts: str, start: str = "0", stop: str = "128") -> str:
    return str(widened(lowered(*stmts, start=start, stop=stop), WANTED)).strip()


def test_a_sum_over_windows_takes_longer_steps_and_gives_the_same() -> None:
    program = lowered(LEFT, RIGHT, SUM)
    longer = widened(program, WANTED)
    assert str(longer).strip().endswith("k by 64 instead of 16")
    rng, (m, k, n) = np.random.default_rng(0), (48, 128, 32)
    a, b = rng.normal(size=(m, k)).astype(np.float32), rng.normal(size=(k, n)).astype(np.float32)
    c = np.zeros(m * n, np.float32)
    run(longer.program, "main", [3, whole(a.ravel()), whole(b.ravel()), whole(c)])
    np.testing.assert_allclose(c, (a @ b).ravel(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("depth", "step"), [(48, 48), (96, 96), (112, 112), (32, 32), (80, 64)])
def test_turns_that_are_left_over_are_one_longer_turn(depth: int, step: int) -> None:
    program = lowered(LEFT, RIGHT, SUM)
    longer = widened(program, Wanted(depth=depth))
    assert str(longer).strip().endswith(f"k by {step} instead of 16")
    rng, (m, k, n) = np.random.default_rng(0), (48, 128, 32)
    a, b = rng.normal(size=(m, k)).astype(np.float32), rng.normal(size=(k, n)).astype(np.float32)
    c = np.zeros(m * n, np.float32)
    run(longer.program, "main", [3, whole(a.ravel()), whole(b.ravel()), whole(c)])
    np.testing.assert_allclose(c, (a @ b).ravel(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("stmts", "ends"),
    [
        ([LEFT.replace("+ k)", "+ 2 * k)"), RIGHT, SUM], {}),  # windows with gaps between them
        ([LEFT.replace("+ k)", "+ k // 2)"), RIGHT, SUM], {}),
        ([LEFT, RIGHT.replace("k * 128", "(112 - k) * 128"), SUM], {}),  # backwards
        ([LEFT, RIGHT, SUM.replace("k == 0", "k == 16")], {}),
        ([LEFT, RIGHT, SUM, "acc = pl.add(acc, 1.0)"], {}),
        ([LEFT, RIGHT, SUM], {"stop": "120"}),
        ([LEFT, RIGHT, SUM], {"start": "n"}),
        ([LEFT, RIGHT, SUM.replace("pl.load(x, [0, 0], [16, 16])", "pl.exp(pl.load(x, [0, 0], [16, 16]))")], {}),
    ],
)
def test_other_loops_keep_their_steps(stmts: list[str], ends: dict[str, str]) -> None:
    assert notes(*stmts, **ends) == "every tile is as it was written"
