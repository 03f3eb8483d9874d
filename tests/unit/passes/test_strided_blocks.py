"""Strided blocks: neighbouring blocks of products run as one, unless what they read or write lies otherwise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tilewright.language as pl
from tilewright import ir
from tilewright.core.program import Program
from tilewright.core.region import whole
from tilewright.frontend.programs import as_program
from tilewright.interpret.machine import run
from tilewright.passes.manager import PassManager
from tilewright.passes.product_grids import Wanted
from tilewright.passes.widen import widened

WANTED = Wanted(rows=64, columns=32, depth=32)
WIDE = replace(WANTED, columns=96)
DEPTH = 64
PLACES = {
    "left": "(row * 1024 + k) * 4",
    "right": "(k * 96 + column * 32) * 4",
    "result": "(row * 1536 + column * 32) * 4",
}


def lowered(places: dict[str, str], row: str = "block // 3", after: str = "", column: str = "block % 3") -> Program:
    """Return a product whose blocks, three side by side, are of 16 x 32 elements that lie in flat buffers."""
    text = f"""
import tilewright.language as pl
M, N = pl.dynamic("M"), pl.dynamic("N")
@pl.program
class P:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, n: pl.Scalar[pl.INDEX, (0, 1000)], a: pl.Tensor[[N], pl.FP32], b: pl.Tensor[[6144], pl.FP32],
             c: pl.InOut[pl.Tensor[[M], pl.FP32]]):
        for block in pl.parallel(n):
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="tile"):
                row = {row}
                column = {column}
                acc = pl.tile.full([16, 32], dtype=pl.FP32, value=0.0)
                for k in pl.range(0, 64, 16):
                    x = pl.tensor.as_strided(a, [16, 16], [64, 1], {places["left"]}, dtype=pl.FP32)
                    y = pl.tensor.as_strided(b, [16, 32], [96, 1], {places["right"]}, dtype=pl.FP32)
                    left, right = pl.load(x, [0, 0], [16, 16]), pl.load(y, [0, 0], [16, 32])
                    acc = pl.matmul_acc(acc, left, right, init_cond=k == 0)
                z = pl.tensor.as_strided(c, [16, 32], [96, 1], {places["result"]}, dtype=pl.FP32)
                {after}
                pl.store(acc, [0, 0], z)
