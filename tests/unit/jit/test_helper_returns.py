"""Helpers that return early: where a condition that is known while compiling says so."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright.language as pl
from tilewright.errors import RecursiveCallError, UnsupportedFeatureError

X = np.full((4, 8), 1.5, np.float32)


@pl.jit.inline
def activated(t: pl.Tile, mode: str):
    if mode == "none":
        return t
    if mode == "pair":
        for count in (1, 2):
            if count == 2:
                return t * 4.0
            t = t + 1.0
    else:
        return -t
    return t


@pl.jit.inline
def doubled(t: pl.Tile, times: int):
    if times == 0:
        return t
    return doubled(t * 2.0, times - 1)


@pl.jit.inline
def endless(t: pl.Tile, times: int):
    if times == 0:
        return t
    return endless(t, times + 1)


@pl.jit.inline
def chosen(t: pl.Tile, number: pl.Scalar):
    if number > 0.0:
        return t
    return -t


def kernel_of(helper: Any, given: Any) -> Any:
    @pl.jit
    def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [0, 0], x.shape)
            r = helper(t, given)
            pl.store(r + pl.read(x, [0, 0]), [0, 0], out)
        return out

    return kernel


@pytest.mark.parametrize(("mode", "expected"), [("none", 3.0), ("pair", 11.5), ("other", 0.0)])
def test_a_known_condition_ends_a_helper(mode: str, expected: float) -> None:
    np.testing.assert_array_equal(kernel_of(activated, mode)(X), np.full_like(X, expected))


@pytest.mark.parametrize("times", [0, 1, 20])
def test_a_known_number_ends_a_helper_that_calls_itself(times: int) -> None:
    np.testing.assert_array_equal(kernel_of(doubled, times)(X), np.full_like(X, 1.5 * 2.0**times + 1.5))


def test_what_no_number_ends_is_refused() -> None:
    with pytest.raises(RecursiveCallError, match="`endless` calls itself 32 times over") as caught:
        kernel_of(endless, 1)(X)
    assert "called from" not in str(caught.value)


def test_the_running_program_cannot_decide_where_a_helper_ends() -> None:
    @pl.jit
    def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(chosen(pl.load(x, [0, 0], x.shape), pl.read(x, [0, 0])), [0, 0], out)
        return out

    with pytest.raises(UnsupportedFeatureError, match="`chosen` returns in a block"):
        kernel(X)
