"""Overwritten: which tensors a program fills before it reads them."""

from __future__ import annotations

import numpy as np
import pytest
from unit.passes.texts import function, program

import tilewright.language as pl
from tilewright.passes.overwritten import filled

X = "x: pl.Tensor[[16, 8], pl.FP32]"
PARAMS = f"{X}, y: pl.Out[pl.Tensor[[16, 8], pl.FP32]], n: pl.Scalar[pl.INDEX]"
BLOCK = function(
    "block",
    "t = pl.load(x, [i, 0], [4, 8])\npl.store(t, [i, 0], y)",
    "InCore",
    f"{X}, i: pl.Scalar[pl.INDEX], y: pl.Out[pl.Tensor[[16, 8], pl.FP32]]",
)
LOAD = "t = pl.load(x, [0, 0], [16, 8])\n"


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (LOAD + "pl.store(t, [0, 0], y)", "InCore"),
        (LOAD + "pl.store(t, [0, 0], y)\nu = pl.load(y, [0, 0], [16, 8])", "InCore"),
        ("for i in pl.range(0, 16, 4):\n    t = pl.load(x, [i, 0], [4, 8])\n    pl.store(t, [i, 0], y)", "InCore"),
        ("for i in pl.range(0, 16, 5):\n    t = pl.load(x, [i, 0], [5, 8])\n    pl.store(t, [i, 0], y)", "InCore"),
        ("for i in pl.parallel(0, 16, 4):\n    self.block(x, i, y)", "Orchestration"),
    ],
)
def test_a_tensor_is_filled_by_blocks_that_are_all_of_it(body: str, kind: str) -> None:
    found = program(BLOCK, function("main", body, kind, PARAMS))
    assert filled(found, found["main"]) == [1]


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("t = pl.load(x, [0, 0], [16, 4])\npl.store(t, [0, 0], y)", "InCore"),
        (LOAD + "pl.store(t, [0, 0], y, atomic=pl.AtomicType.Add)", "InCore"),
        ("u = pl.load(y, [0, 0], [16, 8])\npl.store(u, [0, 0], y)", "InCore"),
        (LOAD + "for i in pl.range(n):\n    pl.store(t, [0, 0], y)", "InCore"),
        (LOAD + "if n > 0:\n    pl.store(t, [0, 0], y)", "InCore"),
        ("for i in pl.parallel(0, 16, 8):\n    self.block(x, i, y)", "Orchestration"),
        ("for i in pl.parallel(4, 16, 4):\n    self.block(x, i, y)", "Orchestration"),
        ("for i in pl.parallel(0, n, 4):\n    self.block(x, i, y)", "Orchestration"),
        ("for i in pl.range(n):\n    for j in pl.parallel(0, 16, 4):\n        self.block(x, j, y)", "Orchestration"),
        (
            "for i in pl.range(0, 16, 4):\n    u = pl.load(y, [0, 0], [4, 8])\n    pl.store(u, [i, 0], y)",
            "InCore",
        ),
        (
            "for i in pl.range(0, 16, 4):\n    t = pl.load(x, [i, 0], [4, 8])\n"
            "    if i > n:\n        continue\n    pl.store(t, [i, 0], y)",
            "InCore",
        ),
    ],
)
def test_a_tensor_is_not_filled_where_some_of_it_may_be_left_or_read(body: str, kind: str) -> None:
    found = program(BLOCK, function("main", body, kind, PARAMS))
    assert filled(found, found["main"]) == []


def test_a_new_tensor_that_its_own_loop_reads_first_is_zeros() -> None:
    @pl.jit
    def running(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        held = pl.create_tensor([64, 64], dtype=pl.FP32)
        for i in pl.range(0, 64, 8):
            with pl.at(level=pl.Level.CORE_GROUP):
                before = pl.load(held, [56 - i, 0], [8, 64])
                pl.store(pl.load(x, [i, 0], [8, 64]) + before, [i, 0], held)
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(held, [0, 0], [64, 64]), [0, 0], out)
        return out

    x = np.ones((64, 64), np.float32)
    for _ in range(3):
        assert running(x).sum() == 32 * 64 + 32 * 64 * 2