"""
    return PassManager.get_strategy().run_passes(as_program(pl.parse(text)))


def notes(
    places: dict[str, str] = PLACES, row: str = "block // 3", after: str = "", wanted: Wanted = WANTED
) -> list[str]:
    return str(widened(lowered(places, row, after), wanted)).strip().splitlines()


@pytest.mark.parametrize("wanted", [WANTED, WIDE, replace(WIDE, rows=16)])
@pytest.mark.parametrize("rows", [1, 4, 7, 11, 64])
def test_blocks_beside_and_below_each_other_are_one_and_compute_the_same(rows: int, wanted: Wanted) -> None:
    check(rows, wanted, native=False)


@pytest.mark.parametrize("rows", [1, 7, 64])
def test_native_blocks_are_larger_and_compute_the_same(rows: int) -> None:
    check(rows, WANTED, native=True)


def check(rows: int, wanted: Wanted, native: bool) -> None:
    """Compute all but the last block of so many rows of them."""
    program = lowered(PLACES)
    rng = np.random.default_rng(rows)
    a = rng.normal(size=(16 * rows, DEPTH)).astype(np.float32)
    b, c = rng.normal(size=(DEPTH, 96)).astype(np.float32), np.zeros(16 * rows * 96, np.float32)
    blocks = 3 * rows - 1  # the last one is left out
    if native:
        ir.compile(program)(blocks, a.ravel(), b.ravel(), c)
    else:
        run(widened(program, wanted).program, "main", [blocks, whole(a.ravel()), whole(b.ravel()), whole(c)])
    expected = a @ b
    expected[-16:, 64:] = 0
    np.testing.assert_allclose(c, expected.ravel(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("most", "expected"), [(2, [2]), (3, [3, 2]), (4, [4, 2]), (8, [8, 4, 2]), (32, [32, 16, 2])])
def test_fewer_blocks_than_the_tallest_takes_run_in_half_as_tall_ones_and_then_two_by_two(
    most: int, expected: list[int]
) -> None:
    program = lowered(PLACES)
    found = str(widened(program, replace(WANTED, rows=16 * most))).strip().splitlines()[: len(expected)]
    assert [note.rpartition(": ")[2] for note in found] == [f"{16 * times} rows instead of 16" for times in expected]


@pytest.mark.parametrize(("down", "heights"), [(4, [64, 32]), (6, [48]), (2, [32]), (5, []), (12, [64, 32])])
@pytest.mark.parametrize("native", [False, True])
def test_blocks_that_follow_each_other_down_a_column_are_one_too(down: int, heights: list[int], native: bool) -> None:
    program = lowered(PLACES, f"block % {down}", column=f"block // {down}")
    wide = widened(program, WANTED)
    told = [note.rpartition(": ")[2] for note in str(wide).strip().splitlines() if "rows instead" in note]
    assert told == [f"{rows} rows instead of 16" for rows in heights]
    rng = np.random.default_rng(down)
    a = rng.normal(size=(16 * down, DEPTH)).astype(np.float32)
    b, c = rng.normal(size=(DEPTH, 96)).astype(np.float32), np.zeros(16 * down * 96, np.float32)
    if native:
        ir.compile(program)(3 * down - 1, a.ravel(), b.ravel(), c)
    else:
        run(wide.program, "main", [3 * down - 1, whole(a.ravel()), whole(b.ravel()), whole(c)])
    expected = a @ b
    expected[-16:, 64:] = 0
    np.testing.assert_allclose(c, expected.ravel(), rtol=1e-4, atol=1e-4)


def test_blocks_are_as_wide_as_divides_a_row_of_them() -> None:
    told = [note.rpartition(": ")[2] for note in notes(wanted=WIDE) if "instead" in note and " by " not in note]
    wide = "96 columns instead of 32"
    assert told == [f"64 rows instead of 16, {wide}", f"32 rows instead of 16, {wide}", wide]
    assert not any("columns" in note for note in notes(wanted=replace(WIDE, columns=64)))


def test_blocks_whose_right_matrix_does_not_go_on_beside_them_stay_as_wide_as_they_are() -> None:
    apart = notes({**PLACES, "right": "(k * 96 + column * 31) * 4"}, wanted=WIDE)
    assert any("rows instead" in note for note in apart) and not any("columns" in note for note in apart)


def test_notes_say_how_many_rows_there_are() -> None:
    assert [note.rpartition(": ")[2] for note in notes()[:2]] == ["64 rows instead of 16", "32 rows instead of 16"]


@pytest.mark.parametrize(
    ("threads", "blocks", "turns", "wanted"),
    [
        (1, 5, [0, 0, 5], WANTED),
        (1, 20, [3, 3, 2], WANTED),
        (4, 20, [0, 9, 2], WANTED),
        (8, 20, [0, 9, 2], WANTED),
        (16, 20, [0, 0, 20], WANTED),
        (8, 35, [0, 15, 5], WANTED),
        (8, 36, [9, 0, 0], WANTED),
        (64, 126, [0, 0, 126], WANTED),
        (64, 768, [192, 0, 0], WANTED),
        (1, 5, [0, 0, 1, 2], WIDE),
        (1, 20, [1, 1, 0, 2], WIDE),
        (4, 20, [0, 0, 6, 2], WIDE),
        (8, 20, [0, 0, 0, 20], WIDE),
    ],
)
def test_blocks_that_fill_no_large_one_run_in_smaller_ones_unless_threads_could_use_them(
    threads: int, blocks: int, turns: list[int], wanted: Wanted
) -> None:
    main = str(widened(lowered(PLACES), wanted).program).partition("def main")[2]
    scope: dict[str, int] = {"n": blocks}
    found: list[int] = []
    main = main.replace("pl.min", "min").replace("pl.system.available_thread_count()", str(threads))
    for line in main.splitlines():
        if "pl.parallel(" in line:
            found.append(len(eval(f"range({line.partition('pl.parallel(')[2][:-2]})", {}, scope)))
        elif line.startswith(" " * 8) and line[8] != " " and " = " in line:
            name, value = line.split(" = ")
            scope[name.partition(":")[0].strip()] = eval(value, {}, scope)
    assert found == turns


@pytest.mark.parametrize(
    "changed",
    [
        {"right": "(row * 96 + k * 96 + column * 32) * 4"},
        {"left": "(row * 2048 + k) * 4"},
        {"result": "(row * 1568 + column * 32) * 4"},
        {"left": "(block * 1024 + k) * 4"},
    ],
)
def test_what_lies_otherwise_stays_as_it_was(changed: dict[str, str]) -> None:
    assert not any("rows instead" in line for line in notes({**PLACES, **changed}))


def test_a_row_that_is_another_number_stays_as_it_was() -> None:
    assert not any("rows instead" in line for line in notes(row="block // 4"))


def test_a_block_that_does_more_stays_as_it_was() -> None:
    more = "acc = pl.add(acc, 1.0)"
    assert not any("rows instead" in line for line in notes(after=more))
