"""Numbers that each call brings, and numbers of a type: what they are does not depend on when they are known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from unit.frontend.texts import in_core, jitted, ramp

import tilewright.language as pl

X = ramp(4, 16)
POWERS = in_core(
    "t = pl.load(x, [0, 0], x.shape)",
    "for _ in range(n):",
    "    t = t * scale",
    "pl.store(t, [0, 0], out)",
)
RUNNING = "x: pl.Tensor, scale: pl.Scalar[pl.FP32, pl.RUNTIME], n: pl.Scalar[pl.INT32, (0, 9), pl.RUNTIME]"


def test_a_running_number_changes_without_a_recompile() -> None:
    kernel = jitted(POWERS, f"{RUNNING} = 1, out: pl.Out[pl.Tensor] = None")
    for scale in (0.5, 2.0, -1.5, 2, np.float32(0.25), math.inf):
        for n in (0, 1, 3):
            np.testing.assert_array_equal(kernel(X + 1, scale, n), (X + 1) * np.float32(float(scale) ** n))
    np.testing.assert_array_equal(kernel(X, 3.0), X * 3)
    assert kernel.cache_info().compiles == 1
    assert kernel.call_info().direct > 4
    with pytest.raises(TypeError, match="`n` is a scalar of int32"):
        kernel(X, 2.0, 1.5)
    with pytest.raises(ValueError, match="`n` must lie within 0 to 9"):
        kernel(X, 2.0, 10)


def test_a_running_number_is_open_in_signatures() -> None:
    matrix = "pl.Tensor[[4, 16], pl.FP32]"
    stated = f"x: {matrix}, scale: pl.Scalar[pl.FP32, pl.RUNTIME], out: pl.Out[{matrix}]"
    program = jitted(in_core("pl.store(pl.load(x, [0, 0], x.shape) * scale, [0, 0], out)"), stated).compile()
    np.testing.assert_array_equal(program(X, 3.0), X * 3)


def test_a_number_that_is_code_says_how_it_need_not_be() -> None:
    kernel = jitted(in_core("pl.store(pl.load(x, [0, 0], x.shape) * n, [0, 0], out)"), "x, n, out: pl.Out[pl.Tensor]")
    kernel(X, 2)
    assert "pl.Scalar[pl.INT64, pl.RUNTIME] is one that each call brings" in kernel.explain_miss(X, 3)


TYPED = in_core(
    "t = pl.load(x, [0, 0], x.shape)",
    "total = pl.cast(n + 100, pl.FP32) + pl.cast(n / 3, pl.FP32) * 2.0 + pl.cast(-n * n, pl.FP32)",
    "if big > 5 and big + 1 < big:",
    "    t = t + 64.0",
    "pl.store(t + (total + small * 3.0 + small) + pl.cast(max(n, 5), pl.FP32), [0, 0], out)",
)


@pytest.mark.parametrize("n", [100, -128, 7])
@pytest.mark.filterwarnings("ignore:.*divides integers")
def test_a_number_is_of_its_type_whether_it_is_known_or_not(n: int) -> None:
    typed = "x: pl.Tensor, n: pl.Scalar[pl.INT8], big: pl.Scalar[pl.UINT64], small: pl.Scalar[pl.FP32]"
    kernel = jitted(TYPED, f"{typed}, out: pl.Out[pl.Tensor]")
    program = kernel.compile(X, pl.RUNTIME, pl.RUNTIME, pl.RUNTIME)
    for big, small in ((2**64 - 1, 0.1), (2**63 + 5, 1 / 3)):
        np.testing.assert_array_equal(kernel(X, n, big, small), program(X, n, big, small))
