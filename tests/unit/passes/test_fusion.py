"""Fusion: which ops share a loop over rows, and why each loop ends."""

from __future__ import annotations

import pytest
from conftest import Golden

import tilewright.language as pl
from tilewright import ir
from tilewright.backends.cpu.backend import CPU
from tilewright.core.program import Program
from tilewright.passes.manager import PassManager

ATTENTION = """
@pl.program
class Attention:
    @pl.function(type=pl.FunctionType.InCore)
    def head(self, q: pl.Tensor[[64, 32], pl.FP32], k: pl.Tensor[[32, 64], pl.FP32], v: pl.Tensor[[64, 32], pl.FP32],
             bias: pl.Tensor[[1, 64], pl.FP32], out: pl.Out[pl.Tensor[[64, 32], pl.FP32]]):
        scores = pl.matmul(pl.load(q, [0, 0], [64, 32]), pl.load(k, [0, 0], [32, 64]))
        biased = pl.col_expand_add(scores, pl.load(bias, [0, 0], [1, 64]))
        e = pl.exp(pl.row_expand_sub(biased, pl.row_max(biased)))
        p = pl.row_expand_div(e, pl.row_sum(e))
        pl.store(pl.matmul(p, pl.load(v, [0, 0], [64, 32])), [0, 0], out)
"""

X, Y = "x: pl.InOut[pl.Tensor[[8, 40], pl.FP32]]", "y: pl.InOut[pl.Tensor[[8, 40], pl.FP32]]"
LOAD = "t = pl.load(x, [0, 0], [8, 40])"
UPDATED, APART = "`x` is stored to where it was loaded from", "`x` is loaded from, then stored to"
UPDATE, ONE_GROUP = "x = pl.store(t * 2.0, [0, 0], x)", "nothing follows"


def lowered(text: str) -> Program:
    program = pl.parse(f"import tilewright.language as pl\n{text}")
    assert isinstance(program, Program)
    return PassManager.get_strategy().run_passes(program)


def fused(*body: str) -> str:
    """Return the groups of a kernel as text."""
    lines = "".join(f"\n        {line}" for line in body)
    text = f"@pl.program\nclass P:\n    @pl.function(type=pl.FunctionType.InCore)\n    def main(self, {X}, {Y}):{lines}"
    return CPU().compile(lowered(text)).texts["fusion"]()


def ends(text: str) -> list[str]:
    """Return why each group ends."""
    return [line.split("ends: ")[1] for line in text.splitlines() if "ends: " in line]


def test_a_plan_can_be_read(golden: Golden) -> None:
    program = pl.parse(f"import tilewright.language as pl\n{ATTENTION}")
    assert isinstance(program, Program)
    golden("fusion.txt", ir.compile(program, platform="cpu").stages["fusion"])


