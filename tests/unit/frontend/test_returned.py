"""Returned parameters: what a function certainly gives back, read off its statements."""

from __future__ import annotations

import pytest

import tilewright.language as pl
from tilewright.core.program import Program
from tilewright.frontend.outputs import returned_parameters

HEAD = """
import tilewright.language as pl

@pl.program
class P:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[8, 8], pl.FP32], n: pl.Scalar[pl.INT32], a: pl.Out[pl.Tensor[[8, 8], pl.FP32]],
             b: pl.Out[pl.Tensor[[8, 8], pl.FP32]]){returns}:
"""
STORE = "with pl.at(level=pl.Level.CORE_GROUP):\n    {0} = pl.store(pl.load(x, [0, 0], [8, 8]), [0, 0], {0})"
LOOP = "for i in pl.range(3):\n    " + STORE.replace("\n", "\n    ")
MATRIX = "pl.Tensor[[8, 8], pl.FP32]"


def found(returns: str, *statements: str) -> tuple[int, ...] | None:
    lines = "\n".join(statements).splitlines()
    text = HEAD.format(returns=returns) + "\n".join(f"        {line}" for line in lines) + "\n"
    program = pl.parse(text)
    assert isinstance(program, Program)
    return returned_parameters(program["main"])


@pytest.mark.parametrize(
    ("returns", "statements", "expected"),
    [
        ("", [STORE.format("a"), STORE.format("b")], (2, 3)),
        (f" -> {MATRIX}", [STORE.format("a"), STORE.format("b"), "return a"], (2,)),
        (f" -> {MATRIX}", [LOOP.format("b"), "return b"], (3,)),
        (f" -> tuple[{MATRIX}, {MATRIX}]", [STORE.format("a"), STORE.format("b"), "return b, a"], (3, 2)),
        (f" -> {MATRIX}", ["c = a", STORE.format("c"), "return c"], (2,)),
        (f" -> {MATRIX}", ["if n > 0:", "    a = b", STORE.format("a"), "return a"], None),
        (f" -> {MATRIX}", ["c = a", "if n > 0:", "    c = b", STORE.format("c"), "return c"], None),
        (f" -> {MATRIX}", [STORE.format("a"), "c = pl.create_tensor([8, 8], dtype=pl.FP32)", "return c"], None),
    ],
)  # fmt: skip
def test_what_is_certainly_given_back(returns: str, statements: list[str], expected: tuple[int, ...] | None) -> None:
    assert found(returns, *statements) == expected
