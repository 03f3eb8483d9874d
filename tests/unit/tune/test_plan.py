"""Plans and keys: what authors say about tuning, and what is wrong with it."""

# pyright: basic, reportInvalidTypeForm=false, reportArgumentType=false
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright.language as pl
from tilewright.tune.key import Key, item

ONE = [pl.Config(BLOCK=4)]


@pl.jit
def halve(x: pl.Tensor, n: int, out: pl.Out[pl.Tensor], *, BLOCK: int, WIDE: bool = False):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], [BLOCK, 8]) * 0.5, [0, 0], out)
    return out


def test_a_config_is_a_mapping_that_prints_as_it_is_written() -> None:
    config = pl.Config(BLOCK=4, WIDE=True)
    assert repr(config) == "Config(BLOCK=4, WIDE=True)" and dict(**config) == {"BLOCK": 4, "WIDE": True}
    assert config == pl.Config(WIDE=True, BLOCK=4) and len({config, pl.Config(WIDE=True, BLOCK=4)}) == 1


@pytest.mark.parametrize(
    ("said", "kind", "message"),
    [
        ({"configs": []}, ValueError, "needs a configuration or more"),
        ({"configs": [4]}, TypeError, "takes pl.Config or dicts, got int"),
        ({"configs": [{"BLOK": 4}]}, TypeError, "has no parameter `BLOK`, nor has a RunConfig"),
        ({"configs": [{"BLOCK": 4}, {"WIDE": True}]}, TypeError, "says nothing about `BLOCK`"),
        ({"configs": ONE, "key": "n"}, TypeError, r"key=\['n'\]"),
        ({"configs": ONE, "key": ["m"]}, ValueError, "`m` is no parameter"),
        ({"configs": ONE, "key": ["BLOCK"]}, ValueError, "is what configurations set"),
        ({"configs": ONE, "key": ["x.strides"]}, ValueError, "got 'x.strides'"),
        ({"configs": ONE, "key": ["x.dtype[0]"]}, ValueError, "got 'x.dtype"),
    ],
)
def test_what_does_not_fit_the_kernel_is_said_at_once(said: dict[str, Any], kind: type, message: str) -> None:
    with pytest.raises(kind, match=message):
        pl.autotune(**said)(halve)


def test_it_decorates_kernels_that_calls_start_once() -> None:
    with pytest.raises(TypeError, match="put it above @pl.jit"):
        pl.autotune(ONE)(halve.function)
    with pytest.raises(TypeError, match="which others call"):
        pl.autotune(ONE)(pl.jit.incore(halve.function))
    with pytest.raises(TypeError, match="is tuned already"):
        pl.autotune(ONE)(pl.autotune(ONE)(halve))


def test_a_key_takes_parts_of_arguments() -> None:
    values = {"x": np.zeros((3, 5), np.float32), "n": 7, "out": np.zeros(2, np.int32), "flag": True}
    texts = ["n", "flag", "x.shape[-1]", "x.shape", "x.ndim", "x.dtype", "x", "missing"]
    key = Key([item(text) for text in texts])
    whole = ("fp32", (3, 5))
    assert key.of(values, ["out"]) == ((int, 7), (bool, True), 5, (3, 5), 2, "fp32", whole, None)
    assert Key(None).of(values, ["out"]) == (whole,)
    assert key.axes("x", 2) == {0, 1} and Key([item("x.shape[-1]")]).axes("x", 2) == {1}
    with pytest.raises(TypeError, match=r"needs an axis that `x` has not"):
        Key([item("x.shape[2]")]).of(values, ())
    with pytest.raises(TypeError, match="is of a tensor, and `n` is 7"):
        Key([item("n.shape")]).of(values, ())
