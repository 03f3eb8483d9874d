"""Halves: products of 16-bit floats read them as fp32, converted once."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright.language as pl
from tilewright.core.program import Program
from tilewright.dtypes import BF16, FP16, DataType
from tilewright.frontend.programs import as_program
from tilewright.passes import halves
from tilewright.passes.manager import PassManager
from tilewright.runtime import RunConfig


def lowered(dtype: str, rows: int) -> Program:
    """Return a product of a matrix that stays and of others that follow each other."""
    text = f"""
import tilewright.language as pl
@pl.program
class P:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, a: pl.Tensor[[{rows}, 32], pl.{dtype}], b: pl.Tensor[[96, 32], pl.{dtype}],
             c: pl.InOut[pl.Tensor[[{rows}, 32], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            x = pl.load(a, [0, 0], [{rows}, 32])
            acc = pl.tile.full([{rows}, 32], dtype=pl.FP32, value=0.0)
            for k in pl.range(0, 96, 32):
                acc = pl.matmul_acc(acc, x, pl.load(b, [k, 0], [32, 32]))
            pl.store(acc, [0, 0], c)
"""
    return PassManager.get_strategy().run_passes(as_program(pl.parse(text)))


@pytest.mark.parametrize(("dtype", "known"), [("BF16", BF16), ("FP16", FP16)])
def test_an_operand_is_converted_where_it_is_made(dtype: str, known: DataType) -> None:
    before, loop = str(halves.run(lowered(dtype, 32), [known])).split("for k")
    assert before.count("pl.tile.cast") == loop.count("pl.tile.cast") == 1
    assert "_fp32, " in loop[loop.index("matmul_acc") :]


@pytest.mark.parametrize(("dtype", "rows", "known"), [("BF16", 32, FP16), ("FP32", 32, BF16), ("BF16", 8, BF16)])
def test_what_the_processor_multiplies_and_few_rows_stay_as_they_are(dtype: str, rows: int, known: DataType) -> None:
    program = lowered(dtype, rows)
    assert halves.run(program, [known]) is program


@pytest.mark.parametrize("is_turned", [False, True])
def test_an_operand_that_a_loop_carries_stays_as_it_is_beside_others_that_are_converted(is_turned: bool) -> None:
    @pl.jit
    def recurrent(x: pl.Tensor, w: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            h = pl.load(x, [0, 0], [20, 48])
            for _ in pl.range(3):
                weights = pl.load(w, [0, 0], [48, 48])
                if is_turned:
                    weights = weights.T
                h = pl.cast(pl.tanh(h @ weights + pl.load(x, [0, 0], [20, 48]) @ weights), pl.FP16)
            pl.store(h, [0, 0], out)

    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(shape).astype(np.float16) / 8 for shape in ((20, 48), (48, 48)))
    ours, wanted = np.zeros_like(x), np.zeros_like(x)
    recurrent(x, w, ours)
    recurrent(x, w, wanted, config=RunConfig(platform="interpret"))
    np.testing.assert_allclose(ours, wanted, rtol=4e-3, atol=4e-3)
    assert wanted.any()
