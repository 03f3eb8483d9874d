"""Fold steps: attention takes tiles that suit the machine, unless its loop depends on its own."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import tilewright.language as pl
from tilewright.core.expr import integer
from tilewright.frontend.programs import as_program
from tilewright.passes.manager import PassManager
from tilewright.passes.product_grids import Wanted
from tilewright.passes.spans import Span
from tilewright.passes.widen import widened
from tilewright.runtime import RunConfig

BOTH = "i by 64 instead of 32, k by 64 instead of 32"
HIDDEN = "scores = pl.where(pl.arange(k, k + 32) <= place, scores, float('-inf'))"


def notes(*more: str, stop: str = "256", first: str = "-1e30", rows: str = "256") -> str:
    """Return what was changed about attention, with statements before the maximum of a block."""
    before = "\n                    ".join(more or ["pass"])
    text = f"""
import tilewright.language as pl
M = pl.dynamic("M")
@pl.program
class P:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, q: pl.Tensor[[{rows}, 64], pl.FP32], a: pl.Tensor[[256, 64], pl.FP32],
             b: pl.Tensor[[256, 64], pl.FP32], c: pl.InOut[pl.Tensor[[{rows}, 64], pl.FP32]]):
        for i in pl.parallel(0, {rows}, 32):
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="tile"):
                queries = pl.load(q, [i, 0], [32, 64])
                place = pl.iota([32, 1], axis=0) + i
                best = pl.tile.full([32, 1], dtype=pl.FP32, value={first})
                total = pl.tile.full([32, 1], dtype=pl.FP32, value=0.0)
                average = pl.tile.full([32, 64], dtype=pl.FP32, value=0.0)
                for k in pl.range(0, {stop}, 32):
                    scores = pl.matmul(queries, pl.load(a, [k, 0], [32, 64]).T)
                    {before}
                    largest = pl.maximum(best, pl.row_max(scores))
                    weights, kept = pl.exp(scores - largest), pl.exp(best - largest)
                    total = total * kept + pl.row_sum(weights)
                    average = average * kept + pl.matmul(weights, pl.load(b, [k, 0], [32, 64]))
                    best = largest
                pl.store(average / total, [i, 0], c)
""".replace("                    pass\n", "")
    program = PassManager.get_strategy().run_passes(as_program(pl.parse(text)))
    return str(widened(program, Wanted())).strip().removeprefix("tile: ")


@pytest.mark.parametrize("stmts", [[], ["scores = scores * 0.125"], [HIDDEN]])
def test_rows_and_keys_are_chosen_for_the_machine(stmts: list[str]) -> None:
    assert notes(*stmts) == BOTH


@pytest.mark.parametrize("stop", ["i + 32", "pl.min(i + 32, 256)"])
def test_a_loop_that_ends_with_its_rows_keeps_them_though_a_mask_hides_the_rest(stop: str) -> None:
    assert notes(HIDDEN, stop=stop).startswith("every tile")


@pytest.mark.parametrize(("rows", "pieces"), [(2, 64), (5, 60), (8, 64)])
def test_a_loop_in_small_steps_that_ends_with_its_rows_takes_large_ones_first(rows: int, pieces: int) -> None:
    q, out = np.zeros((2, 2, 120, 16), np.float32)
    compiled = attention.compile(q, q, q, out, True, rows)
    assert f"first by {pieces} instead of {rows}" in compiled.stages["tiles"]


@pytest.mark.parametrize(
    "stmt",
    [
        "scores = scores - pl.row_max(scores)",
        "scores = scores * pl.row_sum(scores)",
        "scores = scores + best",
        "scores = scores + pl.cast(k, pl.FP32)",
        "scores = scores + pl.cast(pl.iota([1, 32]), pl.FP32)",
        "best = best * 0.5",
    ],
)
def test_what_depends_on_its_block_keeps_it(stmt: str) -> None:
    assert " k by" not in notes(stmt)


def test_a_maximum_that_begins_with_no_number_stays_in_its_blocks() -> None:
    assert notes(first="float('-inf')").startswith("every tile")


def test_rows_that_only_calls_know_stay_as_they_are() -> None:
    assert " i by" not in f" {notes(rows='M')}"


@pl.jit
def attention(  # pyright: ignore[reportUnknownParameterType]
    q: pl.Tensor, k: pl.Tensor, v: pl.Tensor, out: pl.Out[pl.Tensor], causal: bool, rows: int
):
    for head in pl.parallel(q.shape[0]):
        for row in pl.parallel(0, q.shape[1], rows):
            with pl.at(level=pl.Level.CORE_GROUP):
                place = pl.iota([rows, 1], axis=0) + row
                queries = pl.load(q[head], [row, 0], [rows, q.shape[2]])
                best = pl.tile.full([rows, 1], dtype=pl.FP32, value=-1e30)
                total = pl.tile.full([rows, 1], dtype=pl.FP32, value=0.0)
                average = pl.tile.full([rows, q.shape[2]], dtype=pl.FP32, value=0.0)
                for first in pl.range(0, row + rows if causal else q.shape[1], rows):
                    scores = queries @ pl.load(k[head], [first, 0], [rows, q.shape[2]]).T * 0.25
                    if causal:
                        scores = pl.where(pl.arange(first, first + rows) <= place, scores, float("-inf"))
                    highest = pl.maximum(best, pl.max(scores, axis=-1, keepdims=True))
                    weights, kept = pl.exp(scores - highest), pl.exp(best - highest)
                    total = total * kept + pl.sum(weights, axis=-1, keepdims=True)
                    average = average * kept + weights @ pl.load(v[head], [first, 0], [rows, q.shape[2]])
                    best = highest
                out = pl.store(average / total, [head, row, 0], out)
    return out


LENGTHS = [(150, 48), (128, 32), (96, 8), (84, 4), (150, 5), (67, 1), (100, 30), (65, 64), (1, 64), (3, 16)]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("length", "rows"), LENGTHS)
def test_attention_is_what_it_was_in_tiles_that_leave_a_rest(length: int, rows: int, causal: bool) -> None:
    q, k, v = np.random.default_rng(0).standard_normal((3, 2, length, 16), np.float32)
    ours, meant = np.zeros((2, 2, length, 16), np.float32)
    attention(q, k, v, ours, causal, rows)
    attention(q, k, v, meant, causal, rows, config=RunConfig(platform="interpret"))
    np.testing.assert_allclose(ours, meant, 1e-4, 1e-5)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("value", [np.inf, np.nan])
@pytest.mark.parametrize("rows", [4, 8, 16, 32, 48, 128])
def test_what_is_no_number_reaches_the_rows_that_the_kernel_multiplies_it_with(
    rows: int, value: float, causal: bool
) -> None:
    """A hidden weight is zero, and zero times infinity is no number: which rows meet it is the kernel's to say."""
    q, k, v = np.random.default_rng(0).standard_normal((3, 2, 256, 16), np.float32)
    k[0, 100], v[0, 40], v[1, 107, 3] = value, value, value
    ours, meant = np.zeros((2, 2, 256, 16), np.float32)
    attention(q, k, v, ours, causal, rows)
    attention(q, k, v, meant, causal, rows, config=RunConfig(platform="interpret"))
    assert (np.isfinite(ours) == np.isfinite(meant)).all()
    np.testing.assert_allclose(ours[np.isfinite(meant)], meant[np.isfinite(meant)], 1e-4, 1e-5)


