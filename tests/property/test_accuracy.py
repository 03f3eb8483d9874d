"""Accuracy: what ops allow passes, and what is only a little more does not."""

from __future__ import annotations

import numpy as np
import pytest
from property.accuracy import assert_within_declared_accuracy
from property.running import Outcome, outcome, parsed

from tilewright.core.op import OPS
from tilewright.core.program import Program


def program(*lines: str) -> Program:
    body = "\n".join(f"        {line}" for line in ["t = pl.load(x, [0, 0], [4, 9])", *lines])
    return parsed(f"""
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, x: pl.Tensor[[4, 9], pl.FP32], y: pl.InOut[pl.Tensor[[4, 9], pl.FP32]]):
{body}
""")


def check(program: Program, steps: float) -> None:
    """Check what a program leaves with one of its elements some units of the last place off."""
    exact = outcome(program, 1)
    x, y = (np.array(tensor) for tensor in exact.tensors)
    y[2, 5] += steps * np.spacing(np.abs(y[2, 5]))
    assert_within_declared_accuracy(program, 1, Outcome((x, y), ()), exact)


EXACT = program("pl.store(pl.mul(t, t), [0, 0], y)")
INEXACT = program("pl.store(pl.exp(t), [0, 0], y)")
FEWER = program("pl.store(pl.cast(pl.cast(pl.exp(t), pl.FP16), pl.FP32), [0, 0], y)")
ULP = OPS["tile.exp"].spec.ulp


@pytest.mark.parametrize("program", [EXACT, INEXACT, FEWER])
def test_the_same_is_right(program: Program) -> None:
    check(program, 0)


def test_exact_ops_allow_nothing() -> None:
    with pytest.raises(AssertionError, match=r"result 1, float32: 1 of 36 differ, first at \(2, 5\)"):
        check(EXACT, 1)


def test_what_an_op_declares_is_right() -> None:
    check(INEXACT, ULP)


def test_more_than_what_an_op_declares_is_wrong() -> None:
    with pytest.raises(AssertionError, match="within accuracy"):
        check(INEXACT, 8 * ULP)


def test_a_wrong_number_is_wrong_whatever_came_before() -> None:
    with pytest.raises(AssertionError, match="within accuracy"):
        check(FEWER, 1 << 14)


def no_number_for_infinity(program: Program) -> None:
    """Check a program with NaN for one of the infinities that it leaves."""
    exact = outcome(program, 1)
    x, y = (np.array(tensor) for tensor in exact.tensors)
    assert np.isinf(y[2, 5])
    y[2, 5] = np.nan
    assert_within_declared_accuracy(program, 1, Outcome((x, y), ()), exact)


def test_of_products_too_large_for_floats_any_order_is_right() -> None:
    huge = "pl.mul(pl.add(pl.abs(t), 1.0), 1e30)"
    no_number_for_infinity(program(f"pl.store(pl.row_expand(t, pl.row_prod({huge})), [0, 0], y)"))


def test_no_number_is_wrong_where_nothing_is_inexact() -> None:
    with pytest.raises(AssertionError, match=r"native np.float32\(nan\), interpreter np.float32\(inf\)"):
        no_number_for_infinity(program("pl.store(pl.mul(pl.add(pl.abs(t), 1.0), 3.4e38) * 9.0, [0, 0], y)"))
