"""Products of integers on a GPU: by digits on the matrix units, kept to 32 or 64 bits as everywhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ops.kernels import inout, kernel, tensor
from ops.native import assert_same
from unit.backends.cuda.test_numbers_of_texts import held
from unit.backends.cuda.written import written

import tilewright.language as pl
from tilewright import ir
from tilewright.backends.cuda.target import triton_objection
from tilewright.backends.cuda.ttir.text import ANY_ROOM
from tilewright.core.program import Function
from tilewright.dtypes import DataType
from tilewright.frontend.programs import as_program
from tilewright.ops.declare import INTEGERS
from tilewright.ops.product_types import accumulator

EVERY = sorted(INTEGERS, key=str)
DOTS = {pl.INT8: 1, pl.UINT8: 4, pl.INT16: 8, pl.UINT16: 8, pl.INT64: 36, pl.UINT64: 36}
"""How many products of bytes one of integers is; those of 32 bits are ten."""
SMALL = 1 << 12
"""Bytes of shared memory that products go through memory for."""


def multiplied(lhs: DataType, rhs: DataType, cast: DataType | None = None, length: int = 64) -> Function:
    """Return a kernel that adds a product to what is there, where a part of the common axis is valid."""
    a, b = (name if cast is None else f"pl.cast({name}, pl.{cast.symbol})" for name in "ab")
    return kernel(
        f"a = pl.load(x, [0, 0], [16, {length}], valid_shape=[16, {length - 3}])\n"
        f"b = pl.load(y, [0, 0], [{length}, 32], valid_shape=[{length - 3}, 32])\n"
        f"acc = pl.matmul_acc(pl.load(out, [0, 0], [16, 32]), {a}, {b})\n"
        "out = pl.store(acc, [0, 0], out)",
        x=tensor(lhs, 16, 64), y=tensor(rhs, 64, 32), out=inout(accumulator(cast or lhs), 16, 32),
    )  # fmt: skip


def arrays(*dtypes: DataType, into: DataType = pl.INT32) -> list[Any]:
    """Return factors with the largest and smallest numbers among others, and what their product is added to."""
    rng = np.random.default_rng(3)
    made: list[Any] = []
    for dtype, shape in zip(dtypes, ((16, 64), (64, 32)), strict=True):
        low, high = (int(limit) for limit in dtype.limits)
        array = rng.integers(low, high, shape, dtype.numpy, endpoint=True)
        array[rng.random(shape) < 0.3], array[rng.random(shape) < 0.2] = high, low
        made.append(array)
    return [*made, rng.integers(-(1 << 31), 1 << 31, (16, 32)).astype(into.numpy)]


@pytest.mark.parametrize("shared", [ANY_ROOM, SMALL], ids=["whole", "through memory"])
@pytest.mark.parametrize("dtype", EVERY, ids=str)
def test_products_of_integers_are_exact_to_32_or_64_bits(dtype: DataType, shared: int) -> None:
    for got, want in held(multiplied(dtype, dtype), arrays(dtype, dtype, into=accumulator(dtype)), shared):
        assert_same(got, want)


@pytest.mark.parametrize("length", [4, 16, 32])
@pytest.mark.parametrize("dtype", EVERY, ids=str)
def test_integers_that_were_cast_and_short_products_are_exact_to_64_bits(dtype: DataType, length: int) -> None:
    function = multiplied(dtype, dtype, pl.INT64, length)
    for got, want in held(function, arrays(dtype, dtype, into=pl.INT64)):
        assert_same(got, want)


@pytest.mark.parametrize("dtype", EVERY, ids=str)
def test_integers_are_multiplied_as_few_bytes(dtype: DataType) -> None:
    (found,) = written(multiplied(dtype, dtype)).kernels
    assert found.aligned.count("tt.dot") == DOTS.get(dtype, 10)
    assert "tensor<16x64xi8> * tensor<64x32xi8>" in found.aligned


@pytest.mark.parametrize(
    ("lhs", "rhs", "dots"), [(pl.UINT8, pl.INT8, 2), (pl.INT8, pl.UINT8, 2), (pl.INT8, pl.INT8, 1)]
)
def test_bytes_that_were_cast_are_multiplied_as_bytes(lhs: DataType, rhs: DataType, dots: int) -> None:
    function = kernel(
        "a, b = pl.load(x, [0, 0], [16, 64]), pl.load(y, [0, 0], [64, 32])\n"
        "out = pl.store(pl.matmul(pl.cast(a, pl.INT32), pl.cast(b, pl.INT32)), [0, 0], out)",
        x=tensor(lhs, 16, 64), y=tensor(rhs, 64, 32), out=inout(pl.INT32, 16, 32),
    )  # fmt: skip
    (found,) = written(function).kernels
    assert found.aligned.count("tt.dot") == dots
    for cast in (function, multiplied(lhs, rhs, pl.INT32)):
        for got, want in held(cast, arrays(lhs, rhs)):
            assert_same(got, want)


@pytest.mark.skipif(bool(triton_objection()), reason="needs Triton")
@pytest.mark.parametrize("dtype", [pl.UINT8, pl.INT16], ids=str)
def test_matrix_units_multiply_integers_without_spilling(dtype: DataType) -> None:
    function = kernel(
        "a, b = pl.load(x, [0, 0], [128, 64]), pl.load(y, [0, 0], [64, 128])\n"
        "out = pl.store(pl.matmul(a, b), [0, 0], out)",
        x=tensor(dtype, 128, 64), y=tensor(dtype, 64, 128), out=inout(pl.INT32, 128, 128),
    )  # fmt: skip
    program = ir.compile(as_program(function), platform="cuda", target="sm_90")
    assert "s32.s8.s8" in program.stages["ptx"]
    head, row = program.stages["launches"].splitlines()[:2]
    assert row[head.index("spilled") :].split()[0] == "0"
