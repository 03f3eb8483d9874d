"""A selective scan as state-space models have it: h = exp(dt * a) * h + dt * b * x, y = c . h, step after step.

The state of a block of channels is a tile [states, channels] that stays where it is while time goes by.
"""

from __future__ import annotations

import torch
from timing import show

import tilewright.language as pl

CHANNELS = 64


@pl.jit
def selective_scan(x: pl.Tensor, dt: pl.Tensor, a: pl.Tensor, b: pl.Tensor, c: pl.Tensor, y: pl.Out[pl.Tensor]):
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


def make_inputs(seed: int = 0, batch: int = 2, length: int = 20, channels: int = 100, states: int = 16):
    generator = torch.Generator().manual_seed(seed)
    x, dt = torch.randn(2, batch, length, channels, generator=generator)
    a = -torch.arange(1.0, states + 1)[:, None] * torch.rand(1, channels, generator=generator)
    b, c = torch.randn(2, batch, length, states, 1, generator=generator)
    return x, torch.nn.functional.softplus(dt), a, b, c


def make_output(x: torch.Tensor, *others: torch.Tensor) -> tuple[torch.Tensor]:
    return (torch.empty_like(x),)


def reference(x: torch.Tensor, dt: torch.Tensor, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
    h, y = torch.zeros(x.shape[0], *a.shape), torch.empty_like(x)
    for t in range(x.shape[1]):
        step = dt[:, None, t]
        h = torch.exp(step * a) * h + b[:, t] * (step * x[:, None, t])
        y[:, t] = (h * c[:, t]).sum(dim=1)
    return y


def main() -> None:
    inputs = make_inputs(batch=4, length=512, channels=1024)
    show("mamba scan", selective_scan, reference, inputs, make_output(*inputs))


if __name__ == "__main__":
    main()
