"""Doubles in kernels: arithmetic, functions, folds, products and numbers, against torch in the same precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from unit.frontend.texts import in_core, jitted

from tilewright.runtime import RunConfig

RNG = np.random.default_rng(5)
A, B = RNG.standard_normal((9, 21)), RNG.standard_normal((9, 21))
BODY = in_core(
    "t, u = pl.load(x, [0, 0], [9, 21]), pl.load(y, [0, 0], [9, 21])",
    "r = pl.exp(t) * u + pl.sin(t) / 3.0 + s - pl.tanh(u) + pl.erf(t) + pl.log(pl.abs(t) + 1.0) + pl.gelu(t)",
    "r = r + pl.pow(pl.abs(t), u) + pl.atan2(t, u) + pl.log1p(pl.abs(u)) + pl.read(x, [0, 0])",
    "pl.store(r, [0, 0], out)",
    "pl.store(pl.row_sum(r), [0, 0], rows)",
    "pl.store(pl.col_max(r), [0, 0], columns)",
    "pl.store(pl.matmul(t, pl.transpose(u, 0, 1)), [0, 0], product)",
    "pl.store(pl.cast(r, pl.FP32), [0, 0], single)",
    "pl.store(pl.cast(pl.cast(t * 100.0, pl.INT64), pl.FP64), [0, 0], whole)",
)
OUTPUTS = "out, rows, columns, product, single, whole".split(", ")
PARAMETERS = ", ".join(
    ["x: pl.Tensor, y: pl.Tensor, s: pl.Scalar[pl.FP64, pl.RUNTIME]"] + [f"{n}: pl.Out[pl.Tensor]" for n in OUTPUTS]
)


def expected(number: float) -> list[Any]:
    t, u = torch.tensor(A), torch.tensor(B)
    r = t.exp() * u + t.sin() / 3.0 + number - u.tanh() + t.erf() + (t.abs() + 1.0).log()
    r = r + torch.nn.functional.gelu(t) + t.abs() ** u + torch.atan2(t, u) + u.abs().log1p() + t[0, 0]
    whole = np.copysign(np.floor(np.abs(A * 100.0) + 0.5), A)
    return [r, r.sum(1, keepdim=True), r.amax(0, keepdim=True), t @ u.T, r.float(), torch.tensor(whole)]


@pytest.mark.parametrize("platform", ["cpu", "interpret"])
def test_doubles_are_as_exact_as_torchs(platform: str) -> None:
    kernel = jitted(BODY, PARAMETERS)
    for number in (0.1, 1e-9):  # neither of which a float holds
        wanted = expected(number)
        outputs = [torch.zeros_like(want) for want in wanted]
        kernel(A, B, number, *outputs, config=RunConfig(platform=platform))
        for name, got, want in zip(OUTPUTS, outputs, wanted, strict=True):
            torch.testing.assert_close(got, want, rtol=1e-13, atol=1e-13, msg=lambda text, name=name: f"{name}: {text}")
