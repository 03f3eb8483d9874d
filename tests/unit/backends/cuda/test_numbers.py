"""What functions are written as, computed without a GPU: as exact as their ops promise."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from unit.backends.cuda.numbers import array_of, numbers

from tilewright.backends.cuda.ttir.elements import UFUNCS
from tilewright.backends.cuda.ttir.normal import times_fast_normal, times_normal
from tilewright.ops import functions
from tilewright.ops.registry import OPS

EXACT = {times_normal: functions.times_normal, times_fast_normal: functions.times_fast_normal}
OF = {times_normal: "tile.gelu", times_fast_normal: "tile.gelu_tanh"}


def ulps(got: Any, want: Any, dtype: Any = np.float32) -> Any:
    """Return how far numbers are apart, in units of the last place."""
    return np.abs(got - want) / np.spacing(np.abs(want).astype(dtype)).astype(np.float64)


@pytest.mark.parametrize("written", [times_normal, times_fast_normal], ids=lambda f: f.__name__)
@pytest.mark.parametrize("is_rough", [False, True], ids=["fp32", "half"])
def test_gelu_is_as_exact_as_it_promises(written: Any, is_rough: bool) -> None:
    rng = np.random.default_rng(7)
    few = [rng.normal(size=2000), rng.normal(size=500) * 1e-3, rng.normal(size=100) * 1e-40]
    x = np.concatenate([np.linspace(-16, 8, 20001), *few]).astype(np.float32)
    got = array_of(written(numbers(x, is_rough=is_rough)))
    want = np.array([EXACT[written](each) for each in x.astype(np.float64)])
    half = np.maximum(2.0**-10 * np.abs(want), 2.0**-133)  # one type has as many digits, another as small numbers
    place: Any = half if is_rough else np.spacing(np.abs(want).astype(np.float32))
    assert (np.abs(got - want) <= OPS[OF[written]].spec.ulp * place).all()


@pytest.mark.parametrize("written", [times_normal, times_fast_normal], ids=lambda f: f.__name__)
@pytest.mark.parametrize("is_rough", [False, True], ids=["fp32", "half"])
def test_gelu_of_what_is_far_out_is_all_or_nothing(written: Any, is_rough: bool) -> None:
    x = np.array([-math.inf, -3e38, -20.0, -0.0, 0.0, 20.0, 3e38, math.inf, math.nan], np.float32)
    got = array_of(written(numbers(x, is_rough=is_rough)))
    assert np.array_equal(got, [math.nan, -0.0, -0.0, -0.0, 0.0, *x[5:]], equal_nan=True)
    assert np.signbit(got[1:5]).tolist() == [True, True, True, False]


def test_quotients_by_few_are_those_by_each() -> None:
    rng = np.random.default_rng(5)
    special = [0.0, -0.0, 1e-42, -1e-39, 1e-30, 3.0, -7e37, 3.4e38, math.inf, -math.inf, math.nan]
    few = np.array([*special, *(rng.normal(size=20) * 10.0 ** rng.uniform(-44, 38, 20))], np.float32)[:, None]
    many = np.array([*special, *(rng.normal(size=200) * 10.0 ** rng.uniform(-44, 38, 200))], np.float32)[None]
    many, whole = np.broadcast_arrays(many, few)
    got = array_of(UFUNCS["divide"](numbers(many), numbers(whole, few)))
    with np.errstate(all="ignore"):
        want = (many.astype(np.float64) / whole.astype(np.float64)).astype(np.float32).astype(np.float64)
        same = (got == want) & (np.signbit(got) == np.signbit(want)) | np.isnan(got) & np.isnan(want)
        assert (same | (ulps(got, want) <= 1)).all()
