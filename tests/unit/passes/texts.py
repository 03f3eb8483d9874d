"""Programs as a few lines of text, and what a pass makes of them."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import dedent, indent

import tilewright.language as pl
from tilewright.core.equality import assert_structural_equal
from tilewright.core.program import Program
from tilewright.frontend.programs import as_program

PARAMS = (
    "x: pl.Tensor[[16, 8], pl.FP32], y: pl.InOut[pl.Tensor[[16, 8], pl.FP32]], "
    "n: pl.Scalar[pl.INDEX], a: pl.Scalar[pl.FP32], b: pl.Scalar[pl.BOOL]"
)
"""The parameters of every function written with `main`, unless it says otherwise."""

Pass = Callable[[Program], Program]


def function(name: str, body: str, kind: str = "Orchestration", params: str = PARAMS) -> str:
    """Return the text of one function of a program."""
    head = f"@pl.function(type=pl.FunctionType.{kind})\ndef {name}(self, {params}):\n"
    return head + indent(dedent(body).strip(), "    ") + "\n"


def program(*functions: str) -> Program:
    """Return the program of some functions; the names M and N are dynamic extents."""
    text = "\n".join(functions)
    parsed = pl.parse('M = pl.dynamic("M")\nN = pl.dynamic("N")\n@pl.program\nclass P:\n' + indent(text, "    "))
    return as_program(parsed)


def main(body: str, kind: str = "Orchestration", params: str = PARAMS) -> Program:
    """Return the program of one function called `main`."""
    return program(function("main", body, kind, params))


def kernel(body: str, params: str = PARAMS) -> Program:
    """Return the program of one InCore function called `main`."""
    return main(body, "InCore", params)


def gives(run: Pass, before: Program, after: Program) -> None:
    """Fail unless a pass turns one program into another."""
    assert_structural_equal(after, run(before))


def leaves(run: Pass, before: Program) -> None:
    """Fail unless a pass leaves a program as it is."""
    gives(run, before, before)
