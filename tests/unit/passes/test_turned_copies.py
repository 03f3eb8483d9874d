"""Turned copies: what lies on its side is written tile by tile, the same as NumPy writes it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from unit.passes.texts import gives, kernel, leaves

import tilewright.language as pl
from tilewright.passes import block_tensors
from tilewright.runtime import RunConfig

M, N = pl.dynamic("M"), pl.dynamic("N")
KNOWN = "x: pl.Tensor[[200, 100], pl.FP32], y: pl.InOut[pl.Tensor[[100, 200], pl.FP32]]"
SQUARE = "x: pl.Tensor[[4, 4], pl.FP32], y: pl.InOut[pl.Tensor[[4, 4], pl.FP32]]"


def test_a_tensor_on_its_side_is_written_in_tiles() -> None:
    before = kernel("z = pl.tensor.transpose(x, axis1=0, axis2=1)\npl.assemble(y, z, [0, 0])", KNOWN)
    after = kernel(
        """
    z = pl.tensor.transpose(x, axis1=0, axis2=1)
    for i in pl.parallel(0, 100, 64):
        for j in pl.parallel(0, 200, 64):
            t = pl.load(x, [j, i], [64, 64], clamp=True)
            u = pl.tile.transpose(t, axis1=-2, axis2=-1)
            pl.store(u, [i, j], y)
    """,
        KNOWN,
    )
    gives(block_tensors.run, before, after)


@pytest.mark.parametrize(
    "body",
    [
        "z = pl.tensor.transpose(y, axis1=0, axis2=1)\npl.assemble(y, z, [0, 0])",
        "z = pl.slice(x, [4, 4], [0, 0])\npl.assemble(y, z, [0, 0])",
    ],
    ids=["into itself", "not turned"],
)
def test_other_copies_stay(body: str) -> None:
    leaves(block_tensors.run, kernel(body, SQUARE))


@pl.jit
def turned(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:] = x.mT


@pl.jit
def turned_of_any(x: pl.Tensor[[M, N], pl.FP32], out: pl.Out[pl.Tensor[[N, M], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:] = x.T


@pl.jit
def turned_into_part(x: pl.Tensor, out: pl.InOut[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        out[1:71, 2:132] = x.T


@pl.jit
def turned_in_place(x: pl.InOut[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        x[:] = x.T


def counted(*shape: int) -> Any:
    return np.reshape(np.arange(np.prod(shape), dtype=np.float32), shape)


@pytest.mark.parametrize("platform", ["cpu", "interpret"])
def test_turned_copies_are_numpys(platform: str) -> None:
    config = RunConfig(platform=platform)
    for shape in ((130, 70), (64, 64), (1, 300), (3, 65, 129)):
        x = counted(*shape)
        found: NDArray[Any] = np.zeros_like(np.swapaxes(x, -1, -2), order="C")
        turned(x, found, config=config)
        np.testing.assert_array_equal(found, np.swapaxes(x, -1, -2))
    x, other = counted(130, 70), np.zeros((70, 130), np.float32)
    turned_of_any(x, other, config=config)
    np.testing.assert_array_equal(other, x.T)
    into = np.zeros((80, 140), np.float32)
    turned_into_part(x, into, config=config)
    np.testing.assert_array_equal(into[1:71, 2:132], x.T)
    assert into.sum(dtype=np.float64) == x.sum(dtype=np.float64)
    square = counted(100, 100)
    turned_in_place(square, config=config)
    np.testing.assert_array_equal(square, counted(100, 100).T)
