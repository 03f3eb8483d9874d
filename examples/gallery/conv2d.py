"""Convolutions, 3x3 and with a border of zeros: over all channels, and over each of its own (depthwise).

A tile is loaded with the border around it, which `pad=` fills where the image ends, before its first row and column
too. The nine products, or nine sums, are of windows into it. Those of all channels are products of a row's pixels and
the weights of one place, which are put side by side first: windows and weights are then read where they lie, and the
nine products become one sum.
"""

from __future__ import annotations

import torch
from timing import show

import tilewright.language as pl

ROWS = 14


@pl.jit
def conv2d(x: pl.Tensor, weight: pl.Tensor, out: pl.Out[pl.Tensor]):
    images, channels, height, width = x.shape
    outputs = weight.shape[0]
    weights = pl.create_tensor([3, 3, channels, outputs], dtype=pl.FP32)
    for dy in pl.parallel(3):
        for dx in pl.parallel(3):
            with pl.at(level=pl.Level.CORE_GROUP):
                pl.store(pl.load(weight[:, :, dy, dx], [0, 0], [outputs, channels]).T, [0, 0], weights[dy, dx])
    for image in pl.parallel(images):
        for row in pl.parallel(0, height, ROWS):
            with pl.at(level=pl.Level.CORE_GROUP):
                t = pl.load(x[image], [0, row - 1, -1], [channels, ROWS + 2, width + 2], pad=0.0)
                w = pl.load(weights, [0, 0, 0, 0], [3, 3, channels, outputs])
                for r in pl.range(pl.min(ROWS, height - row)):
                    acc = pl.zeros([width, outputs])
                    for dy in range(3):
                        for dx in range(3):
                            acc = pl.matmul_acc(acc, t[:, r + dy, dx : dx + width].T, w[dy, dx])
                    pl.store(acc.T, [0, 0], out[image, :, row + r])
    return out


@pl.jit
def depthwise(x: pl.Tensor, weight: pl.Tensor, out: pl.Out[pl.Tensor]):
    images, channels, height, width = x.shape
    for image in pl.parallel(images):
        for channel in pl.parallel(channels):
            for row in pl.parallel(0, height, ROWS):
                with pl.at(level=pl.Level.CORE_GROUP):
                    t = pl.load(x[image, channel], [row - 1, -1], [ROWS + 2, width + 2], pad=0.0)
                    acc = pl.tile.full([ROWS, width], dtype=pl.FP32, value=0.0)
                    for dy in range(3):
                        for dx in range(3):
                            window = t[dy : dy + ROWS, dx : dx + width]
                            acc = acc + window * pl.read(weight, [channel, 0, dy, dx])
                    inside = pl.iota([ROWS, 1], axis=0) + row < height
                    pl.store(acc, [image, channel, row, 0], out, mask=inside)
    return out


def make_inputs_conv2d(seed: int = 0, images: int = 2, channels: int = 5, outputs: int = 6, size: int = 22):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(images, channels, size, size, generator=generator)
    return x, torch.randn(outputs, channels, 3, 3, generator=generator)


def make_output_conv2d(x: torch.Tensor, weight: torch.Tensor) -> tuple[torch.Tensor]:
    return (torch.empty(len(x), len(weight), *x.shape[2:]),)


def reference_conv2d(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.conv2d(x, weight, padding=1)


def make_inputs_depthwise(seed: int = 0, images: int = 2, channels: int = 5, size: int = 20):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(images, channels, size, size, generator=generator)
    return x, torch.randn(channels, 1, 3, 3, generator=generator)


def make_output_depthwise(x: torch.Tensor, weight: torch.Tensor) -> tuple[torch.Tensor]:
    return (torch.empty_like(x),)


def reference_depthwise(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.conv2d(x, weight, padding=1, groups=len(weight))


def main() -> None:
    inputs = make_inputs_conv2d(images=4, channels=64, outputs=64, size=56)
    show("conv2d 3x3", conv2d, reference_conv2d, inputs, make_output_conv2d(*inputs))
    inputs = make_inputs_depthwise(images=4, channels=128, size=56)
    show("conv2d 3x3, depthwise", depthwise, reference_depthwise, inputs, make_output_depthwise(*inputs))


if __name__ == "__main__":
    main()
