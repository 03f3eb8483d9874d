"""Widening: grids of products take tiles that suit the machine, unless a kernel depends on its own."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright.language as pl
from tilewright.core.program import Program
from tilewright.core.region import whole
from tilewright.frontend.programs import as_program
from tilewright.interpret.machine import run
from tilewright.passes.manager import PassManager
from tilewright.passes.product_grids import Wanted
from tilewright.passes.widen import widened

WANTED = Wanted(rows=48, columns=64, depth=32)

SUM = """acc = pl.matmul(pl.load(a, [i, 0], [12, 16]), pl.load(b, [0, j], [16, 16]))
                    for k in pl.range(16, 100, 16):
                        acc = pl.matmul_acc(acc, pl.load(a, [i, k], [12, 16]), pl.load(b, [k, j], [16, 16]))"""
STORE = "pl.store(acc, [i, j], c)"


def notes(*stmts: str, rows: str = "96", stop: str = "96") -> str:
    """Return what was changed about a product."""
    return str(widened(lowered(*stmts, rows=rows, stop=stop), WANTED)).strip()


def lowered(*stmts: str, rows: str = "96", stop: str = "96", by: str = "12") -> Program:
    """Return a product of 96 x 100 and 100 x 200 elements, each tile of which is some statements."""
    body = "\n                    ".join(stmts)
    text = f"""
import tilewright.language as pl
M = pl.dynamic("M")
@pl.program
class P:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, a: pl.Tensor[[{rows}, 100], pl.FP32], b: pl.Tensor[[100, 200], pl.FP32],
             bias: pl.Tensor[[1, 200], pl.FP32], c: pl.InOut[pl.Tensor[[{rows}, 200], pl.FP32]]):
        for i in pl.parallel(0, {stop}, {by}):
            for j in pl.parallel(0, 200, 16):
                with pl.at(level=pl.Level.CORE_GROUP, name_hint="tile"):
                    {body}
