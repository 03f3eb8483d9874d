"""Products with quantized weights: int8 with a scale per output (w8a32), and int4, two to a byte (w4a16).

Weights are widened tile by tile on their way into the product, and scaled once at the end.
"""

from __future__ import annotations

import torch
from timing import show

import tilewright.language as pl

TM, TN, TK = 128, 64, 256


@pl.jit
def w8a32(x: pl.Tensor, weight: pl.Tensor, scale: pl.Tensor, out: pl.Out[pl.Tensor]):
    for row in pl.parallel(0, x.shape[0], TM):
        for col in pl.parallel(0, weight.shape[1], TN):
            with pl.at(level=pl.Level.CORE_GROUP):
                acc = pl.tile.full([TM, TN], dtype=pl.FP32, value=0.0)
                for k in pl.range(0, x.shape[1], TK):
                    w = pl.cast(pl.load(weight, [k, col], [TK, TN]), pl.FP32)
                    acc = pl.matmul_acc(acc, pl.load(x, [row, k], [TM, TK]), w)
                pl.store(acc * pl.load(scale, [0, col], [1, TN]), [row, col], out)
    return out


@pl.jit
def w4a16(x: pl.Tensor, weight: pl.Tensor, scale: pl.Tensor, out: pl.Out[pl.Tensor]):
    """Byte k of a column holds the weights 2k (low half) and 2k + 1 (high half) of that column, each 8 too large."""
    for row in pl.parallel(0, x.shape[0], TM):
        for col in pl.parallel(0, weight.shape[1], TN):
            with pl.at(level=pl.Level.CORE_GROUP):
                acc = pl.tile.full([TM, TN], dtype=pl.FP32, value=0.0)
                for k in pl.range(0, weight.shape[0], TK // 2):
                    both = pl.cast(pl.load(weight, [k, col], [TK // 2, TN]), pl.INT32)
                    low, high = (both & 15) - 8, (both >> 4) - 8
                    values = pl.load(x, [row, 2 * k], [TM, TK])
                    acc = pl.matmul_acc(acc, values[:, 0::2], pl.cast(low, pl.FP16))
                    acc = pl.matmul_acc(acc, values[:, 1::2], pl.cast(high, pl.FP16))
                pl.store(pl.cast(acc * pl.load(scale, [0, col], [1, TN]), pl.FP16), [row, col], out)
    return out


def make_inputs_w8a32(seed: int = 0, rows: int = 70, inner: int = 300, outputs: int = 100) -> tuple[torch.Tensor, ...]:
    generator = torch.Generator().manual_seed(seed)
    weight = torch.randint(-127, 128, (inner, outputs), generator=generator, dtype=torch.int8)
    return torch.randn(rows, inner, generator=generator), weight, torch.rand(1, outputs, generator=generator) / 127


def make_inputs_w4a16(seed: int = 0, rows: int = 70, inner: int = 300, outputs: int = 100) -> tuple[torch.Tensor, ...]:
    generator = torch.Generator().manual_seed(seed)
    weight = torch.randint(0, 256, (inner // 2, outputs), generator=generator, dtype=torch.uint8)
    return torch.randn(rows, inner, generator=generator).half(), weight, torch.rand(1, outputs, generator=generator) / 8


def make_output(x: torch.Tensor, weight: torch.Tensor, scale: torch.Tensor) -> tuple[torch.Tensor]:
    return (torch.empty(len(x), weight.shape[1], dtype=x.dtype),)


def reference_w8a32(x: torch.Tensor, weight: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    return x @ weight.float() * scale


def reference_w4a16(x: torch.Tensor, weight: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    low, high = (weight & 15).float() - 8, (weight >> 4).float() - 8
    return (x.float() @ torch.stack([low, high], dim=1).flatten(0, 1) * scale).half()


def main() -> None:
    inputs = make_inputs_w8a32(rows=256, inner=4096, outputs=4096)
    show("w8a32", w8a32, reference_w8a32, inputs, make_output(*inputs), atol=1e-3)
    inputs = make_inputs_w4a16(rows=256, inner=4096, outputs=4096)
    show("w4a16", w4a16, reference_w4a16, inputs, make_output(*inputs), rtol=1e-2, atol=1e-1)


if __name__ == "__main__":
    main()
