"""Methods: kernels of instances, called warm."""

# pyright: basic, reportInvalidTypeForm=false, reportArgumentType=false
from __future__ import annotations

import copy
import gc
import pickle
import weakref
from collections.abc import Callable

import pytest
import torch
from unit.call.warming import (
    ones,
    warm,
)

import tilewright.language as pl

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # torch's own, about sparse and quantized tensors


class Layer:
    def __init__(self, k: float) -> None:
        self.k = k

    @pl.jit
    def run(self, x: pl.Tensor, out: pl.Out[pl.Tensor], n: pl.FP32 = 0.0):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [0, 0], x.shape) * self.k + n, [0, 0], out)
        return out


def test_instances_live_no_longer_than_anybody_needs_them() -> None:
    layer, x, out = Layer(2.0), ones(), torch.zeros(4, 8)
    warm(layer.run, x, out)
    reference, run = weakref.ref(layer), layer.run
    del layer
    gc.collect()
    run(x, out)
    assert reference() is not None
    del run
    gc.collect()
    assert reference() is None


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_a_copy_of_an_instance_has_programs_of_its_own(copied: Callable[[Layer], Layer], dispatch: str) -> None:
    layer, x, out = Layer(2.0), ones(), torch.zeros(4, 8)
    warm(layer.run, x, out)
    other = copied(layer)
    other.k = 3.0
    warm(other.run, x, out)
    assert (out == 3.0).all() and other.run is other.run is not layer.run
    layer.run(x, out)
    assert (out == 2.0).all()


def test_a_method_is_called_by_its_class_too(dispatch: str) -> None:
    layer, x, out = Layer(2.0), ones(), torch.zeros(4, 8)
    for _ in range(4):
        Layer.run(layer, x, out, n=1.0)
        assert (out == 3.0).all()
    assert (Layer.run(layer, x) == 2.0).all()


def test_instances_have_programs_of_their_own(dispatch: str) -> None:
    first, second, x, out = Layer(2.0), Layer(3.0), ones(), torch.zeros(4, 8)
    for layer in (first, second, first):
        warm(layer.run, x, out)
        assert (out == layer.k).all() and (layer.run(x) == layer.k).all()
        assert (layer.run(n=2.0, x=x) == layer.k + 2.0).all()
    misses = second.run.cache_info().misses
    first.k = 5.0
    warm(first.run, x, out)
    assert (out == 5.0).all()
    second.run(x, out)
    assert (out == 3.0).all() and second.run.cache_info().misses == misses
    first.k = 2.0
    first.run(x, out)
    assert (out == 2.0).all()