"""
    return PassManager.get_strategy().run_passes(as_program(pl.parse(text)))


def test_rows_columns_and_steps_are_chosen_for_the_machine() -> None:
    assert notes(SUM, STORE) == "tile: i by 48 instead of 12, j by 64 instead of 16, k by 25 instead of 16"


@pytest.mark.parametrize(
    ("stmts", "kept"),
    [
        (["acc = acc + pl.cast(i, pl.FP32)"], "i"),
        (["acc = pl.row_expand_sub(acc, pl.row_max(acc))"], "j"),
        (["acc = pl.col_expand_sub(acc, pl.col_max(acc))"], "i"),
        (["acc = acc + pl.load(c, [i, 0], [12, 16])"], "j"),
        (["acc = acc + pl.cast(pl.tile.ci(0, [1, 16], dtype=pl.INT32), pl.FP32)"], "j"),
        (["acc = pl.matmul(acc, pl.load(b, [0, j], [16, 16]))"], "j"),
    ],
)
def test_what_depends_on_its_tile_keeps_it(stmts: list[str], kept: str) -> None:
    changed = notes(SUM, *stmts, STORE)
    assert [f" {name} by" in f" {changed}" for name in "ij"] == [name not in kept for name in "ij"]


@pytest.mark.parametrize("fold", ["max", "sum", "min", "prod"])
def test_a_fold_over_one_element_keeps_it_alone(fold: str) -> None:
    narrow = SUM.replace("[12, 16]", "[1, 16]"), f"acc = pl.col_expand_sub(acc, pl.col_{fold}(acc))", STORE
    changed = str(widened(lowered(*narrow, rows="M", stop="M", by="1"), WANTED))
    assert " i by" not in changed and " j by" in changed


@pytest.mark.parametrize(("rows", "stop", "step"), [("120", "96", 48), ("90", "86", 45), ("90", "70", 36)])
def test_a_grid_ends_where_it_ended(rows: str, stop: str, step: int) -> None:
    """Within its tensors, where they end, and where its last tile ends: no other steps are taken."""
    assert f"i by {step}" in notes(SUM, STORE, rows=rows, stop=stop)


def test_loops_that_count_tiles_count_elements() -> None:
    counted = SUM.replace("[i,", "[i * 12,"), STORE.replace("[i,", "[12 * i,")
    program = widened(lowered(*counted, stop="8", by="1"), WANTED).program
    assert "pl.parallel(0, 96, 48)" in str(program) and "[i, j]" in str(program)


def test_a_grid_over_extents_that_only_calls_know_is_cut_by_them() -> None:
    assert "i by 48" in notes(SUM, STORE, rows="M", stop="M")


def test_a_grid_over_rows_that_only_calls_know_has_tiles_for_few_of_them() -> None:
    found = widened(lowered(SUM, STORE, rows="M", stop="M"), WANTED)
    many, few = found.notes
    assert many.startswith("tile: i by 48 instead of 12") and few.startswith("tile of few rows: i by 16 instead of 12")
    assert "if M <= 16:" in str(found.program)


@pytest.mark.parametrize("rows", ["96", "M"])
def test_tiles_of_one_row_are_tiles_like_others(rows: str) -> None:
    """Beside them, too, the only row of a tensor stays one that is repeated."""
    single = SUM.replace("[12, 16]", "[1, 16]"), "acc = acc + pl.load(bias, [0, j], [1, 16])", STORE
    found = widened(lowered(*single, rows=rows, stop=rows, by="1"), WANTED)
    assert "i by 48 instead of 1" in str(found) and "pl.tile.load(bias, [0, j], [1, 64])" in str(found.program)


@pytest.mark.parametrize(("rows", "is_wider"), [("96", True), ("90", False), ("M", False)])
def test_rows_that_a_tile_has_whatever_is_left_stay_where_some_may_be_missing(rows: str, is_wider: bool) -> None:
    """The first operand says how many are valid: all of them here."""
    changed = notes(SUM, "acc = pl.tile.full([12, 16], dtype=pl.FP32, value=1.0) - acc", STORE, rows=rows, stop=rows)
    assert (" i by" in f" {changed}") == is_wider


def test_kernels_that_do_more_than_multiply_stay_as_they_are() -> None:
    assert notes(SUM, "pl.system.print_value('i', i)", STORE) == "every tile is as it was written"


def test_tiles_as_large_as_wanted_stay_as_they_are() -> None:
    taller = lowered(SUM.replace("[12, 16]", "[24, 16]"), STORE, by="24")
    assert str(widened(taller, Wanted(rows=24, columns=16, depth=16))).startswith("every tile")


def test_a_sum_that_a_branch_begins_is_one() -> None:
    begins = """acc = pl.tile.full([12, 16], dtype=pl.FP32, value=0.0)
                    for k in pl.range(0, 100, 16):
                        x, y = pl.load(a, [i, k], [12, 16]), pl.load(b, [k, j], [16, 16])
                        if k == 0:
                            acc = pl.matmul(x, y)
                        else:
                            acc = pl.matmul_acc(acc, x, y)"""
    assert notes(begins, STORE) == notes(SUM, STORE)


FORMS = {
    "offsets with names": """
        for p in pl.parallel(8):
            for q in pl.parallel(13):
                with pl.at(level=pl.Level.CORE_GROUP, name_hint="tile"):
                    i = p * 12
                    j = q * 16
                    {body}""",
    "tiles counted by one variable": """
        for tile in pl.parallel(104):
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="tile"):
                i = tile // 13 * 12
                j = tile % 13 * 16
                {body}""",
    "blocks of a launch": """
        for tile in pl.spmd(104, name_hint="tile"):
            i = tile // 13 * 12
            j = tile % 13 * 16
            {body}""",
    "loops one after the other": """
        for i in pl.range(0, 96, 12):
            for j in pl.range(0, 200, 16):
                with pl.at(level=pl.Level.CORE_GROUP, name_hint="tile"):
                    {body}""",
    "loops inside a kernel": """
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="tile"):
            for i in pl.range(0, 96, 12):
                for j in pl.range(0, 200, 16):
                    {body}""",
}


def form_of(grid: str, *stmts: str) -> Program:
    """Return the product with its grid written in some form."""
    indent = grid.rsplit("\n", 1)[1].removesuffix("{body}")
    body = "\n".join(stmts).replace("\n                    ", "\n").replace("\n", f"\n{indent}")
    text = f"""