def test_a_chain_of_ops_is_one_group() -> None:
    text = fused(LOAD, "e = pl.exp(t)", "y = pl.store(pl.row_expand_div(e, pl.row_sum(e)), [0, 0], y)")
    assert ends(text) == ["nothing follows"] and text.count(" = pl.tile.") == 4


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ([LOAD, "y = pl.store(pl.slice(pl.exp(t), [4, 40], [0, 0]), [0, 0], y)"], "`exp` is needed in memory"),
        ([LOAD, "u = pl.load(x, [0, 0], [4, 40])", "y = pl.store(t, [0, 0], y)", "y = pl.store(u, [4, 0], y)"],
         "the rows that follow are others"),
        ([LOAD, "u = pl.load(x, [0, 0], [8, 40])", "x = pl.store(t * pl.exp(u), [0, 0], x)"], ONE_GROUP),
        ([LOAD, UPDATE], ONE_GROUP),
        (["t = x[0:8, 0:40]", "x[0:8, :] = t / pl.row_sum(t)"], ONE_GROUP),
        (["t = pl.load(x, [0, 0], [8, 20])", "x = pl.store(t * 2.0, [0, 20], x)"], APART),
        ([LOAD, "row = pl.load(x, [0, 0], [1, 40])", "x = pl.store(t * row, [0, 0], x)"], APART),
        ([LOAD, "s = pl.row_sum(t)", "x = pl.store(t * 2.0, [0, 0], x)", "y = pl.store(t * s, [0, 0], y)"], APART),
        ([LOAD, "x = pl.store(t * 2.0, [0, 0], x, atomic=pl.AtomicType.Add)"], ONE_GROUP),
        ([LOAD, UPDATE, "y = pl.store(pl.load(y, [0, 0], [8, 40]) - t, [0, 0], y)"], ONE_GROUP),
        ([LOAD, "u = pl.load(y, [0, 0], [8, 40])", "pl.store(u, [0, 0], x)", "pl.store(t, [0, 0], y)"], ONE_GROUP),
        ([LOAD, UPDATE, "y = pl.store(pl.row_expand_mul(t, pl.row_sum(t)), [0, 0], y)"], UPDATED),
        ([LOAD, UPDATE, "y = pl.store(pl.load(y, [0, 0], [8, 20]), [0, 20], y)"], UPDATED),
        ([LOAD, UPDATE, "y = pl.store(pl.slice(t, [8, 20], [0, 20]), [0, 0], y)"], UPDATED),
        ([LOAD, UPDATE, "y = pl.store(pl.load(x, [0, 0], [8, 40]), [0, 0], y)"], "`x` is stored to, then loaded from"),
        ([LOAD, "y = pl.store(t, [0, 0], y)", "y = pl.store(pl.load(y, [0, 0], [8, 40]), [0, 0], y)"],
         "`y` is stored to, then loaded from"),
        ([LOAD, "y = pl.store(t, [0, 0], y)", "y = pl.store(t * 2.0, [0, 0], y)"], "`y` is stored to twice"),
        ([LOAD, "for i in pl.range(2):", "    t = pl.exp(t)", "y = pl.store(t, [0, 0], y)"], "control flow follows"),
    ],
    ids=[
        "memory", "rows", "twice loaded", "an update", "an update of a slice", "elsewhere", "a row of it",
        "read once more", "added", "two updates", "exchanged", "folded after it", "narrower after it", "part of it",
        "loaded again", "load after store", "two stores", "a loop",
    ],
)  # fmt: skip
def test_a_group_ends_and_says_why(body: list[str], why: str) -> None:
    assert ends(fused(*body))[0] == why


def test_stores_that_are_apart_share_a_group() -> None:
    left, right = ("pl.load(x, [0, 0], [8, 20])", "pl.load(x, [0, 20], [8, 20])")
    assert len(ends(fused(f"pl.store({left}, [0, 0], y)", f"pl.store({right}, [0, 20], y)"))) == 1


def test_what_only_a_product_reads_is_in_no_group() -> None:
    product = "y = pl.store(pl.matmul(t, pl.load(x, [0, 0], [8, 40], valid_shape=[8, 40])), [0, 0], y)"
    text = fused("t = pl.load(x, [0, 0], [8, 8])", product)
    assert "pl.tile.load" not in text and "pl.tile.store" in text


def test_loads_that_end_where_others_do_share_a_group() -> None:
    cut = "y = pl.store(pl.add(pl.load(x, [i, 0], [3, 40]), pl.load(y, [i, 0], [3, 40])), [i, 0], y)"
    text = fused("for i in pl.range(0, 8, 3):", f"    {cut}")
    assert text.count("rows ?") == 1


def test_a_row_that_starts_somewhere_shares_the_group_of_one_row() -> None:
    text = fused(
        "acc = pl.full([1, 40], dtype=pl.FP32, value=0.0)",
        "for i in pl.range(8):",
        "    acc = acc + pl.load(x, [7 - i, 0], [1, 40])",
        "    acc = acc + pl.load(x, [pl.cast(pl.read(x, [i, 0]), pl.INDEX), 0], [1, 40])",
        "y = pl.store(acc, [0, 0], y)",
    )
    assert "rows ?" not in text and "the rows that follow are others" not in text


def test_one_row_is_read_by_every_group() -> None:
    text = fused("row = pl.load(x, [0, 0], [1, 40])", "t = pl.load(y, [0, 0], [8, 40])", "pl.store(t + row, [0, 0], y)")
    assert ends(text) == [ONE_GROUP] and text.startswith("main:\n  rows 8:\n      row = ")


def test_updates_of_blocks_of_one_axis_are_one_group() -> None:
    vector = "pl.InOut[pl.Tensor[[4096], pl.FP32]]"
    lines = (
        f"    def main(self, p: {vector}, m: {vector}, g: pl.Tensor[[4096], pl.FP32]):",
        "        mm = pl.load(m, [0], [4096]) * 0.9 + pl.load(g, [0], [4096])",
        "        pl.store(mm, [0], m)",
        "        pl.store(pl.load(p, [0], [4096]) - mm * 0.01, [0], p)",
    )
    text = "\n".join(["@pl.program", "class P:", "    @pl.function(type=pl.FunctionType.InCore)", *lines])
    assert ends(CPU().compile(lowered(text)).texts["fusion"]()) == [ONE_GROUP]


