"""The generated way in, for processes that cannot run the native one: the same calls, found in a dict."""

# pyright: basic, reportInvalidTypeForm=false, reportPrivateUsage=false
from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from unit.jit.test_fast_path import LAYOUTS, freed, made, ones, took

import tilewright.language as pl
from tilewright import errors


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TILEWRIGHT_DISPATCH", "python")
    yield


def warm(kernel: Any, *args: Any) -> None:
    """Call a kernel until generated code takes such calls."""
    for _ in range(3):
        kernel(*args)
    assert isinstance(type(kernel).__call__, types.FunctionType) and took(kernel, *args)


@pytest.mark.parametrize("name", LAYOUTS)
def test_any_layout_that_comes_first_gives_the_same(name: str) -> None:
    kernel = made("global_")
    for _ in range(5):
        out = torch.zeros(4, 8)
        with torch.no_grad():
            kernel(LAYOUTS[name][0](), out)
        assert (out == 2.0).all()
    dense = torch.arange(32.0).reshape(4, 8)
    for _ in range(5):
        kernel(dense, out)
        assert torch.equal(out, 2.0 * dense)


@pytest.mark.parametrize("name", ["broadcast rows", "overlapping rows", "one that requires grad"])
def test_an_output_that_must_not_be_written_is_refused_at_every_call(name: str) -> None:
    kernel, out = made("global_"), LAYOUTS[name][0]()
    if "grad" in name:
        with torch.no_grad():
            for _ in range(5):
                kernel(ones(4, 8), out)
    for _ in range(5):
        with pytest.raises(ValueError, match="`out` (is written, but|requires grad)"):
            kernel(ones(4, 8), out)


@pl.jit
def scale(x: pl.Tensor, n: pl.FP32, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], x.shape) * n, [0, 0], out)
    return out


def test_zeros_are_told_apart_whatever_came_first() -> None:
    x, out = ones(4, 8), torch.zeros(4, 8)
    warm(scale, x, 2, out)
    for value in (0.0, -0.0, 2.0, 2) * 3:
        scale(x, value, out)
        assert torch.equal(out.view(torch.int32), torch.full((4, 8), float(value)).view(torch.int32))


@pl.jit
def odd(args: pl.Tensor, run: pl.Tensor, slow: pl.FP32, words: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(args, [0, 0], [4, 8]) + pl.load(run, [0, 0], [4, 8]) * slow, [0, 0], words)
    return words


def test_parameters_may_be_called_anything() -> None:
    out = torch.zeros(4, 8)
    warm(odd, ones(4, 8), ones(4, 8), 2.0, out)
    odd(slow=3.0, words=out, run=ones(4, 8), args=ones(4, 8))
    assert (out == 4.0).all()


def test_memory_that_was_freed_or_shrunk_is_noticed() -> None:
    kernel, x, out = made("global_"), ones(4, 8), torch.zeros(4, 8)
    warm(kernel, x, out)
    for size in (0, 64):
        with pytest.raises(ValueError, match="`x` has no memory"):
            kernel(freed(ones(4, 8), size), out)


def test_drift_overlap_and_threads_are_noticed() -> None:
    kernel, x, out = made("global_"), ones(4, 8), torch.zeros(4, 8)
    warm(kernel, x, out)
    with pytest.raises(ValueError, match="shares memory"):
        kernel(x, x)
    kernel.function.__globals__["K"] = 3.0
    with pytest.raises(errors.DriftError, match="global `K`"):
        kernel(x, out)
    kernel.function.__globals__["K"] = 2.0
    warm(kernel, x, out)
    before = torch.get_num_threads()
    torch.set_num_threads(before + 1)
    try:
        assert not took(kernel, x, out)
        warm(kernel, x, out)
    finally:
        torch.set_num_threads(before)


def test_a_call_that_raises_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, x, out = made("global_"), ones(4, 8), torch.zeros(4, 8)
    warm(kernel, x, out)
    calls: list[Any] = []

    def run(*args: Any) -> Any:
        calls.append(args)
        raise TypeError("once")

    monkeypatch.setattr(type(kernel._session), "run", run)
    with pytest.raises(TypeError, match="once"):
        kernel(ones(3, 8), torch.zeros(3, 8))
    assert len(calls) == 1


def test_arrays_are_taken_too() -> None:
    kernel, x, out = made("global_"), np.ones((4, 8), np.float32), np.zeros((4, 8), np.float32)
    warm(kernel, x, out)
    assert (out == 2.0).all()
    out.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        kernel(x, out)
