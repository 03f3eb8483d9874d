"""Opening parameters: a kernel declared for so much takes a view that turns out to have less."""
# pyright: reportCallIssue=false, reportUnknownVariableType=false
# Functions of a program call each other, which type checkers do not know.

from __future__ import annotations

import pytest
import torch

import tilewright.language as pl
from tilewright import ir
from tilewright.core.program import Program
from tilewright.errors import ExecutionError
from tilewright.ir import PassManager

ROWS, COLS = 4, 16


@pl.program
class Sums:
    """The sum of the first columns of each row, as many as a number says."""

    @pl.function(type=pl.FunctionType.InCore)
    def sums(
        self, x: pl.Tensor[[ROWS, COLS], pl.FP32], out: pl.Out[pl.Tensor[[ROWS, 1], pl.FP32]]
    ) -> pl.Tensor[[ROWS, 1], pl.FP32]:
        return pl.store(pl.row_sum(pl.load(x, [0, 0], [ROWS, COLS])), [0, 0], out)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        x: pl.Tensor[[ROWS, 2 * COLS], pl.FP32],
        width: pl.Scalar[pl.INDEX],
        out: pl.Out[pl.Tensor[[ROWS, 1], pl.FP32]],
    ) -> pl.Tensor[[ROWS, 1], pl.FP32]:
        return self.sums(pl.slice(x, [ROWS, width], [0, 0]), out)


@pytest.mark.parametrize("width", [0, 1, 7, COLS])
def test_a_kernel_sees_as_much_as_a_view_holds(width: int, target: str) -> None:
    x = torch.randn(ROWS, 2 * COLS)
    out = ir.compile(Sums, platform=target)(x, width)
    torch.testing.assert_close(out, x[:, :width].sum(1, keepdim=True))


def test_a_view_larger_than_its_parameter_is_an_error(target: str) -> None:
    with pytest.raises(ExecutionError, match="axis 1 of `x` is longer than the 16 its parameter declares"):
        ir.compile(Sums, platform=target)(torch.randn(ROWS, 2 * COLS), COLS + 1)


def test_the_opened_program_prints_and_parses() -> None:
    lowered = PassManager.get_strategy().run_passes(Sums)
    assert "pl.Tensor[[4, x_1], pl.FP32]" in str(lowered)
    parsed = pl.parse(str(lowered))
    assert isinstance(parsed, Program)
    assert str(parsed) == str(lowered)


def test_what_is_written_keeps_its_extents(target: str) -> None:
    @pl.program
    class Written:
        @pl.function(type=pl.FunctionType.InCore)
        def fill(self, out: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]]) -> pl.Tensor[[ROWS, COLS], pl.FP32]:
            return pl.store(pl.tile.full([ROWS, COLS], dtype=pl.FP32, value=1.0), [0, 0], out)

        @pl.function(type=pl.FunctionType.Orchestration)
        def main(
            self, width: pl.Scalar[pl.INDEX], out: pl.Out[pl.Tensor[[ROWS, 2 * COLS], pl.FP32]]
        ) -> pl.Tensor[[ROWS, 2 * COLS], pl.FP32]:
            part = pl.slice(out, [ROWS, width], [0, 0])
            part = self.fill(part)
            return out

    with pytest.raises(ExecutionError):
        ir.compile(Written, platform=target)(3, torch.zeros(ROWS, 2 * COLS))
