"""Whole sums: a loop over all parts of two tiles is one product of the tiles, unless it leaves some out."""

from __future__ import annotations

from textwrap import indent

import numpy as np
import pytest

import tilewright.language as pl
from tilewright.core.expr import Call
from tilewright.core.program import Program
from tilewright.core.region import whole
from tilewright.core.stmt import ForStmt
from tilewright.core.visitor import evaluated, statements
from tilewright.frontend.programs import as_program
from tilewright.interpret.machine import run
from tilewright.passes.begun_sums import begun_sums
from tilewright.passes.joined_products import joined_products
from tilewright.passes.manager import PassManager
from tilewright.passes.whole_sums import whole_sums

LEFT, RIGHT = "l = pl.slice(x, [16, 16], [0, k])", "r = pl.slice(y, [16, 32], [k, 0])"
SUM = "if {}:\n    acc = pl.matmul(l, r)\nelse:\n    acc = pl.matmul_acc(acc, l, r)"
LOOP = "for k in pl.range(0, 64, 16):"


def lowered(*stmts: str) -> Program:
    """Return a product of 16 x 512 and 512 x 32 elements, 64 of the inner dimension loaded a turn."""
    body = indent("\n".join(stmts), 20 * " ").lstrip()
    text = f"""
import tilewright.language as pl
@pl.program
class P:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, a: pl.Tensor[[16, 512], pl.FP32], b: pl.Tensor[[512, 32], pl.FP32],
             c: pl.InOut[pl.Tensor[[16, 32], pl.FP32]]):
        for i in pl.parallel(1):
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="band"):
                acc = pl.move(pl.tile.full([16, 32], dtype=pl.FP32, value=0.0), target_memory=pl.Mem.Acc)
                for at in pl.range(0, 512, 64):
                    x = pl.load(a, [0, at], [16, 64])
                    y = pl.load(b, [at, 0], [64, 32])
                    {body}
                pl.store(acc, [0, 0], c)
"""
    return PassManager.get_strategy().run_passes(as_program(pl.parse(text)))


def shorter(program: Program) -> Program:
    """Return a program with the sums that are looked at here in as few products as they can be."""
    functions = [joined_products(whole_sums(begun_sums(f)), 512) for f in program.function_list]
    return program.with_functions(functions)


def counted(program: Program) -> tuple[int, int]:
    """Return how many loops over parts of the inner dimension and how many products there are."""
    every = [stmt for function in program.function_list for stmt in statements(function.body)]
    values = [evaluated(stmt) for stmt in every]
    products = sum(isinstance(v, Call) and v.op.name.startswith("tile.matmul") for v in values)
    return sum(isinstance(stmt, ForStmt) and bool(stmt.iter_args) for stmt in every), products


def agrees(program: Program) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(16, 512)).astype(np.float32), rng.normal(size=(512, 32)).astype(np.float32)
    c = np.full((16, 32), np.nan, np.float32)
    run(program, "main", [whole(a), whole(b), whole(c)])
    np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("begins", ["at + k == 0", "k + at == 0"])
def test_a_loop_over_all_parts_is_one_product(begins: str) -> None:
    made = shorter(lowered(LOOP, *(indent(each, "    ") for each in (LEFT, RIGHT, SUM.format(begins)))))
    assert counted(made) == (1, 1)
    agrees(made)


@pytest.mark.parametrize(
    "lines",
    [
        ("for k in pl.range(0, 48, 16):", LEFT, RIGHT, SUM.format("at + k == 0")),  # some are left out
        ("for k in pl.range(0, 64, 32):", LEFT, RIGHT, SUM.format("at + k == 0")),
        (LOOP, LEFT.replace("[0, k]", "[0, 48 - k]"), RIGHT, SUM.format("at + k == 0")),
        (LOOP, LEFT, RIGHT, SUM.format("at + k == 16")),  # which begins in a later turn
        (LOOP, LEFT, RIGHT, SUM.format("at - k == 0")),
        (LOOP, LEFT, RIGHT, SUM.format("at + k == 0"), "acc = pl.add(acc, 1.0)"),
        (LOOP, LEFT, "r = pl.exp(pl.slice(y, [16, 32], [k, 0]))", SUM.format("at + k == 0")),
    ],
)
def test_other_loops_stay(lines: tuple[str, ...]) -> None:
    loop, *rest = lines
    assert counted(shorter(lowered(loop, *(indent(each, "    ") for each in rest)))) == (2, 1)


