"""Grids of products: native code in the machine's tiles leaves what the interpreter leaves in those of the program."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import numpy as np
import pytest
from property.product_grids import check_grid, grid, in_deep_tiles, in_narrow_tiles

import tilewright.language as pl
from tilewright import ir
from tilewright.errors import ExecutionError
from tilewright.passes.widen import widened
from tilewright.runtime import RunConfig


@pytest.mark.parametrize("number", range(12))
def test_products_are_the_same_in_other_tiles(number: int) -> None:
    check_grid(grid(Random(f"grid {number}").randint), f"grid {number}")


@pytest.mark.parametrize("number", range(16))
def test_few_rows_meet_those_of_weights_as_they_lie(number: int) -> None:
    text = grid(Random(f"turned {number}").randint, deepest=150, turned_few=True)
    check_grid(text, f"turned {number}", in_deep_tiles)


@pytest.mark.parametrize("number", [*range(8), 161, 162, 122, 129])
def test_products_are_the_same_in_fewer_columns(number: int) -> None:
    check_grid(grid(Random(f"narrow {number}").randint), f"narrow {number}", in_narrow_tiles)


@pytest.mark.parametrize("number", range(12))
def test_products_are_the_same_on_matrix_tiles(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_AMX", "emulated")
    text = grid(Random(f"tiles {number}").randint, ("BF16", "INT8", "UINT8"), deepest=200)
    check_grid(text, f"tiles {number}", in_deep_tiles)


EMPTY = """
import tilewright.language as pl
M, K = pl.dynamic("M"), pl.dynamic("K")
@pl.program
class P:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, a: pl.Tensor[[{m}, {k}], pl.FP32], b: pl.Tensor[[{k}, 33], pl.FP32], n: pl.Scalar[pl.INDEX],
             c: pl.InOut[pl.Tensor[[{m}, 33], pl.FP32]]):
        for i in pl.parallel(0, {m}, 16):
            for j in pl.parallel(0, 33, {by}):
                with pl.at(level=pl.Level.CORE_GROUP):
                    acc = pl.tile.full([16, {by}], dtype=pl.FP32, value=0.0)
                    for k in pl.range(0, {stop}, 16):
                        acc = pl.matmul_acc(acc, pl.load(a, [i, k], [16, 16]), pl.load(b, [k, j], [16, {by}]))
                    pl.store(acc, [i, j], c)