@pl.jit
def decoding(  # pyright: ignore[reportUnknownParameterType]
    q: pl.Tensor, k: pl.Tensor, v: pl.Tensor, out: pl.Out[pl.Tensor], rows: int, valid: int
):
    for head in pl.parallel(q.shape[0]):
        for row in pl.parallel(0, q.shape[1], rows):
            with pl.at(level=pl.Level.CORE_GROUP):
                there = [valid, q.shape[2]] if valid else None
                queries = pl.load(q[head], [row, 0], [rows, q.shape[2]], valid_shape=there)
                best = pl.tile.full([rows, 1], dtype=pl.FP32, value=-1e30)
                total = pl.tile.full([rows, 1], dtype=pl.FP32, value=0.0)
                average = pl.tile.full([rows, q.shape[2]], dtype=pl.FP32, value=0.0)
                for first in pl.range(0, k.shape[1], 64):
                    keys = pl.load(k[head], [first, 0], [64, q.shape[2]])
                    values = pl.load(v[head], [first, 0], [64, q.shape[2]])
                    scores = pl.matmul(queries, keys.T) * 0.25
                    highest = pl.maximum(best, pl.row_max(scores))
                    weights, kept = pl.exp(scores - highest), pl.exp(best - highest)
                    total = total * kept + pl.row_sum(weights)
                    average = average * kept + pl.cast(weights, v.dtype) @ values
                    best = highest
                out = pl.store(average / total, [head, row, 0], out)
    return out


def decoded(
    queries: int, rows: int, valid: int, dtype: torch.dtype = torch.float32
) -> tuple[torch.Tensor, torch.Tensor, str]:
    """Return attention of a few queries to 128 keys, natively and interpreted, and what became of the tiles."""
    draw = np.random.default_rng(queries)
    shapes = [(2, length, 32) for length in (queries, 128, 128)]
    drawn = [draw.standard_normal(shape, np.float32) for shape in shapes]
    q, k, v = (torch.from_numpy(each).to(dtype) for each in drawn)  # pyright: ignore[reportUnknownMemberType]
    ours, meant = torch.zeros(2, 2, queries, 32)
    decoding(q, k, v, ours, rows, valid)
    decoding(q, k, v, meant, rows, valid, config=RunConfig(platform="interpret"))
    return ours, meant, decoding.compile(q, k, v, ours, rows, valid).stages["llvm"]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(
    ("queries", "rows", "valid"), [(1, 64, 0), (1, 16, 0), (5, 64, 0), (17, 64, 0), (1, 64, 1), (5, 64, 5), (9, 16, 9)]
)
def test_few_queries_in_a_tile_of_many_are_those_alone(queries: int, rows: int, valid: int, dtype: torch.dtype) -> None:
    ours, meant, text = decoded(queries, rows, valid, dtype)
    tolerance = 1e-5 if dtype == torch.float32 else 1e-2
    torch.testing.assert_close(ours, meant, rtol=tolerance, atol=tolerance)
    assert (".turned" in text) == (queries > 16), "the keys are turned only for many queries"


@pytest.mark.parametrize(("length", "step"), [(65, 80), (100, 112), (129, 48), (96, 48), (1000, 64)])
def test_rows_are_cut_so_that_few_of_a_tile_are_not_there(length: int, step: int) -> None:
    span = Span(0, integer(length), 64, length, exact=False)
    assert span.fuller(64, 16) == step
