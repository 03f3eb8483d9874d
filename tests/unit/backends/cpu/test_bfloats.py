"""Bfloats: functions of bfloat16 numbers, of every one there is, against what doubles say."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import tilewright.language as pl

BITS: Any = np.arange(1 << 16, dtype=np.uint16)
EVERY: Any = BITS.view(pl.BF16.numpy).reshape(64, 1024)


@pl.jit
def gelu(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    for row in pl.parallel(0, x.shape[0], 16):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.gelu(pl.load(x, [row, 0], [16, x.shape[1]])), [row, 0], out)
    return out


def _exact(x: float) -> float:
    return x * (math.erfc(-x * math.sqrt(0.5)) / 2)


def test_gelu_of_every_bfloat_is_hardly_more_than_half_a_unit_off() -> None:
    out = np.zeros_like(EVERY)
    gelu(EVERY, out)
    got, exact = out.astype(np.float64), np.array([[_exact(x) for x in row] for row in EVERY.tolist()])
    assert np.array_equal(np.isnan(got), np.isnan(exact))
    is_finite = np.isfinite(exact)
    assert np.array_equal(got[~is_finite], exact[~is_finite], equal_nan=True)
    unit = np.ldexp(1.0, np.maximum(np.frexp(exact[is_finite])[1] - 8, -133))
    assert (np.abs(got[is_finite] - exact[is_finite]) <= 0.55 * unit).all()
    assert np.array_equal(np.signbit(got)[is_finite], np.signbit(exact)[is_finite])