"""


@pytest.mark.parametrize(("m", "k", "stop", "by"), [("40", "K", "K", 11), ("32", "K", "K", 11), ("M", "64", "n", 16)])
def test_sums_of_no_products_are_as_large_as_somebody_said(m: str, k: str, stop: str, by: int) -> None:
    program = pl.parse(EMPTY.format(m=m, k=k, stop=stop, by=by))
    compiled = [ir.compile(program, platform=platform) for platform in ("interpret", "cpu")]
    for rows, depth, n in ((32, 0, 0), (40, 0, 0), (40, 32, 32), (32, 48, 48)):
        if m in ("M", str(rows)):
            shape = rows, 64 if k == "64" else depth
            assert len({_left(each, shape, n) for each in compiled}) == 1


def _left(run: Callable[..., object], shape: tuple[int, int], n: int) -> str:
    """Return what is left in the output, or what is wrong."""
    a, b, c = np.ones(shape, np.float32), np.ones((shape[1], 33), np.float32), np.full((shape[0], 33), 7, np.float32)
    try:
        run(a, b, n, c)
    except ExecutionError as error:
        return str(error)
    return str(c.tolist())


@pl.jit
def all_but_the_first(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):  # pyright: ignore[reportUnknownParameterType]
    for i in pl.parallel(0, a.shape[0], 16):
        with pl.at(level=pl.Level.CORE_GROUP):
            acc = pl.zeros([16, 16], dtype=pl.FP32)
            for k in pl.range(0, a.shape[1], 16):
                if k != 0:
                    acc += pl.load(a, [i, k], [16, 16]) @ pl.load(b, [k, 0], [16, 16])
            out = pl.store(acc, [i, 0], out)
    return out


@pytest.mark.parametrize("platform", ["interpret", "cpu"])
def test_a_turn_that_adds_nothing_leaves_a_sum_as_it_was_made(platform: str) -> None:
    a, b, out = np.ones((20, 40), np.float32), np.ones((40, 16), np.float32), np.zeros((20, 16), np.float32)
    all_but_the_first(a, b, out, config=RunConfig(platform=platform))
    assert (out == 24).all()


FIRST = "acc = pl.matmul(pl.load(a, [i, 0], [16, 8]), pl.load(b, [0, j], [8, 16]))"
ZEROS = "acc = pl.tile.full([16, 16], dtype=pl.FP32, value=0.0)"
TERM = "acc = pl.matmul_acc(acc, pl.load(a, [i, k], [16, 8]), pl.load(b, [k, j], [8, 16]){})"
LOOP, BEGUN = "for k in pl.range({}, 40, 8):", ", init_cond=k == 0"
SPELLINGS = {
    "what was multiplied first once more": [FIRST, LOOP.format(8), f"    {TERM.format('')}", "k = 0", TERM.format("")],
    "two terms a turn": [FIRST, LOOP.format(8), *[f"    {TERM.format('')}"] * 2],
    "the first product stored as well": [FIRST, "pl.store(acc, [i, j], d)", LOOP.format(8), f"    {TERM.format('')}"],
    "the first product added in each turn": [
        FIRST,
        "first = acc",
        LOOP.format(8),
        f"    {TERM.format('')}",
        "    acc = acc + first",
    ],
    "a product that stays, added in each turn": [
        ZEROS,
        LOOP.format(0),
        f"    {TERM.format('')}",
        "    acc = acc + pl.matmul(pl.load(a, [i, 8], [16, 8]), pl.load(b, [8, j], [8, 16]))",
    ],
    "a second term that begins anew": [ZEROS, LOOP.format(0), *[f"    {TERM.format(BEGUN)}"] * 2],
}
"""Sums of which the first product stands for less than what a longer one would take in."""


@pytest.mark.parametrize("lines", SPELLINGS.values(), ids=SPELLINGS)
def test_first_products_stand_for_what_they_multiply_alone(lines: list[str]) -> None:
    body = "\n".join(f"                    {line}" for line in [*lines, "pl.store(acc, [i, j], c)"])
    text = f"""
import tilewright.language as pl
@pl.program
class P:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, a: pl.Tensor[[32, 40], pl.FP32], b: pl.Tensor[[40, 48], pl.FP32],
             c: pl.InOut[pl.Tensor[[32, 48], pl.FP32]], d: pl.InOut[pl.Tensor[[32, 48], pl.FP32]]):
        for i in pl.parallel(0, 32, 16):
            for j in pl.parallel(0, 48, 16):
                with pl.at(level=pl.Level.CORE_GROUP):
{body}
"""
    check_grid(text, "a sum")
    check_grid(text, "a sum", in_deep_tiles)


@pytest.mark.parametrize("rows", ["5", "M"])
def test_integers_that_few_rows_meet_begin_sums_as_they_are(rows: str) -> None:
    text = f"""
import tilewright.language as pl
M = pl.dynamic("M")
@pl.program
class P:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, a: pl.Tensor[[{rows}, 64], pl.FP32], b: pl.Tensor[[64, 64], pl.INT8],
             c: pl.InOut[pl.Tensor[[{rows}, 64], pl.FP32]]):
        for i in pl.parallel(0, {rows}, 5):
            for j in pl.parallel(0, 64, 32):
                with pl.at(level=pl.Level.CORE_GROUP):
                    acc = pl.tile.full([5, 32], dtype=pl.FP32, value=0.0)
                    for k in pl.range(0, 64, 32):
                        w = pl.cast(pl.load(b, [k, j], [32, 32]), pl.FP32)
                        acc = pl.matmul_acc(acc, pl.load(a, [i, k], [5, 32]), w)
                    pl.store(acc, [i, j], c)
"""
    check_grid(text, "few rows", widened)
