"""Comparisons of tiles of any two types as PTO text: read back, they give every bit."""
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportOperatorIssue=false

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from property.exported import read_back

import tilewright.language as pl

SIZES = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
DTYPES: list[Any] = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64, *map(np.dtype, SIZES), np.bool_]


@pl.jit
def compared(x: pl.Tensor, y: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        a, b = pl.load(x, [0, 0], [8, 16]), pl.load(y, [0, 0], [8, 16])
        one = pl.tile.full([8, 16], dtype=pl.FP32, value=1.0)
        pl.store(pl.cast(a < b, pl.FP32), [0, 0], out)
        pl.store(pl.where(a >= b, 2.0 * one, one), [8, 0], out)
        pl.store(pl.sels(pl.cmp(a, b, cmp_type=pl.CmpType.GT), one, scalar=3.0), [16, 0], out)
        pl.store(pl.cast(a == b[:1], pl.FP32), [24, 0], out)
        pl.store(pl.cast(a[:, :1] != b, pl.FP32), [32, 0], out)
        pl.store(pl.cast(a[:, :1] <= b[:, :1], pl.FP32), [40, 0], out)


def numbers(dtype: Any, seed: int) -> Any:
    """Return small numbers, and some that are as large as there are, or have fractions."""
    dtype = np.dtype(dtype)
    made = np.random.default_rng(seed).integers(0 if dtype.kind in "ub" else -5, 6, (8, 16)).astype(dtype)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        made[0, :6] = [info.max, info.min, info.max // 2 + 1, info.max - 1, min(info.max, 1 << 53), 7]
    elif dtype.kind != "b":
        made[0, :6] = [2.5, -0.0, 0.0, np.inf, 16777217 if dtype.itemsize > 2 else 255, np.nan]
    return made


PAIRS = [
    (a, b) for a in DTYPES for b in DTYPES if a is not np.bool_ or b is not np.bool_
]  # `pl.cmp` takes no two masks


@pytest.mark.parametrize(("one", "other"), PAIRS, ids=str)
def test_elements_of_two_types_compare(one: Any, other: Any) -> None:
    x, y = numbers(one, 1), numbers(other, 2)
    wanted, found = read_back(compared, lambda: [x.copy(), y.copy(), np.zeros((48, 16), np.float32)], "interpret")
    np.testing.assert_array_equal(found[2], wanted[2])


@pytest.mark.parametrize(("one", "other"), [("uint64", "int64"), ("int8", "uint64"), ("float32", "int16")])
def test_elements_of_two_types_compare_natively(one: str, other: str) -> None:
    x, y = numbers(one, 1), numbers(other, 2)
    wanted, found = read_back(compared, lambda: [x.copy(), y.copy(), np.zeros((48, 16), np.float32)], "cpu")
    np.testing.assert_array_equal(found[2], wanted[2])