import tilewright.language as pl
@pl.program
class P:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, a: pl.Tensor[[96, 100], pl.FP32], b: pl.Tensor[[100, 200], pl.FP32],
             c: pl.InOut[pl.Tensor[[96, 200], pl.FP32]]):
{grid.format(body=body)}
"""
    return PassManager.get_strategy().run_passes(as_program(pl.parse(text)))


@pytest.mark.parametrize("grid", FORMS.values(), ids=FORMS)
def test_every_form_of_a_grid_is_one(grid: str) -> None:
    """What is computed stays what it was, in tiles of other sizes."""
    program = form_of(grid, SUM, STORE)
    found = widened(program, WANTED)
    assert " by 48 instead of 12, " in str(found) and " by 64 instead of 16, k by 25 instead of 16" in str(found)
    a, b = (np.random.default_rng(0).integers(-4, 5, shape).astype(np.float32) for shape in ((96, 100), (100, 200)))
    for each in (program, found.program):
        c = np.zeros((96, 200), np.float32)
        run(each, "main", [*map(whole, (a, b, c))])
        np.testing.assert_array_equal(c, a @ b)


@pytest.mark.parametrize("name", ["loops one after the other", "loops inside a kernel"])
def test_turns_that_read_what_others_wrote_stay_in_order(name: str) -> None:
    """A tile that is added to was stored by an earlier turn."""
    reads = "acc = acc + pl.load(c, [0, 0], [12, 16])"
    assert " by 48" not in str(widened(form_of(FORMS[name], SUM, reads, STORE), WANTED))


def test_a_number_of_a_tile_that_is_read_as_such_stays_one() -> None:
    reads = "acc = acc + pl.cast(tile, pl.FP32)"
    assert " by 48" not in str(widened(form_of(FORMS["tiles counted by one variable"], SUM, reads, STORE), WANTED))


@pl.jit
def split(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor], by: int):  # pyright: ignore[reportUnknownParameterType]
    for part in pl.parallel(0, out.shape[0]):
        for i in pl.parallel(0, a.shape[0], 16):
            for j in pl.parallel(0, b.shape[1], 16):
                with pl.at(level=pl.Level.CORE_GROUP):
                    acc = pl.zeros([16, 16], dtype=pl.FP32)
                    for k in pl.range(part * by, pl.min(part * by + by, 96) if by == 40 else part * by + by, 8):
                        acc += pl.load(a, [i, k], [16, 8]) @ pl.load(b, [k, j], [8, 16])
                    out = pl.store(acc, [part, i, j], out)
    return out


@pytest.mark.parametrize(("by", "is_wider"), [(32, True), (40, False)])
def test_parts_of_a_sum_are_products_if_each_surely_has_turns(by: int, is_wider: bool) -> None:
    a, b = (np.random.default_rng(0).integers(-4, 5, shape).astype(np.float32) for shape in ((64, 96), (96, 64)))
    out = np.zeros((3, 64, 64), np.float32)
    assert ("every tile" not in split.compile(a, b, out, by).stages["tiles"]) == is_wider
    split(a, b, out, by)
    np.testing.assert_array_equal(out.sum(0), a @ b)


@pl.jit.incore
def block_of(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):  # pyright: ignore[reportUnknownParameterType]
    block = pl.tile.get_block_idx()
    i, j = block // 4 * 16, block % 4 * 16
    acc = pl.zeros([16, 16], dtype=pl.FP32)
    for k in pl.range(0, a.shape[1], 8):
        acc += pl.load(a, [i, k], [16, 8]) @ pl.load(b, [k, j], [8, 16])
    return pl.store(acc, [i, j], out)


@pl.jit
def in_blocks(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):  # pyright: ignore[reportUnknownParameterType]
    with pl.spmd(16):
        out = block_of(a, b, out)
    return out


def test_blocks_that_each_call_a_kernel_are_a_grid() -> None:
    a, b = (np.random.default_rng(0).integers(-4, 5, shape).astype(np.float32) for shape in ((64, 96), (96, 64)))
    out = np.zeros((64, 64), np.float32)
    assert "block_row by 64 instead of 16" in in_blocks.compile(a, b, out).stages["tiles"]
    in_blocks(a, b, out)
    np.testing.assert_array_equal(out, a @ b)


@pl.jit
def turning(x: pl.Tensor, out: pl.Out[pl.Tensor], rows: int, columns: int):
    m, n = x.shape
    for i in pl.parallel(0, m, rows):
        for j in pl.parallel(0, n, columns):
            with pl.at(level=pl.Level.CORE_GROUP):
                pl.store(pl.load(x, [i, j], [rows, columns]).T, [j, i], out)


@pl.jit
def turning_blocks(x: pl.Tensor, out: pl.InOut[pl.Tensor]):
    for i in pl.parallel(0, x.shape[0], 16):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [i, i], [16, 16]).T, [i, i], out)


@pytest.mark.parametrize(("rows", "columns"), [(32, 32), (48, 16), (7, 9), (64, 64)])
def test_matrices_are_turned_in_tiles_of_the_machines_choice(rows: int, columns: int) -> None:
    x = np.random.default_rng(rows).standard_normal((200, 150), np.float32)
    out = np.zeros((150, 200), np.float32)
    turning(x, out, rows=rows, columns=columns)
    np.testing.assert_array_equal(out, np.swapaxes(x, 0, 1))
    tiles = turning.compile(x, out, rows=rows, columns=columns).stages["tiles"]
    assert ("i by" in tiles and "j by" in tiles) == (rows < 64)


def test_blocks_on_the_diagonal_stay_what_they_are() -> None:
    x, out = np.random.default_rng(0).standard_normal((64, 64), np.float32), np.zeros((64, 64), np.float32)
    turning_blocks(x, out)
    for i in range(0, 64, 16):
        np.testing.assert_array_equal(out[i : i + 16, i : i + 16], np.swapaxes(x[i : i + 16, i : i + 16], 0, 1))
    assert np.count_nonzero(out) == 4 * 16 * 16
    assert turning_blocks.compile(x, out).stages["tiles"].strip() == "every tile is as it was written"


@pl.jit
def centred(x: pl.Tensor, out: pl.Out[pl.Tensor], is_sum: bool):
    m, n = x.shape
    for j in pl.parallel(0, n, 16):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [0, j], [m, 16])
            total = pl.sum(t, axis=0, keepdims=True)
            pl.store(total if is_sum else t - total / m, [0, j], out)


@pytest.mark.parametrize("is_sum", [True, False])
def test_columns_that_are_read_again_are_folded_fewer_at_a_time(is_sum: bool) -> None:
    x = np.random.default_rng(1).standard_normal((64, 2048), np.float32)
    out = np.zeros((1 if is_sum else 64, 2048), np.float32)
    centred(x, out, is_sum=is_sum)
    want = x.sum(0, keepdims=True) if is_sum else x - x.mean(0)
    np.testing.assert_allclose(out, want, rtol=1e-5, atol=1e-5)
    assert f"j by {512 if is_sum else 128}" in centred.compile(x, out, is_sum=is_sum).stages["tiles"]


@pl.jit
def met(x: pl.Tensor, y: pl.Tensor, out: pl.Out[pl.Tensor]):
    for c in pl.parallel(0, x.shape[1], 32):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [0, c], [x.shape[0], 32]) * pl.load(y, [0, c], [x.shape[0], 32])
            pl.store(pl.sum(t * t, axis=0, keepdims=True), [0, c], out)


def test_columns_of_what_is_computed_are_folded_many_at_a_time() -> None:
    x, y, out = np.ones((64, 1024), np.float32), np.full((64, 1024), 0.5, np.float32), np.zeros((1, 1024), np.float32)
    assert "c by 512 instead of 32" in met.compile(x, y, out).stages["tiles"]
    met(x, y, out)
    assert (out == 16).all()
