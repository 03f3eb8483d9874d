"""Floats of every type as PTO text: what it says of them has the same bits, and what it cannot say is named."""
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from property.exported import read_back, run_exported

import tilewright.language as pl
from tilewright import ir
from tilewright.core.program import Program
from tilewright.programs.pto_text.export import as_pto
from tilewright.programs.pto_text.values import NoPtoError

FORMULAS = [
    "a + b * 2.5 - b / a", "pl.maximum(-a, pl.abs(b)) * pl.minimum(a, 1.0)", "pl.where(a > b, a, b % a)", "pl.recip(a)",
    "pl.round(a) + pl.floor(b) - pl.ceil(a) * pl.trunc(b)", "pl.row_max(a) - pl.col_min(b) * a", "pl.lrelu(b, 0.1)",
    "pl.lrelu(b, -0.5)", "pl.cast(pl.cast(a, pl.FP32), a.dtype) + pl.cast(pl.cast(b, pl.INT32), a.dtype)", "a // b",
    "pl.transpose(a, 0, 1) + pl.sign(b)", "1.0 / a", "a - pl.max(b)", "pl.fmod(b, a) + pl.fmod(a - 3.0, a)",
    "pl.fmod(b, pl.abs(b))",
]  # fmt: skip
"""What is said of floats of every type."""
SHORT = ["pl.exp(a)", "pl.log(a)", "pl.sqrt(pl.abs(b))", "pl.rsqrt(a)", "pl.sin(a) + pl.cos(b)", "pl.fma(a, b, a)"]
"""What is said of bf16, by way of fp32."""
UNSAID_OF = {
    "FP64": ["pl.exp(a)", "pl.log(a)", "pl.sqrt(a)", "pl.rsqrt(a)", "pl.sin(a)", "pl.fma(a, b, a)", "pl.pow(a, b)"],
    "BF16": ["pl.pow(a, b)", "pl.row_expand_expdif(b, pl.row_max(b))", "pl.col_expand_expdif(b, pl.col_max(b))"],
    "FP16": ["pl.sin(a)", "pl.cos(a)"],
}
SUMS = [
    "a - pl.row_sum(b)",
    "b * pl.row_prod(a)",
    "a - pl.col_sum(b)",
    "a * pl.col_prod(a)",
    "a - pl.sum(b)",
    "a - pl.mean(b, axis=1)",
]
"""What is said of floats of which the machines fold some, and of bf16 one element after the other."""
UNSAID_OF["FP64"] += ["a - pl.row_sum(b)", "a - pl.col_sum(b)", "a - pl.sum(b)"]
DTYPES: dict[str, Any] = {"FP64": np.float64, "FP32": np.float32, "FP16": np.float16, "BF16": ml_dtypes.bfloat16}


def program_of(dtype: str, formula: str) -> Program:
    """Return the program that writes what a formula makes of two tiles."""
    tensor = f"pl.Tensor[[8, 8], pl.{dtype}]"
    lines = [
        "@pl.program", "class P:", "    @pl.function(type=pl.FunctionType.InCore)",
        f"    def main(self, x: {tensor}, y: {tensor}, out: pl.Out[{tensor}]):",
        "        a = pl.load(x, [0, 0], [8, 8])", "        b = pl.load(y, [0, 0], [8, 8])",
        f"        return pl.store({formula.replace('a.dtype', f'pl.{dtype}')}, [0, 0], out)",
    ]  # fmt: skip
    program = pl.parse("\n".join(lines))
    assert isinstance(program, Program)
    return program


def given_to(dtype: str) -> list[Any]:
    """Return two matrices, the first of positive numbers, and room."""
    rng = np.random.default_rng(5)
    x, y = (rng.normal(0, 3, (8, 8)).astype(DTYPES[dtype]) for _ in range(2))
    y[0, :4] = [0.0, -0.0, 0.5, -0.5]
    return [abs(x) + DTYPES[dtype](0.1), y, np.zeros_like(x)]


def assert_same_bits(dtype: str, formula: str) -> None:
    program, wanted, found = program_of(dtype, formula), given_to(dtype), given_to(dtype)
    with np.errstate(all="ignore"):
        ir.compile(program, platform="interpret")(*wanted)
        run_exported(as_pto(program), "main", found, {})
    same = np.isnan(found[2].astype(float)) & np.isnan(wanted[2].astype(float))
    bits = f"u{found[2].itemsize}"
    np.testing.assert_array_equal((found[2].view(bits) == wanted[2].view(bits)) | same, True)


@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_formula_of_floats_of_any_type(dtype: str, formula: str) -> None:
    assert_same_bits(dtype, formula)


