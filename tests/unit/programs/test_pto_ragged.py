"""Tiles that are ragged along many axes, and lines along axes in the middle, as PTO text: they give every bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from property.exported import run_exported

import tilewright.language as pl
from tilewright import ir
from tilewright.core.program import Program
from tilewright.errors import ExecutionError
from tilewright.programs.pto_text.export import as_pto

TILE = "x, [0, 0, 0], [3, 6, 8]"
"""Of three matrices of six rows and eight columns."""
OPEN = f"pl.load({TILE}, valid_shape=[a, b, c])"
KNOWN = f"pl.load({TILE}, valid_shape=[2, 5, 7])"
WHOLE = f"pl.load({TILE})"
EXTENTS = {OPEN: [(3, 6, 8), (2, 4, 5), (1, 1, 1), (3, 0, 4)], KNOWN: [(2, 5, 7)], WHOLE: [(3, 6, 8)]}


def computing(formula: str, tile: str, before: str = "") -> Program:
    """Return the program that writes what a formula makes of a tile `t`, of all that it is cut out of, a row of each
    matrix, a column, and places in the tile and along its first axis.
    """
    lines = [
        "@pl.program",
        "class P:",
        "    @pl.function(type=pl.FunctionType.InCore)",
        "    def main(self, x: pl.Tensor[[3, 6, 8], pl.FP32], a: pl.Scalar[pl.INDEX], b: pl.Scalar[pl.INDEX],",
        "             c: pl.Scalar[pl.INDEX], i: pl.Tensor[[3, 6, 8], pl.INT32], j: pl.Tensor[[1, 4], pl.INT32],",
        "             out: pl.InOut[pl.Tensor[[8, 12, 12], pl.FP32]]):",
        f"        t, whole, near = {tile}, {WHOLE}, {tile.replace('(x', '(i')}",
        "        some = pl.load(j, [0, 0], [1, 4])",
        f"        row = {tile.replace('[3, 6, 8]', '[3, 1, 8]').replace('b, c', '1, c').replace('5, 7', '1, 7')}",
        f"        column = {tile.replace('[3, 6, 8]', '[3, 6, 1]').replace('b, c', 'b, 1').replace('5, 7', '5, 1')}",
        *(f"        {line}" for line in before.splitlines()),
        f"        return {formula if formula.startswith('pl.store') else f'pl.store({formula}, [0, 0, 0], out)'}",
    ]
    program = pl.parse("\n".join(lines))
    assert isinstance(program, Program)
    return program


def numbers() -> Any:
    return np.random.default_rng(3).integers(-9, 10, (3, 6, 8)).astype(np.float32)


def places(a: int, b: int, c: int) -> list[Any]:
    """Return numbers of elements in the valid part of a tile, and along its first axis."""
    rng = np.random.default_rng(4)
    at = [rng.integers(max(extent, 1), size=(3, 6, 8)) for extent in (a, b, c)]
    return [np.ravel_multi_index(tuple(at), (3, 6, 8)).astype(np.int32), at[0][0, :1, :4].astype(np.int32)]


def check(formula: str, tile: str, before: str = "") -> None:
    program = computing(formula, tile, before)
    text = as_pto(program)
    for extents in EXTENTS[tile]:
        wanted, found = (np.zeros((8, 12, 12), np.float32) for _ in range(2))
        try:
            ir.compile(program, platform="interpret")(numbers(), *extents, *places(*extents), wanted)
        except ExecutionError:
            assert 0 in extents  # a place in what is empty, say, is an error of the program
            continue
        for platform in ("interpret", "cpu") if tile == OPEN else ("interpret",):
            found[:] = 0
            run_exported(text, "main", [numbers(), *extents, *places(*extents), found], {}, platform)
            np.testing.assert_array_equal(found, wanted, f"{extents} on {platform} of\n{text}")


FORMULAS = [
    "pl.abs(t) + t * 2.0",
    "t + row",
    "t - column",
    "pl.where(t > row, t, row)",
    "pl.col_sum(t)",
    "pl.col_expand_mul(t > 0.0, pl.col_max(t))",
    "pl.col_max(t)",
    "pl.row_sum(t)",
    "pl.row_expand_sub(t, pl.row_max(t))",
    "pl.col_expand_div(t, pl.col_max(t) + 20.0)",
    "pl.col_expand(t, row)",
    "pl.cast(pl.col_argmax(t, t), pl.FP32)",
    "pl.cast(pl.row_argmin(t, t), pl.FP32)",
    "pl.transpose(t, 1, 2)",
    "pl.transpose(t, 0, 1)",
    "pl.transpose(pl.transpose(t, 0, 2), 0, 1)",
    "t @ pl.transpose(t, 1, 2)",
    "pl.transpose(t, 1, 2) @ t + 1.0",
    "pl.fillpad(t, pad_value=pl.PadValue.max)",
    "pl.fillpad_expand(t, [4, 9, 10])",
    "pl.tile.fillpad_inplace(t) + 1.0",
    "pl.cumsum(t, axis=2)",
    "pl.cumsum(t, axis=1)",
    "pl.cummax(t, axis=0)",
    "pl.cummin(t, axis=-2, reverse=True)",
    "pl.sort(t, axis=-1)",
    "pl.sort(t, axis=1)",
    "pl.cast(pl.argsort(t, axis=1, descending=True), pl.FP32)",
    "pl.flip(t, axis=1)",
    "pl.flip(t, axis=(0, 2))",
    "pl.flip(t)",
    "pl.tile.strided(t, [1, 2, 3])",
    "pl.tile.strided(t, [2, 1, 1])",
    "pl.slice(t, [2, 3, 8], [0, 0, 0])",
    "pl.slice(t, [2, 3, 4], [0, 1, 2], valid_shape=[2, 2, 3])",
    "pl.slice(t, [1, 3, 4], [0, 1, 2], drop_dims=[0])",
    "pl.slice(t, [3, 1, 4], [0, 0, 0], drop_dims=[1])",
    "pl.slice(t, [3, 6, 1], [0, 0, 0], drop_dims=[2])",
    "pl.slice(pl.exp(t), [3, 6, 1], [0, 0, 0]) + column",
    "pl.maximum(pl.col_sum(pl.abs(t) + row), row)",
    "pl.tile.gather(t, near)",
    "pl.tile.gather(whole, near) + t",
    "pl.tile.gather(t, pl.load(i, [0, 0, 0], [3, 6, 8]))",
    "pl.tile.gather(t, pl.load(i, [0, 0, 0], [1, 6, 8]))",
    "pl.tile.pick(t, some) * 2.0",
    "pl.tile.pick(pl.transpose(t, 0, 2), some, axis=-1)",
    "pl.part_add(whole, t)",
    "pl.part_mul(t, whole)",
    "pl.part_max(t, row) - pl.part_min(t, column)",
    "pl.part_add(t, pl.cast(near, pl.INT16))",
    "pl.part_max(row, t)",
    "pl.part_min(t, pl.slice(whole, [3, 6, 8], [0, 0, 0], valid_shape=[1, 6, 3]))",
    "pl.tile.scatter(whole, t, near)",
    "pl.tile.scatter(t, t, near) + t",
    "pl.concat(column, column * 2.0)",
    "pl.tile.assemble(whole, t, [0, 0, 0])",
    "pl.tile.assemble(t, pl.load(x, [0, 0, 0], [1, 1, 1]), [0, 0, 0])",
    "pl.tile.assemble(pl.tile_full([4, 8, 9], pl.FP32, 5.0), t, [1, 2, 1])",
    "pl.set_validshape(t, 1, 1)",
    "pl.tile.write(t, [0, 0, 0], 5.0)",
    "pl.transpose(t, 1, 2) - pl.tile.transpose_view(t)",
    "pl.tile.expands(t, 3.0)",
    "pl.cast(pl.tile.reinterpret_view(t, pl.INT32), pl.FP32)",
    "pl.sel(pl.cmp(t, whole - 1.0, cmp_type=4), t, whole)",
    "pl.sels(pl.cmp(t, 0.0, cmp_type=2), t, scalar=7.0)",
    "pl.mean(t, axis=1)",
]  # fmt: skip


STORED = [
    "pl.store(t, [0, 0, 0], out, atomic=pl.AtomicType.Add)",
    "pl.store(column, [1, 2, 3], out, atomic=pl.AtomicType.Add)",
    "pl.store(t, [0, 1, 0], out, mask=whole > 0.0)",
    "pl.store(column, [5, 0, 1], out)",
]


@pytest.mark.parametrize("tile", [OPEN, KNOWN, WHOLE], ids=["open", "known", "whole"])
@pytest.mark.parametrize("stored", STORED)
def test_what_is_ragged_along_many_axes_is_stored(stored: str, tile: str) -> None:
    check(stored, tile)


@pytest.mark.parametrize("tile", [OPEN, KNOWN, WHOLE], ids=["open", "known", "whole"])
@pytest.mark.parametrize("formula", FORMULAS)
def test_ops_on_tiles_that_are_ragged_along_many_axes(formula: str, tile: str) -> None:
    check(formula, tile)


HANDED = {
    "a loop": "for n in pl.range(a):\n    t = t + row",
    "a loop that may make no turn": "for n in pl.range(a - 1):\n    t = t + t",
    "rounds": "n = a\nwhile n > 0:\n    t = t * 2.0\n    n = n - 1",
    "a branch": "if a > 1:\n    t = t + 1.0\nelse:\n    t = pl.abs(t)",
    "one side whole": "if a > 1:\n    t = whole\nelse:\n    t = t * 3.0",
    "a loop and a branch": "for n in pl.range(3):\n    if n < a:\n        t = t - 1.0",
}


@pytest.mark.parametrize("tile", [OPEN, KNOWN, WHOLE], ids=["open", "known", "whole"])
@pytest.mark.parametrize("before", HANDED.values(), ids=HANDED)
def test_loops_and_branches_hand_on_what_is_ragged(before: str, tile: str) -> None:
    check("pl.row_sum(t) + t", tile, before)
