"""Numbers at calls: any but zero is true, integers and floats become what the parameter is; yields with a type."""

# pyright: basic, reportCallIssue=false, reportInvalidTypeForm=false, reportArgumentType=false
# pyright: reportRedeclaration=false, reportAttributeAccessIssue=false
from __future__ import annotations

import numpy as np
import pytest

import tilewright.language as pl
from tilewright import ir


@pl.program
class Chosen:
    @pl.function(type=pl.FunctionType.InCore)
    def scaled(
        self,
        x: pl.Tensor[[16, 16], pl.FP32],
        doubles: pl.Scalar[pl.BOOL],
        times: pl.Scalar[pl.INT32],
        out: pl.Out[pl.Tensor[[16, 16], pl.FP32]],
    ):
        tile = pl.load(x, [0, 0], [16, 16])
        if doubles:
            chosen: pl.Tile[[16, 16], pl.FP32] = pl.yield_(pl.mul(tile, 2.0))
        else:
            chosen: pl.Tile[[16, 16], pl.FP32] = pl.yield_(pl.mul(tile, pl.cast(times, pl.FP32)))
        return pl.store(chosen, [0, 0], out)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        x: pl.Tensor[[16, 16], pl.FP32],
        count: pl.Scalar[pl.INT64],
        given: pl.Scalar[pl.BOOL],
        out: pl.Out[pl.Tensor[[16, 16], pl.FP32]],
    ):
        for i in pl.range(3, 4):
            if given:
                flag: pl.Scalar[pl.INDEX] = pl.yield_(1)
            else:
                flag: pl.Scalar[pl.INDEX] = pl.yield_(0)
            out = self.scaled(x, flag, i, out)
        out = self.scaled(out, 1, 4, out)
        out = self.scaled(out, count, 5, out)
        return out


@pytest.mark.parametrize("count", [0, -7, 1 << 40])
@pytest.mark.parametrize("given", [0, 1, True, False, -2])
def test_any_number_but_zero_is_true(target: str, count: int, given: int) -> None:
    out = np.zeros((16, 16), np.float32)
    ir.compile(Chosen, platform=target)(np.ones((16, 16), np.float32), count, given, out)
    assert (out == (2 if given else 3) * 2 * (2 if count else 5)).all()


@pytest.mark.parametrize("value", [0.5, "yes"])
def test_what_is_no_integer_is_no_condition(value: object) -> None:
    with pytest.raises(TypeError, match="`given` is a scalar of bool"):
        ir.compile(Chosen)(np.ones((16, 16), np.float32), 1, value, np.zeros((16, 16), np.float32))


@pl.jit.incore
def helper(x: pl.Tensor, doubles: pl.Scalar[pl.BOOL], scale: pl.Scalar[pl.FP32], out: pl.Out[pl.Tensor]):
    tile = pl.load(x, [0, 0], [16, 16])
    if doubles:
        chosen: pl.Tile[[16, 16], pl.FP32] = pl.yield_(pl.mul(tile, 2.0))
    else:
        chosen: pl.Tile[[16, 16], pl.FP32] = pl.yield_(pl.mul(tile, scale))
    return pl.store(chosen, [0, 0], out)


@pl.jit
def kernel(x: pl.Tensor, n: pl.Scalar[pl.INT32], given: pl.Scalar[pl.BOOL], out: pl.Out[pl.Tensor]):
    out = helper(x, n, 1.0, out)
    out = helper(out, 1, 1.0, out)
    return helper(out, given, 3.0, out)


@pytest.mark.parametrize("n", [pl.RUNTIME, 4, 0])
def test_kernels_that_are_specialized_take_them_too(n: object) -> None:
    x, out = np.ones((16, 16), np.float32), np.zeros((16, 16), np.float32)
    compiled = kernel.compile(x, n, 1, out)
    number = 0 if n == 0 else 4
    compiled(x, number, 1, out)
    assert (out == (2 if number else 1) * 2 * 2).all()


@pytest.mark.parametrize("given", [0, 5, True])
def test_calls_of_kernels_take_numbers_for_conditions(given: int) -> None:
    out = np.zeros((16, 16), np.float32)
    kernel(np.ones((16, 16), np.float32), 1, given, out)
    assert (out == 4 * (2 if given else 3)).all()


def test_a_printed_yield_is_read_back() -> None:
    assert ir.structural_equal(pl.parse(str(Chosen)), Chosen)
