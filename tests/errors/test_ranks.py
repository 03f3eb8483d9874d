"""Programs of many ranks: every mistake that can be seen before they run, with its class and what is said."""

from __future__ import annotations

import re

import pytest
from conftest import Golden
from errors.ranks import CASES, Case

import tilewright.language as pl
from tilewright.errors import KernelError


def raised(case: Case) -> KernelError:
    with pytest.raises(KernelError) as caught:
        pl.parse(case.text, "ranks.py")
    return caught.value


@pytest.mark.parametrize("case", CASES, ids=lambda case: (case.kernel or case.host).replace("\n", " ")[-60:])
def test_a_mistake_is_refused_by_class_and_words(case: Case) -> None:
    error = raised(case)
    assert isinstance(error, getattr(pl.parser, case.error)), type(error).__mro__
    assert case.quoted in error.message
    assert error.span is not None


def test_the_messages_are_these(golden: Golden) -> None:
    messages = [re.sub(r"ranks\.py#\d+", "ranks.py", str(raised(case))) for case in CASES]
    golden("ranks.txt", "\n\n".join(messages) + "\n")


@pytest.mark.parametrize("word", ["[4, 8])", "64, dtype=pl.FP32)"])
def test_how_a_buffer_is_laid_out_is_a_matter_of_values(word: str) -> None:
    case = next(case for case in CASES if case.host.endswith(word))
    assert isinstance(raised(case), ValueError)
