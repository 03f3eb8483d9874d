"""A selective scan as state-space models have it: h = exp(dt * a) * h + dt * b * x, y = c . h, step after step.

The state of a block of channels is a tile [states, channels] that stays where it is while time goes by.
"""

from __future__ import annotations

import torch
from timing import show

import tilewright.language as pl

CHANNELS = 64


@pl.jit
def selective_scan(
    x: pl.Tensor, dt: pl.Tensor, a: pl.Tensor, b: pl.Tensor, c: pl.Tensor, y: pl.Out[pl.Tensor]
):
    batch, length, channels = x.shape
    states = a.shape[0]
    for n in pl.parallel(batch):
        for channel in pl.parallel(0, channels, CHANNELS):
            with pl.at(level=pl.Level.CORE_GROUP):
                rate = pl.load(a, [0, channel], [states, CHANNELS])
                h = pl.tile.full([states, CHANNELS], dtype=pl.FP32, value=0.0)
                for t in pl.range(length):
                    step = pl.load(dt[n], [t, channel], [1, CHANNELS])
                    given = step * pl.load(x[n], [t, channel], [1, CHANNELS])
                    h = pl.exp(step * rate) * h + pl.load(b[n, t], [0, 0], [states, 1]) * given
                    seen = pl.sum(h * pl.load(c[n, t], [0, 0], [states, 1]), axis=0, keepdims=True)
                    pl.store(seen, [n, t, channel], y)
    return y
