"""Blends against torch: bounds that are crossed or NaN, and products whose rounding would show."""

from __future__ import annotations

import itertools
import math

import numpy as np
import torch
from ops.kernels import kernel, out, tensor
from ops.native import Native, assert_same

import tilewright.language as pl

SPECIALS = [math.nan, math.inf, -math.inf, 0.0, 1.5, -2.0, 7.0]
SHAPE = (7, 49)

CLAMPED = """
a = pl.load(x, [0, 0], [7, 49])
l = pl.load(low, [0, 0], [7, 49])
h = pl.load(high, [0, 0], [7, 49])
both = pl.store(pl.clamp(a, l, h), [0, 0], both)
upper = pl.store(pl.clamp(a, max=h), [0, 0], upper)
lower = pl.store(pl.clamp(a, min=0.5), [0, 0], lower)
"""


def test_bounds_clamp_as_torchs_do() -> None:
    every = [*itertools.product(SPECIALS, repeat=3)]
    x, low, high = (np.reshape(np.array(part, np.float32), SHAPE) for part in zip(*every, strict=True))
    types = {name: tensor(pl.FP32, *SHAPE) for name in ("x", "low", "high")}
    types |= {name: out(pl.FP32, *SHAPE) for name in ("both", "upper", "lower")}
    a, least, most = (torch.tensor(part.tolist()) for part in (x, low, high))
    found = Native(kernel(CLAMPED, **types)).run([x, low, high, *(np.zeros(SHAPE, np.float32) for _ in range(3))])
    want = [torch.clamp(a, least, most), torch.clamp(a, max=most), torch.clamp(a, min=0.5)]
    for (got, meant), expected in zip(found[3:], want, strict=True):
        assert_same(got, meant)
        np.testing.assert_array_equal(got, expected.numpy())


def test_a_fused_product_is_rounded_once() -> None:
    near = np.full((1, 16), 1 + 2.0**-12, np.float32)
    text = "t = pl.load(x, [0, 0], [1, 16])\nout = pl.store(pl.fma(t, 2.0 - t, -1.0), [0, 0], out)"
    function = kernel(text, x=tensor(pl.FP32, 1, 16), out=out(pl.FP32, 1, 16))
    _, (got, want) = Native(function).run([near, np.zeros((1, 16), np.float32)])
    assert (got == -(2.0**-24)).all() and (want == got).all()
