"""Directives: every way to write one wrongly, with its class of mistake and what the message says."""

from __future__ import annotations

import re
from textwrap import indent

import pytest
from conftest import Golden
from errors.directives import CASES, FUNCTIONS, Case

import tilewright.language as pl
from tilewright.errors import KernelError

PROGRAM = """\
import tilewright.language as pl

LEVEL = pl.Level.CORE_GROUP
FLAG = True


@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, x: pl.Tensor[[16, 16], pl.FP32], out: pl.Out[pl.Tensor[[16, 16], pl.FP32]]):
        return pl.store(pl.load(x, [0, 0], [16, 16]), [0, 0], out)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self, x: pl.Tensor[[16, 16], pl.FP32], flag: pl.Tensor[[4], pl.INT32], n: pl.Scalar[pl.INDEX],
        out: pl.Out[pl.Tensor[[16, 16], pl.FP32]],
    ):
"""


def raised(case: Case) -> KernelError:
    """Return the mistake that reading a case raises."""
    text = case.body if case.body.startswith("@") else PROGRAM + indent(case.body, " " * 8) + "\n"
    with pytest.raises(KernelError) as caught:
        pl.parse(text, "kernel.py")
    return caught.value


each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.body.replace("\n", " "))


@each_case
def test_a_directive_is_refused_by_class_and_words(case: Case) -> None:
    error = raised(case)
    assert isinstance(error, getattr(pl.parser, case.error)), error
    assert case.quoted in error.message
    assert error.span is not None and error.hint


def test_the_messages_are_these(golden: Golden) -> None:
    messages = [re.sub(r"\.py#\d+", ".py", str(raised(case))) for case in CASES]
    golden("directives.txt", "\n\n".join(messages) + "\n")


@pytest.mark.parametrize("body", FUNCTIONS)
def test_a_directive_is_accepted(body: str) -> None:
    program = pl.parse(PROGRAM + indent(body, " " * 8) + "\n")
    again = pl.parse(str(program))
    assert str(again) == str(program)
