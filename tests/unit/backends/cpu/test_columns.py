"""Folded columns in native code: where they lie, narrow and wide, strided and cut."""

from __future__ import annotations

import numpy as np
import pytest
from unit.backends.cpu.running import native, program_of

from tilewright import ir
from tilewright.dtypes import BF16, FP32, INT32
from tilewright.passes.folded_operands import folded_operands
from tilewright.passes.manager import PassManager

DTYPES = {dtype.symbol: dtype for dtype in (BF16, FP32, INT32)}

KERNEL = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[{rows}, {columns}], pl.{dtype}], out: pl.Out[pl.Tensor[[1, {columns}], pl.{dtype}]]):
        for col in pl.parallel(0, {columns}, {step}):
            with pl.at(level=pl.Level.CORE_GROUP):
                t = pl.load(x, [0, col], [{rows}, {step}])
                pl.store(pl.{op}(t), [0, col], out)
"""


@pytest.mark.parametrize(
    ("op", "dtype", "rows", "columns", "step"),
    [
        ("col_sum", "FP32", 21, 1040, 16),
        ("col_sum", "FP32", 16, 150, 150),
        ("col_max", "FP32", 5, 101, 37),
        ("col_sum", "INT32", 19, 200, 136),
        ("col_min", "BF16", 9, 300, 300),
        ("col_prod", "FP32", 1, 130, 130),
    ],
)
def test_columns_are_folded_where_they_lie(op: str, dtype: str, rows: int, columns: int, step: int) -> None:
    program = native(KERNEL.format(op=op, dtype=dtype, rows=rows, columns=columns, step=step))
    kind = DTYPES[dtype].numpy
    x = np.random.default_rng(rows).integers(-9, 9, (rows, columns)).astype(kind)
    program.check(x, np.zeros((1, columns), kind))


def test_a_strided_view_is_folded_too() -> None:
    text = KERNEL.format(op="col_sum", dtype="FP32", rows=12, columns=160, step=160)
    program = ir.compile(program_of(text), platform="cpu")
    wide = np.random.default_rng(1).uniform(-1, 1, (24, 320)).astype(np.float32)
    for x in (wide[::2, :160], wide[:12, ::2]):
        out = np.zeros((1, 160), np.float32)
        program(x, out)
        np.testing.assert_allclose(out, x.sum(0, keepdims=True), rtol=1e-5, atol=1e-5)


COMPUTED = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[{rows}, {columns}], pl.{dtype}], y: pl.Tensor[[{rows}, {columns}], pl.{dtype}],
             out: pl.Out[pl.Tensor[[1, {columns}], pl.{dtype}]]):
        for col in pl.parallel(0, {columns}, {step}):
            with pl.at(level=pl.Level.CORE_GROUP):
                a, b = pl.load(x, [0, col], [{rows}, {step}]), pl.load(y, [0, col], [{rows}, {step}])
                pl.store(pl.col_sum((a - pl.row_max(b)) * a + pl.col_max(b)), [0, col], out)
"""


@pytest.mark.parametrize(
    ("dtype", "rows", "columns", "step"),
    [
        ("FP32", 21, 1040, 16),
        ("FP32", 16, 150, 150),
        ("INT32", 19, 200, 136),
        ("BF16", 9, 300, 300),
        ("FP32", 5, 74, 37),
    ],
)
def test_columns_are_folded_as_they_are_computed(dtype: str, rows: int, columns: int, step: int) -> None:
    program = native(COMPUTED.format(dtype=dtype, rows=rows, columns=columns, step=step))
    kind, random = DTYPES[dtype].numpy, np.random.default_rng(rows)
    x, y = (random.integers(-2, 3, (rows, columns)).astype(kind) for _ in range(2))
    program.check(x, y, np.zeros((1, columns), kind))


CENTERED = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[{rows}, 80], pl.FP32], out: pl.Out[pl.Tensor[[{rows}, 80], pl.FP32]]):
        for col in pl.parallel(0, 80, 32):
            with pl.at(level=pl.Level.CORE_GROUP):
                t = pl.load(x, [0, col], [{rows}, 32])
                d = t - pl.col_sum(t) * {part}
                other = pl.full([{rows}, 32], dtype=pl.FP32, value=1.5)
                v = pl.col_sum(d * d)
                pl.store(d / pl.sqrt(v) + other, [0, col], out)
                {after}
"""


@pytest.mark.parametrize(
    "after", ["pass", "pl.store(pl.col_max(d) + pl.load(out, [0, col], [{rows}, 32]), [0, col], out)"]
)
@pytest.mark.parametrize("rows", [1, 7, 40])
def test_what_is_folded_and_used_again_is_computed_twice(rows: int, after: str) -> None:
    program = native(CENTERED.format(rows=rows, part=1 / rows - 0.01, after=after.format(rows=rows)))
    x = np.random.default_rng(rows).uniform(1, 2, (rows, 80)).astype(np.float32)
    program.check(x, np.zeros((rows, 80), np.float32))


def test_what_is_folded_is_not_computed_from_what_was_stored_to_since() -> None:
    text = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.InOut[pl.Tensor[[24, 48], pl.FP32]], out: pl.Out[pl.Tensor[[1, 48], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [0, 0], [24, 48])
            square = t * t
            pl.store(pl.full([24, 48], dtype=pl.FP32, value=2.0), [0, 0], x)
            pl.store(pl.col_sum(square), [0, 0], out)
"""
    x = np.random.default_rng(3).uniform(-1, 1, (24, 48)).astype(np.float32)
    native(text).check(x, np.zeros((1, 48), np.float32))


def test_rows_that_indices_name_are_weighted_as_they_are_folded() -> None:
    text = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, table: pl.Tensor[[50, {width}], pl.FP32], words: pl.Tensor[[4, 9], pl.INT64],
             weights: pl.Tensor[[4, 9], pl.FP32], out: pl.Out[pl.Tensor[[4, {width}], pl.FP32]]):
        for bag in pl.parallel(4):
            with pl.at(level=pl.Level.CORE_GROUP):
                index = pl.load(words, [bag, 0], [1, 9])
                weight = pl.reshape(pl.load(weights, [bag, 0], [1, 9]), [9, 1])
                taken = pl.tile.take(table, index, axis=0)
                pl.store(pl.col_sum(taken * weight), [bag, 0], out)
"""
    random = np.random.default_rng(5)
    for width in (128, 40, 200):
        table, weights = (random.uniform(-1, 1, shape).astype(np.float32) for shape in ((50, width), (4, 9)))
        words = random.integers(0, 50, (4, 9))
        native(text.format(width=width)).check(table, words, weights, np.zeros((4, width), np.float32))


def test_the_plan_leaves_what_is_folded_to_the_fold() -> None:
    lowered = PassManager.get_strategy().run_passes(program_of(CENTERED.format(rows=40, part=0.025, after="pass")))
    (kernel,) = (function for function in lowered.function_list if "incore" in function.name)
    assert {var.name_hint for var in folded_operands(kernel)} == {"d", "mul"}