def parts(*starts: int, width: int = 16) -> list[str]:
    """Return products of parts of the tiles from some places on, added up one after the other."""
    lines: list[str] = []
    for number, at in enumerate(starts):
        left, right = f"pl.slice(x, [16, {width}], [0, {at}])", f"pl.slice(y, [{width}, 32], [{at}, 0])"
        lines += [f"l = {left}", f"r = {right}", "acc = pl.matmul_acc(acc, l, r)" if number else SUM.format("at == 0")]
    return lines


def test_products_of_parts_that_adjoin_are_one_product() -> None:
    made = shorter(lowered(*parts(0, 16, 32, 48)))
    assert counted(made) == (1, 1)
    agrees(made)


@pytest.mark.parametrize(("starts", "products"), [((0, 32, 16, 48), 4), ((0, 16, 48), 2), ((16, 0), 2), ((0, 0), 2)])
def test_parts_that_do_not_adjoin_are_multiplied_one_by_one(starts: tuple[int, ...], products: int) -> None:
    assert counted(shorter(lowered(*parts(*starts))))[1] == products


def test_a_sum_that_somebody_reads_on_the_way_is_kept() -> None:
    first, second = parts(0)[:3], parts(0, 16)[3:]
    made = shorter(lowered(*first, "pl.store(acc, [0, 0], c)", *second))
    assert counted(made)[1] == 2


def test_products_are_joined_up_to_a_depth() -> None:
    program = lowered(*parts(0, 16, 32, 48))
    made = program.with_functions([joined_products(begun_sums(f), 32) for f in program.function_list])
    assert counted(made) == (1, 2)
    agrees(made)


WINDOWS = """
a0 = pl.tensor.as_strided(a, [16, 16], [128, 1], {first} * 4, dtype=pl.FP32)
a1 = pl.tensor.as_strided(a, [16, 16], [128, 1], {second} * 4, dtype=pl.FP32)
b0 = pl.tensor.as_strided(b, [16, 32], [32, 1], {first} * 128, dtype=pl.FP32)
b1 = pl.tensor.as_strided(b, [16, 32], [32, 1], {second} * 128, dtype=pl.FP32)
for_a0 = pl.load(a0, [0, 0], [16, 16])
for_b0 = pl.load(b0, [0, 0], [16, 32])
acc = pl.matmul_acc(acc, for_a0, for_b0)
for_a1 = pl.load(a1, [0, 0], [16, 16])
for_b1 = pl.load(b1, [0, 0], [16, 32])
acc = pl.matmul_acc(acc, for_a1, for_b1)
"""
FLAT = """
import tilewright.language as pl
@pl.program
class P:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, a: pl.Tensor[[2048], pl.FP32], b: pl.Tensor[[4096], pl.FP32],
             c: pl.InOut[pl.Tensor[[16, 32], pl.FP32]]):
        for i in pl.parallel(1):
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="band"):
                acc = pl.move(pl.tile.full([16, 32], dtype=pl.FP32, value=0.0), target_memory=pl.Mem.Acc)
                for at in pl.range(0, 128, 32):
                    {body}
                pl.store(acc, [0, 0], c)
"""


@pytest.mark.parametrize(("first", "second", "products"), [("at", "(at + 16)", 1), ("(at + 16)", "at", 2)])
def test_windows_that_adjoin_are_one(first: str, second: str, products: int) -> None:
    lines = WINDOWS.format(first=first, second=second).strip().splitlines()
    text = FLAT.format(body=indent("\n".join(lines), 20 * " ").lstrip())
    made = shorter(PassManager.get_strategy().run_passes(as_program(pl.parse(text))))
    assert counted(made)[1] == products
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(16, 128)).astype(np.float32), rng.normal(size=(128, 32)).astype(np.float32)
    c = np.zeros((16, 32), np.float32)
    run(made, "main", [whole(a.ravel()), whole(b.ravel()), whole(c)])
    np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=1e-4)
