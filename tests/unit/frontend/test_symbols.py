"""Symbols that stand in formulas only: told by the argument where one value explains its extent."""

# pyright: basic, reportCallIssue=false, reportInvalidTypeForm=false, reportArgumentType=false
# pyright: reportRedeclaration=false, reportAttributeAccessIssue=false
from __future__ import annotations

import numpy as np
import pytest

import tilewright.language as pl
from tilewright import ir

M, N, Q = pl.dynamic("M"), pl.dynamic("N"), pl.dynamic("Q")


@pl.program
class Halves:
    @pl.function(type=pl.FunctionType.InCore)
    def added(
        self,
        x: pl.Tensor[[M * 2, 16], pl.FP32],
        row: pl.Scalar[pl.INDEX],
        out: pl.Out[pl.Tensor[[M, 16], pl.FP32]],
    ):
        upper, lower = pl.load(x, [row * 2, 0], [1, 16]), pl.load(x, [row * 2 + 1, 0], [1, 16])
        return pl.store(pl.add(upper, lower), [row, 0], out)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        x: pl.Tensor[[M * 2, 16], pl.FP32],
        y: pl.Tensor[[(N + 3) * Q - 1], pl.FP32],
        z: pl.Tensor[[7 - Q], pl.FP32],
        told: pl.Out[pl.Tensor[[3], pl.INT32]],
        out: pl.Out[pl.Tensor[[M, 16], pl.FP32]],
    ):
        for row in pl.range(M):
            out = self.added(x, row, out)
        pl.write(told, [0], pl.cast(M, pl.INT32))
        pl.write(told, [1], pl.cast(N, pl.INT32))
        pl.write(told, [2], pl.cast(Q, pl.INT32))
        return out


@pytest.mark.parametrize(("m", "n", "q"), [(7, 5, 6), (1, 0, 1), (3, 2, 7)])
def test_arguments_tell_the_symbols_of_formulas(target: str, m: int, n: int, q: int) -> None:
    x = np.random.default_rng(0).standard_normal((2 * m, 16), np.float32)
    y, z = np.zeros((n + 3) * q - 1, np.float32), np.zeros(7 - q, np.float32)
    told, out = np.zeros(3, np.int32), np.zeros((m, 16), np.float32)
    ir.compile(Halves, platform=target)(x, y, z, told, out)
    assert told.tolist() == [m, n, q]
    np.testing.assert_array_equal(out, x[::2] + x[1::2])


@pytest.mark.parametrize("rows", [13, 12])
def test_an_extent_that_its_formula_does_not_explain_is_refused(rows: int) -> None:
    y, z, told = np.zeros(47, np.float32), np.zeros(1, np.float32), np.zeros(3, np.int32)
    with pytest.raises(ValueError, match=r"expects shape \[M \* 2, 16\]"):
        ir.compile(Halves)(np.zeros((rows, 16), np.float32), y, z, told, np.zeros((7, 16), np.float32))


@pl.function
def first_rows(
    x: pl.Tensor[[M // 2 + N, 16], pl.FP32], out: pl.Out[pl.Tensor[[M // 2 + N, 16], pl.FP32]]
) -> pl.Tensor[[M // 2 + N, 16], pl.FP32]:
    with pl.at(level=pl.Level.CORE_GROUP):
        out = pl.store(pl.load(x, [0, 0], [1, 16]), [0, 0], out)
    return out


def test_what_no_argument_tells_need_not_be_known(target: str) -> None:
    x, out = np.ones((5, 16), np.float32), np.zeros((5, 16), np.float32)
    ir.compile(first_rows, platform=target)(x, out)
    assert out.sum() == 16
    with pytest.raises(ValueError, match="expects shape"):
        ir.compile(first_rows, platform=target)(x, np.zeros((6, 16), np.float32))


@pl.function(type=pl.FunctionType.Orchestration)
def caller(x: pl.Tensor[[9, 16], pl.FP32], out: pl.Out[pl.Tensor[[9, 16], pl.FP32]]):
    out = first_rows(x, out)
    return out


def test_callers_know_extents_that_callees_do_not(target: str) -> None:
    out = np.zeros((9, 16), np.float32)
    ir.compile(caller, platform=target)(np.ones((9, 16), np.float32), out)
    assert out.sum() == 16


@pl.jit
def jitted(x: pl.Tensor[[M * 2, 16], pl.FP32], out: pl.Out[pl.Tensor[[M, 16], pl.FP32]]):
    for row in pl.range(M):
        with pl.at(level=pl.Level.CORE_GROUP):
            out = pl.store(pl.load(x, [row * 2, 0], [1, 16]), [row, 0], out)
    return out


@pytest.mark.parametrize("rows", [3, 8])
def test_kernels_that_are_specialized_know_them_too(rows: int) -> None:
    x, out = np.random.default_rng(1).standard_normal((2 * rows, 16), np.float32), np.zeros((rows, 16), np.float32)
    jitted(x, out)
    np.testing.assert_array_equal(out, x[::2])


@pytest.mark.parametrize("node", [Halves, first_rows])
def test_such_functions_print_as_text_that_says_the_same(node: ir.Program | ir.Function) -> None:
    assert ir.structural_equal(pl.parse(str(node)), node)
