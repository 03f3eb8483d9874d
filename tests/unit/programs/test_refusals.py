"""Refusals while a program runs: each says what to try, and what it says works."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from unit.frontend.texts import in_core, jitted, ramp

from tilewright.errors import ExecutionError
from tilewright.runtime import RunConfig

N = "n = pl.cast(pl.read(ns, [0]), pl.INDEX)\n"
PARAMETERS = "x: pl.Tensor, ns: pl.Tensor, out: pl.Out[pl.Tensor]"


class Case(NamedTuple):
    """A program that is refused, and the same program after it followed the help."""

    refused: str
    message: str
    help: str
    mended: str


CASES = {
    "a ragged tile is reshaped": Case(
        in_core(
            "t = pl.load(x, [0, 0], [8, 8], valid_shape=[n, 8])", "pl.store(pl.reshape(t, [4, 16]), [0, 0], out)"
        ),
        "only a wholly valid value can be reshaped",
        "pl.fillpad(x) fills the rest",
        in_core(
            "t = pl.fillpad(pl.load(x, [0, 0], [8, 8], valid_shape=[n, 8]))",
            "pl.store(pl.reshape(t, [4, 16]), [0, 0], out)",
        ),
    ),
    "a strided tensor is reshaped": Case(
        "v = pl.reshape(x[0:n, 0:4], [2 * n, 2])\n" + in_core("pl.store(pl.load(v, [0, 0], [1, 2]), [0, 0], out)"),
        "strided",
        "pl.load packs a window into a tile",
        in_core("v = pl.reshape(pl.load(x[:, 0:4], [0, 0], [8, 4]), [16, 2])", "pl.store(v, [0, 0], out)"),
    ),
    "a reshape holds another number of elements": Case(
        "v = pl.reshape(x, [n, 8])\n" + in_core("pl.store(pl.load(v, [0, 0], [1, 8]), [0, 0], out)"),
        "cannot be reshaped|different numbers of elements",
        "both shapes hold as many elements",
        "v = pl.reshape(x, [n + 5, 8])\n" + in_core("pl.store(pl.load(v, [0, 0], [1, 8]), [0, 0], out)"),
    ),
    "rows are joined that are not whole": Case(
        in_core(
            "t = pl.load(x, [0, 0], [8, 8], valid_shape=[8, n])", "pl.store(pl.concat(t, t), [0, 0], out)"
        ),
        "elements that nobody wrote",
        "pl.fillpad fills a tile",
        in_core(
            "t = pl.load(x, [0, 0], [8, 8], valid_shape=[8, n])",
            "pl.store(pl.concat(pl.fillpad(t), t), [0, 0], out)",
        ),
    ),
    "a product of which one side is shorter": Case(
        in_core(
            "b = pl.load(x, [0, 0], [8, 8], valid_shape=[n, 8])",
            "pl.store(pl.matmul(pl.load(x, [0, 0], [8, 8]), b), [0, 0], out)",
        ),
        "a matrix product reads data that is not there",
        "pl.fillpad(rhs) fills its rows with zeros",
        in_core(
            "b = pl.fillpad(pl.load(x, [0, 0], [8, 8], valid_shape=[n, 8]))",
            "pl.store(pl.matmul(pl.load(x, [0, 0], [8, 8]), b), [0, 0], out)",
        ),
    ),
    "tensors of different extents are added": Case(
        in_core("y = x + pl.slice(x, [n, 8], [0, 0])", "out[0:1, 0:8] = y[0:1, :]"),
        "operands need shapes that broadcast",
        "pl.slice both to the same extents",
        in_core("y = pl.slice(x, [n, 8], [1, 0]) + pl.slice(x, [n, 8], [0, 0])", "out[0:1, 0:8] = y[0:1, :]"),
    ),
    "a tensor of fewer than no elements": Case(
        in_core("f = pl.full([-n, 8], dtype=pl.FP32, value=1.0)", "pl.store(pl.load(f, [0, 0], [1, 8]), [0, 0], out)"),
        "no tensor can have these extents",
        "extents are zero or more",
        in_core("f = pl.full([n, 8], dtype=pl.FP32, value=1.0)", "pl.store(pl.load(f, [0, 0], [1, 8]), [0, 0], out)"),
    ),
}  # fmt: skip


def called(body: str, target: str) -> None:
    kernel: Any = jitted(N + body, PARAMETERS)
    out = np.zeros((16, 16), np.float32)
    kernel(ramp(8, 8), np.array([3]), out, config=RunConfig(platform=target))
    assert out.any()


@pytest.mark.parametrize("name", CASES)
def test_a_refusal_says_what_to_try(name: str, target: str) -> None:
    case = CASES[name]
    with pytest.raises(ExecutionError, match=case.message) as caught:
        called(case.refused, target)
    assert case.help in caught.value.help
    assert caught.value.place.is_known and caught.value.function


@pytest.mark.parametrize("name", CASES)
def test_what_it_says_works(name: str, target: str) -> None:
    called(CASES[name].mended, target)
