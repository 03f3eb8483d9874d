"""Casts: floats quantized to bytes, and rounded to half as many bits, as they are read; and a few pairs of types."""

from functools import partial
from typing import Any

import torch
from contest import EAGER, OURS, Contest, Field, Work

import tilewright.language as pl

N, STRIP, SCALE = 4096, 16, 12.5
SMALL = 2048
PAIRS = (
    (torch.int32, torch.bfloat16), (torch.float16, torch.int64), (torch.float64, torch.int32),
    (torch.float32, torch.float8_e4m3fn), (torch.float32, torch.float8_e5m2), (torch.float64, torch.float16),
)  # fmt: skip


@pl.jit
def quantize(x: pl.Tensor[[N, N], pl.FP32], out: pl.Out[pl.Tensor[[N, N], pl.INT8]]):
    for row in pl.parallel(0, N, STRIP):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.clamp(pl.load(x, [row, 0], [STRIP, N]) * SCALE, -128.0, 127.0)
            pl.store(pl.cast(t, pl.INT8, mode="rint"), [row, 0], out)


@pl.jit
def halve(x: pl.Tensor[[N, N], pl.FP32], out: pl.Out[pl.Tensor[[N, N], pl.BF16]]):
    for row in pl.parallel(0, N, STRIP):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.cast(pl.load(x, [row, 0], [STRIP, N]), pl.BF16), [row, 0], out)


@pl.jit
def convert(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    for row in pl.parallel(0, x.shape[0], STRIP):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.cast(pl.load(x, [row, 0], [STRIP, x.shape[1]]), out.dtype, mode="trunc"), [row, 0], out)


def enter_convert(source: torch.dtype, target: torch.dtype) -> Field:
    x = (50 * torch.randn(SMALL, SMALL)).to(source)
    return _beside(convert, lambda out: out.copy_(x), x, target)


def enter_quantize() -> Field:
    x, scaled = 5 * torch.randn(N, N), torch.empty(N, N)

    def eager(out: torch.Tensor) -> torch.Tensor:
        torch.mul(x, SCALE, out=scaled)
        return out.copy_(scaled.round_().clamp_(-128, 127))

    return _beside(quantize, eager, x, torch.int8)


def enter_halve() -> Field:
    x = torch.randn(N, N)
    return _beside(halve, lambda out: out.copy_(x), x, torch.bfloat16)


def _beside(kernel: Any, eager: Any, x: torch.Tensor, dtype: torch.dtype) -> Field:
    mine, theirs = (torch.zeros(x.shape, dtype=dtype) for _ in range(2))

    def ours() -> torch.Tensor:
        kernel(x, mine)
        return mine

    return Field(eager(theirs).clone(), {OURS: ours, EAGER: lambda: eager(theirs)}, rtol=0, atol=0)


ROWS = (
    Contest(f"fp32 to int8 {N}²", enter_quantize, Work(bytes=5 * N * N), target=1.2),
    Contest(f"fp32 to bf16 {N}²", enter_halve, Work(bytes=6 * N * N), target=1.0),
    *(
        Contest(
            f"{str(source)[6:]} to {str(target)[6:]} {SMALL}²",
            partial(enter_convert, source, target),
            Work(bytes=(source.itemsize + target.itemsize) * SMALL * SMALL),
            target=1.0,
        )
        for source, target in PAIRS
    ),
)