@pytest.mark.parametrize("formula", SHORT)
def test_a_function_of_short_floats_goes_through_longer_ones(formula: str) -> None:
    assert_same_bits("BF16", formula)


@pytest.mark.parametrize("formula", SUMS)
@pytest.mark.parametrize("dtype", ["FP32", "FP16", "BF16"])
def test_sums_and_products_of_floats(dtype: str, formula: str) -> None:
    assert_same_bits(dtype, formula)


@pl.jit
def folded(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], [8, 16])
        pl.store(pl.row_sum(t), [0, 0], out)
        pl.store(pl.row_prod(t), [0, 1], out)
        pl.store(pl.row_sum(pl.load(x, [0, 0], [8, 16], valid_shape=[8, 2])), [0, 2], out)


def test_sums_of_short_floats_are_rounded_once() -> None:
    x = np.ones((8, 16))
    x[:, 1:3], x[:, 3:] = [2.0**-8, 2.0**-40], 0
    x[4:, 1], x[5, 2], x[6:, 3] = -(2.0**-9), -(2.0**-40), 2.0**-100
    made = [x.astype(ml_dtypes.bfloat16), np.zeros((8, 3), ml_dtypes.bfloat16)]
    wanted, found = read_back(folded, lambda: [each.copy() for each in made], "interpret")
    np.testing.assert_array_equal(found[1].view(np.uint16), wanted[1].view(np.uint16))
    assert wanted[1][0, 0] == 1 + 2.0**-7


@pytest.mark.parametrize(("dtype", "formula"), [(d, f) for d, formulas in UNSAID_OF.items() for f in formulas])
def test_what_pto_has_for_other_floats_is_refused_by_its_name(dtype: str, formula: str) -> None:
    with pytest.raises(NoPtoError, match=r"PTO has `\w+` for .*, not for") as caught:
        as_pto(program_of(dtype, formula))
    assert "pl.cast" in str(caught.value) or "x * y + z" in str(caught.value)


@pl.jit
def added(x: pl.Tensor, out: pl.InOut[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], [8, 8]), [0, 0], out, atomic=pl.AtomicType.Add)


def test_doubles_are_not_added_to_memory() -> None:
    with pytest.raises(NoPtoError, match="adds doubles"):
        added.compile(np.zeros((8, 8)), np.zeros((8, 8))).as_pto()


@pl.jit
def places(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        a = pl.load(x, [0, 0], [8, 32])
        scratch = pl.tile.create([8, 32], pl.BF16)
        pl.store(pl.row_argmax(a, scratch) - pl.row_argmin(a, scratch), [0, 0], out)


def test_places_in_rows_of_short_floats() -> None:
    x = np.random.default_rng(3).integers(-9, 9, (8, 32)).astype(ml_dtypes.bfloat16)
    wanted, found = read_back(places, lambda: [x.copy(), np.zeros((8, 1), np.int32)], "interpret")
    np.testing.assert_array_equal(found[1], wanted[1])
    assert wanted[1].any()


# two types that meet


@pl.jit
def met(x: pl.Tensor, y: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        a, b = pl.load(x, [0, 0], [8, 16]), pl.load(y, [0, 0], [8, 16])
        both = pl.maximum(a + b, a * b) - pl.minimum(b, a - b)
        pl.store(pl.cast(pl.where(a > b, both, pl.where(b <= a, a, b)), pl.FP32), [0, 0], out)


PAIRS = [
    (np.float32, np.int32), (np.int16, np.float16), (np.float16, np.float32), (ml_dtypes.bfloat16, np.float32),
    (np.float16, ml_dtypes.bfloat16), (np.int8, np.int32), (np.int16, np.int64), (np.uint8, np.int8),
    (np.float64, np.float32), (np.uint16, np.int32),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_tiles_of_two_types_meet_in_one_of_them(one: Any, other: Any) -> None:
    rng = np.random.default_rng(11)
    x, y = (np.abs(rng.integers(-9, 9, (8, 16))).astype(dtype) for dtype in (one, other))
    if x.dtype.itemsize >= 4 and y.dtype == np.int32:
        x[0, 0], y[0, 0] = 1, 16777217
    wanted, found = read_back(met, lambda: [x.copy(), y.copy(), np.zeros((8, 16), np.float32)], "interpret")
    np.testing.assert_array_equal(found[2].view(np.uint32), wanted[2].view(np.uint32))


@pl.jit
def counted(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], [8, 16]) + pl.iota([8, 16], axis=0), [0, 0], out)


def test_floats_meet_rows_of_numbers() -> None:
    x = np.random.default_rng(2).normal(size=(8, 16)).astype(np.float32)
    wanted, found = read_back(counted, lambda: [x.copy(), np.zeros_like(x)], "interpret")
    np.testing.assert_array_equal(found[1], wanted[1])
