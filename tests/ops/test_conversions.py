"""Conversions: every type to every other, natively as in the interpreter, at limits and beside ties."""

# pyright: basic, reportInvalidTypeForm=false, reportArgumentType=false
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright.language as pl
from tilewright.core.enums import RoundMode
from tilewright.dtypes import ALL, DataType, round_to
from tilewright.runtime import RunConfig

TYPES = [dtype for dtype in ALL if dtype.numpy_name is not None and dtype.name not in ("index", "task_id")]
COLUMNS = 64


@pl.jit
def converted(x: pl.Tensor, out: pl.Out[pl.Tensor], dtype: DataType, mode: str):
    for row in pl.parallel(0, x.shape[0], 16):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.cast(pl.load(x, [row, 0], [16, x.shape[1]]), dtype, mode=mode), [row, 0], out)


def numbers(dtype: DataType) -> Any:
    """Return numbers of a type: at the limits of others, beside the ties of others, and any."""
    draw = np.random.default_rng(7)
    limits = [sign * (2.0**p + d) for sign in (1, -1) for p in (7, 8, 15, 16, 31, 32, 63) for d in (-1, -0.5, 0, 0.5)]
    powers = np.exp2(draw.integers(-20, 20, 400).astype(np.float64))
    ties = powers * draw.integers(16, 32, 400) / 16
    beside = [
        ties,
        np.nextafter(ties, np.inf),
        np.nextafter(ties, -np.inf),
        ties * (1 + 2.0**-23),
        ties * (1 - 2.0**-9),
    ]
    small = np.exp2(draw.uniform(-160, -100, 200))
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 448, 464, 465, 57344, 61440, 65504, 65520, 3.4e38, 1e300]
    floats = np.concatenate([limits, *beside, -ties, small, -small, special])
    words = draw.integers(-(2**63), 2**63 - 1, 600) >> draw.integers(0, 60, 600)
    near = (1 << draw.integers(9, 31, 400)) + (1 << draw.integers(0, 22, 400)) * draw.integers(0, 4, 400)
    whole = np.concatenate([words, near - 1, near, near + 1, -near, 1 - near])
    if dtype.is_float():
        with np.errstate(all="ignore"):
            return filled(round_to(np.concatenate([floats, whole.astype(np.float64)]), dtype))
    return filled(round_to(whole, dtype) if dtype.is_int() else whole % 2 != 0)


def filled(values: Any) -> Any:
    """Return numbers in rows of as many."""
    return np.resize(values, (-(-len(values) // COLUMNS), COLUMNS))


def check(source: DataType, target: DataType, mode: str) -> None:
    given = numbers(source)
    ours, meant = (np.zeros(given.shape, target.numpy) for _ in range(2))
    converted(given, ours, target, mode)
    converted(given, meant, target, mode, config=RunConfig(platform="interpret"))
    if target.is_float():
        kind = np.float64
        wrong = (ours.astype(kind) != meant.astype(kind)) | (np.signbit(ours) != np.signbit(meant))
        wrong &= ~(np.isnan(ours.astype(kind)) & np.isnan(meant.astype(kind)))
    else:
        wrong = ours.astype(object) != meant.astype(object)
    assert not wrong.any(), (mode, given[wrong][:4], ours[wrong][:4], meant[wrong][:4])


@pytest.mark.parametrize("target", TYPES, ids=str)
@pytest.mark.parametrize("source", TYPES, ids=str)
def test_every_type_converts_to_every_other(source: DataType, target: DataType) -> None:
    if source != target:
        check(source, target, "rint")


@pytest.mark.parametrize("mode", [mode.name for mode in RoundMode])
@pytest.mark.parametrize("source", [pl.FP64, pl.FP32, pl.BF16], ids=str)
def test_floats_round_to_integers_in_every_mode(source: DataType, mode: str) -> None:
    for target in (pl.INT32, pl.UINT32, pl.INT8):
        check(source, target, mode)
