"""Folded columns in native code: where they lie, narrow and wide, strided and cut."""

from __future__ import annotations

import numpy as np
import pytest
from unit.backends.cpu.running import native, program_of

from tilewright import ir
from tilewright.dtypes import BF16, FP32, INT32

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
