"""Copies and pickles: kernels as Python's functions are, programs as they are saved."""

# pyright: reportUnknownParameterType=false
from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tilewright.language as pl
from tilewright import pto
from tilewright.runtime import RunConfig

X: Any = np.ones((8, 16), np.float32)


@pl.jit
def double(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], x.shape) * 2.0, [0, 0], out)
    return out


@pl.jit
def times(x: pl.Tensor, factor: float, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], x.shape) * factor, [0, 0], out)
    return out


class Scale:
    def __init__(self, factor: float) -> None:
        self.factor = factor

    @pl.jit
    def run(self, x: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [0, 0], x.shape) * self.factor, [0, 0], out)
        return out


@pto.jit()
def negate(x: pto.ptr(pto.f32, "gm"), out: pto.ptr(pto.f32, "gm")):
    tile = pto.alloc_tile(shape=[8, 16], dtype=pto.f32)
    view = pto.make_tensor_view(x, shape=[8, 16], strides=[16, 1])
    pto.tile.load(pto.partition_view(view, offsets=[0, 0], sizes=[8, 16]), tile)
    pto.tile.muls(tile, -1.0, tile)
    written = pto.make_tensor_view(out, shape=[8, 16], strides=[16, 1])
    pto.tile.store(tile, pto.partition_view(written, offsets=[0, 0], sizes=[8, 16]))


def pickled(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


COPIES: dict[str, Callable[[Any], Any]] = {"copy": copy.copy, "deepcopy": copy.deepcopy, "pickle": pickled}


def negated(kernel: Any) -> Any:
    out = np.zeros_like(X)
    kernel[1, None](X, out)
    return out


@pytest.mark.parametrize("calls", [0, 1, 6])
@pytest.mark.parametrize("way", COPIES)
def test_a_kernel_is_itself(way: str, calls: int) -> None:
    for _ in range(calls):
        double(X)
        negated(negate)
    assert COPIES[way](double) is double and COPIES[way]([double])[0] is double
    assert COPIES[way](negate) is negate
    assert (COPIES[way](double)(X) == 2).all() and (negated(COPIES[way](negate)) == -1).all()


@pytest.mark.parametrize("calls", [0, 6])
@pytest.mark.parametrize("way", ["deepcopy", "pickle"])
def test_a_method_is_that_of_a_copy_of_its_instance(way: str, calls: int) -> None:
    held = Scale(3.0)
    for _ in range(calls):
        held.run(X)
    run, both = COPIES[way](held.run), COPIES[way]([held, held.run])
    held.factor = 5.0
    assert (run(X) == 3).all() and (both[1](X) == 3).all() and (held.run(X) == 5).all()
    both[0].factor = 7.0
    assert (both[1](X) == 7).all()


def test_a_kernel_that_nobody_finds_by_its_name_is_not_pickled() -> None:
    @pl.jit
    def inside(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [0, 0], x.shape), [0, 0], out)
        return out

    assert copy.deepcopy(inside) is inside
    with pytest.raises((AttributeError, pickle.PicklingError), match="inside"):
        pickle.dumps(inside)


@pytest.mark.parametrize("calls", [0, 6])
def test_a_program_is_itself_and_pickled_as_it_is_saved(calls: int) -> None:
    program, fixed = double.compile(X), times.compile(X, 3.0)
    for _ in range(calls):
        program(X)
        fixed(X, 3.0)
    assert copy.copy(program) is copy.deepcopy(program) is program
    again, other = pickled(program), pickled(fixed)
    assert again is not program and (again(X) == 2).all() and again.platform == program.platform
    assert (other(X, 3.0) == 3).all()
    with pytest.raises(ValueError, match="compiled for that value"):
        other(X, 4.0)


def test_what_cannot_be_pickled_says_what_to_pickle() -> None:
    interpreted = double.compile(X, config=RunConfig(platform="interpret"))
    with pytest.raises(TypeError, match="runs on the interpreter; pickle its kernel"):
        pickle.dumps(interpreted)
    with pytest.raises(TypeError, match="pickle the kernel `negate` itself"):
        pickle.dumps(negate.compile())
    assert copy.deepcopy(negate.compile()) is negate.compile() and copy.deepcopy(interpreted) is interpreted
