"""What functions are written as, computed without a GPU: as exact as their ops promise."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from unit.backends.cuda.numbers import array_of, numbers

from tilewright.backends.cuda.ttir.elements import UFUNCS
from tilewright.backends.cuda.ttir.normal import fast_normal, normal
from tilewright.ops import functions
from tilewright.ops.registry import OPS

EXACT = {normal: functions.normal, fast_normal: functions.fast_normal}
OF = {normal: "tile.gelu", fast_normal: "tile.gelu_tanh"}


def ulps(got: Any, want: Any, dtype: Any = np.float32) -> Any:
    """Return how far numbers are apart, in units of the last place."""
    return np.abs(got - want) / np.spacing(np.abs(want).astype(dtype)).astype(np.float64)


@pytest.mark.parametrize("written", [normal, fast_normal], ids=lambda f: f.__name__)
@pytest.mark.parametrize("is_rough", [False, True], ids=["fp32", "half"])
def test_gelu_is_as_exact_as_it_promises(written: Any, is_rough: bool) -> None:
    rng = np.random.default_rng(7)
    end = 12.5 if written is normal else 9.5
    x = np.concatenate([np.linspace(-end, 6, 4001), rng.normal(size=2000), rng.normal(size=500) * 1e-3])
    x = x.astype(np.float32)
    got = x * array_of(written(numbers(x, is_rough=is_rough)))
    want = np.array([each * EXACT[written](each) for each in x.astype(np.float64)])
    place: Any = 2.0**-10 * np.abs(want) if is_rough else np.spacing(np.abs(want).astype(np.float32))
    assert (np.abs(got - want) <= OPS[OF[written]].spec.ulp * place).all()


def test_a_normal_distribution_ends_at_zero_and_one() -> None:
    x = np.array([-math.inf, -20.0, -0.0, 20.0, math.inf], np.float32)
    assert array_of(normal(numbers(x))).tolist() == [0, 0, 0.5, 1, 1]
    assert array_of(fast_normal(numbers(x))).tolist() == [0, 0, 0.5, 1, 1]


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
