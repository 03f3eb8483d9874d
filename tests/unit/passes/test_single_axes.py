"""Single axes: tiles are loaded and stored without axes of one element that they have for that alone."""

from __future__ import annotations

import numpy as np
import pytest
from unit.backends.cpu.running import native
from unit.passes.texts import gives, kernel, leaves

from tilewright.passes import single_axes

TENSORS = (
    "x: pl.Tensor[[4, 8, 32], pl.FP32], y: pl.InOut[pl.Tensor[[4, 8, 32], pl.FP32]], n: pl.Scalar[pl.INDEX, (0, 3)]"
)

LOAD = "t = pl.load(x, [n, 0, 0], [1, 8, 32])"


def test_a_matrix_of_a_tensor_is_loaded_and_stored_as_one() -> None:
    before = kernel(
        """
    t = pl.load(x, [n, 0, 0], [1, 8, 32])
    m = pl.tile.reshape(t, [8, 32])
    d = pl.tile.mul(m, m)
    u = pl.tile.reshape(d, [1, 8, 32])
    pl.store(u, [n, 0, 0], y)
    """,
        TENSORS,
    )
    after = kernel(
        """
    t_part = pl.tensor.slice(x, [1, 8, 32], [n, 0, 0], drop_dims=(0,))
    t = pl.load(t_part, [0, 0], [8, 32])
    d = pl.tile.mul(t, t)
    pl.store(d, [n, 0, 0], y)
    """,
        TENSORS,
    )
    gives(single_axes.run, before, after)


@pytest.mark.parametrize(
    "body",
    [
        f"{LOAD}\nm = pl.tile.reshape(t, [32, 8])\npl.store(pl.tile.reshape(m, [1, 8, 32]), [n, 0, 0], y)",
        f"{LOAD}\nm = pl.tile.reshape(t, [8, 32])\npl.store(t, [n, 0, 0], y)\npl.store(m * m, [0, 0, 0], y)",
        "t = pl.load(x, [n, 4, 0], [1, 8, 32], clamp=True)\npl.store(t, [n, 4, 0], y)",
    ],
)
def test_other_shapes_and_other_readers_stay(body: str) -> None:
    leaves(single_axes.run, kernel(body, TENSORS))


def test_what_is_left_out_changes_nothing() -> None:
    text = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[3, 8, 40], pl.FP32], out: pl.Out[pl.Tensor[[3, 8, 40], pl.FP32]]):
        for n in pl.parallel(3):
            for g in pl.parallel(0, 8, 4):
                with pl.at(level=pl.Level.CORE_GROUP):
                    t = pl.reshape(pl.load(x, [n, g, 0], [1, 4, 40]), [4, 40])
                    d = t - pl.row_max(t)
                    pl.store(pl.reshape(pl.exp(d), [1, 4, 40]), [n, g, 0], out)
"""
    x = np.random.default_rng(0).uniform(-1, 1, (3, 8, 40)).astype(np.float32)
    native(text).check(x, np.zeros((3, 8, 40), np.float32))
