"""Scaled products of which only the run knows how much is valid, as PTO text: they give every bit."""
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from property.exported import run_exported

import tilewright.language as pl
from tilewright import ir
from tilewright.core.program import Program
from tilewright.programs.pto_text.export import as_pto

M, K, N = 32, 128, 64
SMALL: Any = ml_dtypes.float8_e4m3fn
POWER: Any = ml_dtypes.float8_e8m0fnu
FORMS = {
    "plain": "r = pl.matmul_mx(a, left, b, right)",
    "bias": "r = pl.matmul_mx_bias(a, left, b, right, pl.slice(c, [1, 64], [0, 0]))",
    "added": "r = pl.tile.matmul_mx_acc(pl.matmul_mx(a, left, b, right), a, left, b, right)",
    "loop": """
r = pl.zeros([32, 64], pl.FP32)
for _ in pl.range(3):
    r = pl.tile.matmul_mx_acc(r, a, left, b, right)
""",
}
VALID = {
    "open": ("[m, k]", "[k, n]", [(M, K, N), (5, K, N), (M, 97, N), (M, K, 7), (3, 100, 33), (0, K, N)]),
    "rows": ("[m, 128]", "[128, n]", [(M, K, N), (9, K, 17), (0, K, 1)]),
    "depth": ("[32, k]", "[k, 64]", [(M, K, N), (M, 97, N)]),
    "known": ("[9, 100]", "[100, 33]", [(9, 100, 33)]),
}


def scaled(form: str, left: str, right: str) -> Program:
    """Return the program that stores a scaled product of as much as is said."""
    body = [
        f"a = pl.load(x, [0, 0], [32, 128], valid_shape={left})",
        f"b = pl.load(y, [0, 0], [128, 64], valid_shape={right})",
        "left, right = pl.load(p, [0, 0], [32, 4]), pl.load(q, [0, 0], [4, 64])",
        "c = pl.load(z, [0, 0], [32, 64])",
        *FORMS[form].splitlines(),
        "return pl.store(r, [0, 0], out)",
    ]
    lines = [
        "@pl.program",
        "class P:",
        "    @pl.function(type=pl.FunctionType.InCore)",
        "    def main(self, x: pl.Tensor[[32, 128], pl.FP8E4M3FN], p: pl.Tensor[[32, 4], pl.FP8E8M0],",
        "             y: pl.Tensor[[128, 64], pl.FP8E4M3FN], q: pl.Tensor[[4, 64], pl.FP8E8M0],",
        "             m: pl.Scalar[pl.INDEX], k: pl.Scalar[pl.INDEX], n: pl.Scalar[pl.INDEX],",
        "             z: pl.Tensor[[32, 64], pl.FP32], out: pl.Out[pl.Tensor[[32, 64], pl.FP32]]):",
        *(f"        {line}" for line in body),
    ]
    program = pl.parse("\n".join(lines))
    assert isinstance(program, Program)
    return program


def given(extents: tuple[int, int, int]) -> list[Any]:
    rng = np.random.default_rng(1)
    x, y = (rng.uniform(-6, 6, shape).astype(SMALL) for shape in ((M, K), (K, N)))
    p, q = (rng.integers(120, 135, shape).astype(np.uint8).view(POWER) for shape in ((M, 4), (4, N)))
    x[:, 100:], y[100:] = np.nan, np.nan  # which nobody multiplies where it is not valid
    if extents[1] == K:
        x[:, 100:], y[100:] = 1, 2
    return [x, p, y, q, *extents, rng.standard_normal((M, N)).astype(np.float32), np.full((M, N), -1, np.float32)]


@pytest.mark.parametrize("valid", VALID)
@pytest.mark.parametrize("form", FORMS)
def test_a_scaled_product_of_as_much_as_is_valid(form: str, valid: str) -> None:
    left, right, cases = VALID[valid]
    program = scaled(form, left, right)
    text = as_pto(program)
    for extents in cases:
        wanted, found = given(extents), given(extents)
        ir.compile(program, platform="interpret")(*wanted)
        run_exported(text, "main", found, {})
        np.testing.assert_array_equal(found[-1], wanted[-1], f"{extents} of\n{text}")
        native = given(extents)
        run_exported(text, "main", native, {}, "cpu")
        np.testing.assert_allclose(native[-1], wanted[-1], rtol=1e-4, atol=1e-1)
