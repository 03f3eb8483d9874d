"""Arguments of the user's own types: what `__cache_signature__` says is the key, and annotations build them."""

# pyright: basic, reportInvalidTypeForm=false
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
import torch

import tilewright.language as pl


class Stream:
    """Where work is queued: nothing that code depends on."""

    def __init__(self, handle: Any = None) -> None:
        if handle is not None and not hasattr(handle, "cuda_stream") and not isinstance(handle, int):
            raise ValueError("a stream is a number, None or a framework's stream")
        self.handle = handle

    def __cache_signature__(self) -> tuple[object, ...]:
        return ()


class FrameworkStream:
    cuda_stream = 7


@dataclass(frozen=True)
class Config:
    factor: float
    note: str = ""

    def __cache_signature__(self) -> tuple[object, ...]:
        return (self.factor,)


@pl.jit
def queued(x: pl.Tensor, stream: Stream, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], [4, 8]) * 2.0, [0, 0], out)
    return out


@pl.jit
def scaled(x: pl.Tensor, config, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], [4, 8]) * config.factor, [0, 0], out)
    return out


@pl.jit
def first(x: pl.Tensor, parts, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], [4, 8]) * parts[0], [0, 0], out)
    return out


def test_a_stream_of_any_kind_is_one_key() -> None:
    x = torch.ones(4, 8)
    for stream in (None, 3, Stream(5), FrameworkStream(), 4):
        assert (queued(x, stream) == 2.0).all()
    assert queued.cache_info().misses == 1


def test_what_cannot_be_built_names_the_parameter() -> None:
    with pytest.raises(TypeError, match="`stream` cannot be made a Stream from 'low'"):
        queued(torch.ones(4, 8), "low")


def test_a_signature_is_the_key_and_nothing_else_is() -> None:
    x, before = torch.ones(4, 8), scaled.cache_info().misses
    for factor, note in [(2.0, "a"), (2.0, "b"), (3.0, "a"), (2.0, "c"), (3.0, "d")]:
        assert (scaled(x, Config(factor, note)) == factor).all()
    assert scaled.cache_info().misses == before + 2


def test_a_type_that_says_nothing_is_refused_by_name() -> None:
    @dataclass
    class Silent:
        factor: float = 2.0

    misses = scaled.cache_info().misses
    with pytest.raises(TypeError, match="`config` is neither a tensor nor a number: got Silent"):
        scaled(torch.ones(4, 8), Silent())
    assert scaled.cache_info().misses == misses


def test_containers_count_by_order_names_and_exact_types() -> None:
    x, before = torch.ones(4, 8), first.cache_info().misses
    for _ in range(2):
        for parts in ((2.0, 3.0), (3.0, 2.0), [2.0, 3.0], (2.0, (3.0,)), {0: 2.0, "b": 1}, {0: 2.0, "c": 1}):
            assert (first(x, parts) == parts[0]).all()
    assert first.cache_info().misses == before + 6
    with pytest.raises(TypeError, match="`parts` is neither a tensor nor a number: got object"):
        first(x, (2.0, {"deep": [object()]}))