def test_a_very_long_chain_is_cut() -> None:
    steps = [f"t = pl.{'add' if n % 2 else 'maximum'}(t, u)" for n in range(200)]
    text = fused(LOAD, "u = pl.load(y, [0, 0], [8, 40])", *steps, "x = pl.store(t, [0, 0], x)")
    assert ends(text)[:2] == ["no more functions can be applied to each other"] * 2


ROWS = ("i = pl.tile.ci(0, [1, 8], dtype=pl.INT32)", "t = pl.mgather(x, i)")


def test_rows_gathered_for_a_store_go_straight_there() -> None:
    text = fused(*ROWS, "y = pl.store(t, [0, 0], y)")
    assert ends(text)[-1] == "`y` is where its rows go" and "t = pl.tile.mgather(x, i)\n      pl.tile.store(t" in text


def put(dst: str, src: str) -> str:
    """Return the groups of columns that are put between those of `dst`, and stored to `y` from row 4 on."""
    pattern = "pl.tile.MaskPattern.P1010"
    lines = f"d = pl.load({dst}, [4, 40])", f"s = pl.load({src}, [4, 20])", f"r = pl.tile.scatter_mask(d, s, {pattern})"
    return fused(*lines, "y = pl.store(r, [4, 0], y)")


def test_columns_put_for_a_store_go_straight_there_also_where_they_were() -> None:
    assert all("`y` is where its rows go" in put(dst, "x, [0, 0]") for dst in ("x, [0, 0]", "y, [4, 0]"))


JOINED = {
    "concat": ("pl.concat(d, s)", "[4, 30]", "[4, 10]"),
    "fillpad_expand": ("pl.fillpad_expand(d, [4, 40])", "[3, 30]", "[4, 10]"),
}


@pytest.mark.parametrize("source", ["x", "y"])
@pytest.mark.parametrize("name", JOINED)
def test_tiles_joined_for_a_store_go_straight_there_from_other_memory(name: str, source: str) -> None:
    joined, first, second = JOINED[name]
    loads = f"d = pl.load({source}, [0, 0], {first})", f"s = pl.load(x, [4, 0], {second})"
    text = fused(*loads, f"r = {joined}", "y = pl.store(r, [4, 0], y)")
    assert ("`y` is where its rows go" in text) == (source == "x")


def test_columns_put_between_those_of_another_place_that_is_stored_to_are_a_tile() -> None:
    meeting = ("y, [3, 0]", "x, [0, 0]"), ("x, [0, 0]", "y, [4, 0]"), ("y, [4, 0]", "y, [4, 20]")
    assert all("is where its rows go" not in put(dst, src) for dst, src in meeting)


@pytest.mark.parametrize("source", ["x", "y"])
def test_a_tile_that_is_filled_row_by_row_to_be_stored_is_none(source: str) -> None:
    row = f"    t = pl.gather_row(t, {source}, [k, 0], [7 - k, 0], [1, 40])"
    text = fused("t = pl.create_tile([8, 40], dtype=pl.FP32)", "for k in pl.range(8):", row, "pl.store(t, [0, 0], y)")
    assert ("pl.tensor.gather_row(y, x, [k, 0]" in text) == (source == "x") == ("`y` is where its rows go" in text)


@pytest.mark.parametrize(
    "body",
    [
        ["x = pl.store(t, [0, 0], x)"],
        ["y = pl.store(t, [0, 0], y)", "y = pl.store(t, [0, 0], y)"],
        ["y = pl.store(t, [0, 0], y, atomic=pl.AtomicType.Add)"],
        ["x = pl.store(pl.load(y, [0, 0], [8, 40]), [0, 0], x)", "y = pl.store(t, [0, 0], y)"],
    ],
    ids=["its own source", "two readers", "added", "another store between"],
)
def test_rows_gathered_for_anything_else_are_a_tile(body: list[str]) -> None:
    assert "is where its rows go" not in fused(*ROWS, *body)


def test_a_number_is_read_beside_a_group_unless_it_writes_there() -> None:
    beside = fused(LOAD, "e = t + 1.0", "k = pl.read(y, [0, 0])", "y = pl.store(e * k, [0, 0], y)")
    behind = fused(LOAD, "y = pl.store(t + 1.0, [0, 0], y)", "k = pl.read(y, [0, 0])", "x = pl.store(t * k, [0, 0], x)")
    assert ends(beside) == ["nothing follows"]
    assert ends(behind)[0] == "`y` is stored to, then loaded from"
