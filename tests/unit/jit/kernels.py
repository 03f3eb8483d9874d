"""Kernels that the tests beside this file call, as kernels of another module."""

# pyright: basic, reportInvalidTypeForm=false, reportArgumentType=false
# pyright: reportAttributeAccessIssue=false, reportCallIssue=false
from __future__ import annotations

from typing import Any

import torch

import tilewright.language as pl

FACTOR = 3.0
ROWS = 4


@pl.jit.incore
def tripled(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    """Three times a tensor, as one tile."""
    t = pl.load(x, [0, 0], [x.shape[0], x.shape[1]])
    return pl.store(t * FACTOR, [0, 0], out)


@pl.jit.incore
def scaled(x: pl.Tensor, factor: pl.FP32, out: pl.Out[pl.Tensor]):
    """A tensor times a number, as one tile."""
    t = pl.load(x, [0, 0], [x.shape[0], x.shape[1]])
    return pl.store(t * factor, [0, 0], out)


@pl.jit.incore
def doubled_rows(x: pl.Tensor, first: pl.INDEX, out: pl.Out[pl.Tensor]):
    """Twice the rows from `first` on, as far as a tile goes."""
    t = pl.load(x, [first, 0], [ROWS, x.shape[1]])
    return pl.store(t + t, [first, 0], out)


@pl.jit.incore
def misspelt(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    """A helper with a mistake in its second line."""
    t = pl.load(x, [0, 0], [x.shape[0], x.shape[1]])
    return pl.store(t * FACTR, [0, 0], out)  # noqa: F821  # pyright: ignore[reportUndefinedVariable]


def numbers(*shape: int, dtype: Any = torch.float32) -> torch.Tensor:
    """Return a tensor that counts from zero."""
    return torch.arange(torch.Size(shape).numel(), dtype=dtype).reshape(shape)
