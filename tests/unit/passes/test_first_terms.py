"""First terms: sums that begin with zeros begin with a product, where every program that runs adds one."""

from __future__ import annotations

from textwrap import indent

import numpy as np
import pytest

import tilewright.language as pl
from tilewright.core.expr import Call
from tilewright.core.program import Program
from tilewright.core.region import whole
from tilewright.core.visitor import evaluated, statements
from tilewright.frontend.programs import as_program
from tilewright.interpret.machine import run
from tilewright.passes import first_terms
from tilewright.passes.manager import PassManager

ZEROS = "acc = pl.tile.full([16, 32], dtype=pl.FP32, value=0.0)"
TERM = "pl.load(a, [0, k], [16, 32]), pl.load(b, [k, 0], [32, 32])"
SUM = f"acc = pl.matmul_acc(acc, {TERM})"
STORE = "pl.store(acc, [0, 0], c)"


def lowered(*lines: str) -> Program:
    """Return a kernel of some lines over 16 x 64 and 64 x 32 elements, of which a call tells one number."""
    text = f"""
import tilewright.language as pl
@pl.program
class P:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, a: pl.Tensor[[16, 64], pl.FP32], b: pl.Tensor[[64, 32], pl.FP32],
             c: pl.InOut[pl.Tensor[[16, 32], pl.FP32]], n: pl.Scalar[pl.INDEX]):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="band"):
{indent(chr(10).join(lines), 12 * " ")}
"""
    return PassManager.get_strategy().run_passes(as_program(pl.parse(text)))


def ops(program: Program) -> list[str]:
    values = (evaluated(stmt) for function in program.function_list for stmt in statements(function.body))
    named = [value.op.name for value in values if isinstance(value, Call)]
    return [name for name in named if name in ("tile.full", "tile.create") or name.startswith("tile.matmul")]


def answer(program: Program, number: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(16, 64)).astype(np.float32), rng.normal(size=(64, 32)).astype(np.float32)
    c = np.full((16, 32), np.nan, np.float32)
    run(program, "main", [whole(a), whole(b), whole(c), number])
    return c


def check(program: Program, *expected: str, number: int = 64) -> None:
    made = first_terms.run(program)
    assert ops(made) == list(expected)
    np.testing.assert_array_equal(answer(made, number), answer(program, number))


def loop(limits: str, *lines: str) -> list[str]:
    return [f"for k in pl.range({limits}):", *(f"    {line}" for line in lines)]


def test_a_sum_of_one_turn_is_a_product() -> None:
    check(lowered(ZEROS, *loop("0, 32, 32", SUM), STORE), "tile.matmul")
    check(lowered(ZEROS, *loop("32, 50, 32", SUM), STORE), "tile.matmul")


def test_a_sum_of_several_turns_begins_in_the_first() -> None:
    check(lowered(ZEROS, *loop("0, 64, 32", SUM), STORE), "tile.create", "tile.matmul_acc")


def test_two_sums_of_a_loop_both_begin_in_it() -> None:
    twice = [SUM, SUM.replace("acc", "other").replace("matmul_other", "matmul_acc")]
    add = STORE.replace("acc", "acc + other")
    made = lowered(ZEROS, ZEROS.replace("acc", "other"), *loop("0, 64, 32", *twice), add)
    check(made, *["tile.create"] * 2, *["tile.matmul_acc"] * 2)


def test_a_product_added_to_zeros_is_itself() -> None:
    check(lowered(ZEROS, "k = 0", SUM, STORE), "tile.matmul")


KEPT = {
    "turns that only calls know": [ZEROS, *loop("0, n, 32", SUM), STORE],
    "a branch": [ZEROS, *loop("0, 64, 32", "if n > k:", f"    {SUM}"), STORE],
    "another reader": [ZEROS, *loop("0, 64, 32", "pl.store(acc, [0, 0], c)", SUM), STORE],
    "turns that end early": [ZEROS, *loop("0, 64, 32", SUM, "if n > 32:", "    break"), STORE],
    "one turn that ends the loop": [ZEROS, *loop("0, 64, 32", SUM, "if k >= 0:", "    break"), STORE],
    "ones": [ZEROS.replace("0.0", "1.0"), *loop("0, 64, 32", SUM), STORE],
    "several in a row": [ZEROS, "k = 0", SUM, "k = 32", SUM, STORE],
}


@pytest.mark.parametrize("lines", KEPT.values(), ids=KEPT)
def test_sums_that_may_be_zeros_or_more_stay(lines: list[str]) -> None:
    program = lowered(*lines)
    check(program, *ops(program))
