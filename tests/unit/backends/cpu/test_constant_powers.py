"""Constant powers: those that are few products are as near to the exact result as any other power."""

# pyright: basic, reportInvalidTypeForm=false, reportArgumentType=false
# pyright: reportAttributeAccessIssue=false, reportCallIssue=false
from __future__ import annotations

import numpy as np
import pytest

import tilewright.language as pl

EXPONENTS = [1, 3, 4, 5, 7, 8, 9, -1, -2, -3, -8, 0.5, 1.5, 2.5, 7.5, -0.5, -1.5, 0.25, 0]


@pl.jit
def powers(x: pl.Tensor, exponent: float, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], x.shape) ** exponent, [0, 0], out)


def samples(dtype: type) -> np.ndarray:
    rng = np.random.default_rng(0)
    wide = np.exp2(rng.uniform(-140, 120, 400)) * rng.choice([-1, 1], 400)
    edges = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 3.4e38, -3.4e38, 1e-40, 2.0, -2.0]
    found = np.concatenate([rng.normal(size=400), wide, edges]).astype(dtype)
    return np.ascontiguousarray(found[: found.size // 2 * 2].reshape(2, -1))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("exponent", EXPONENTS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_constant_powers_are_as_near_as_declared(exponent: float, dtype: type) -> None:
    x = samples(dtype)
    out = np.empty_like(x)
    powers(x, float(exponent), out)
    exact = np.power(x.astype(np.longdouble), np.full(x.shape, exponent, np.longdouble))
    expected = exact.astype(dtype)
    same = (out == expected) | (np.isnan(out) & np.isnan(expected))
    units = np.abs(out - exact) / np.spacing(np.abs(expected))
    assert np.all(same | (units <= (1 if dtype is np.float32 else 4)))
    assert np.array_equal(np.signbit(out)[out == 0], np.signbit(expected)[out == 0])
