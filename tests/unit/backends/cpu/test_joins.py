"""Joins: tiles side by side go straight to where they are stored, whole rows of them, however many there are."""

from __future__ import annotations

import pytest
import torch

import tilewright.language as pl
from tilewright.errors import ExecutionError


@pl.jit
def joined(x: pl.Tensor, y: pl.Tensor, out: pl.Out[pl.Tensor], rows: int):
    for r in pl.parallel(0, x.shape[0], rows):
        with pl.at(level=pl.Level.CORE_GROUP):
            left, right = pl.load(x, [r, 0], [rows, x.shape[1]]), pl.load(y, [r, 0], [rows, y.shape[1]])
            pl.store(pl.cat([left, right], axis=-1), [r, 0], out)
    return out


@pytest.mark.parametrize("rows", [1, 8, 16])
@pytest.mark.parametrize(("height", "width", "more"), [(1, 100, 100), (33, 30, 7), (50, 257, 64), (16, 5, 1)])
def test_rows_side_by_side_are_those_of_both(height: int, width: int, more: int, rows: int) -> None:
    x, y, out = torch.randn(height, width), torch.randn(height, more), torch.full((height, width + more), 7.0)
    joined(x, y, out, min(rows, height))
    assert torch.equal(out, torch.cat([x, y], 1))


@pl.jit
def rolled(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    for r in pl.parallel(0, x.shape[0], 16):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.roll(pl.load(x, [r, 0], [16, x.shape[1]]), 3), [r, 0], out)
    return out


@pytest.mark.parametrize(("height", "width"), [(17, 30), (40, 129), (100, 777)])
def test_rolled_rows_are_both_ends_the_other_way_round(height: int, width: int) -> None:
    x = torch.randn(height, width)
    assert torch.equal(rolled(x), torch.roll(x, 3, 1))


def test_rows_that_only_one_of_both_has_are_an_error() -> None:
    x, y, out = torch.randn(20, 8), torch.randn(18, 8), torch.zeros(20, 16)
    with pytest.raises(ExecutionError, match="elements that nobody wrote"):
        joined(x, y, out, 16)
