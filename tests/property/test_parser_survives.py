"""The front end survives anything: a broken kernel gives a located mistake, or a program that the passes can read."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from property.broken import TEXTS, mutated

import tilewright.language as pl
from tilewright.errors import DroppedWriteWarning, KernelError
from tilewright.ir import PassManager


def survive(text: str) -> None:
    """Fail unless a text gives a program the passes can read, or a mistake that is located and can be shown."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            PassManager.get_strategy().run_passes(pl.parse(text))
    except KernelError as error:
        assert error.place.is_known, error
        assert "^" in str(error)


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_the_kernels_to_break_work(text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DroppedWriteWarning)
        PassManager.get_strategy().run_passes(pl.parse(text))


@settings(max_examples=300, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(text=st.sampled_from(list(TEXTS.values())), random=st.randoms(use_true_random=False))
def test_a_broken_kernel_gives_a_located_mistake(text: str, random: Random) -> None:
    survive(mutated(text, random))


SIGNATURE = "@pl.function\ndef kernel(x: pl.Tensor[[64, 64], pl.FP32], n: pl.Scalar[pl.INT32]):\n"
DEEP: dict[str, Callable[[int], str]] = {
    "parentheses": lambda n: f"    y = {'(' * n}n{')' * n}\n",
    "brackets": lambda n: f"    y = {'[' * n}{']' * n}\n",
    "sum": lambda n: f"    y = {' + '.join(['n'] * n)}\n",
    "sum of tensors": lambda n: f"    y = {' + '.join(['x'] * n)}\n",
    "sum of constants": lambda n: f"    y = {' + '.join(['1'] * n)}\n",
    "signs": lambda n: f"    y = {'-' * n}n\n",
    "conditions": lambda n: f"    y = {' and '.join(['n > 0'] * n)}\n",
    "attributes": lambda n: f"    y = pl{'.tile' * n}\n",
    "calls": lambda n: f"    y = {'pl.exp(' * n}x{')' * n}\n",
    "branches": lambda n: "".join(f"    {' ' * i}if n > {i}:\n" for i in range(n)) + f"    {' ' * n}pass\n",
    "alternatives": lambda n: "    if n > 0:\n        pass\n" + "    elif n > 0:\n        pass\n" * n,
    "statements": lambda n: "    y = n\n" + "    y = y + n\n" * n,
}


@pytest.mark.parametrize("depth", [50, 150, 300, 2000])
@pytest.mark.parametrize("body", DEEP.values(), ids=DEEP.keys())
def test_depth_is_no_crash(body: Callable[[int], str], depth: int) -> None:
    survive(SIGNATURE + body(depth))


@pytest.mark.parametrize("text", ["", "\n", "\x00", "\ud800", "x = 'a\x0cb'\n@pl.function\ndef k(x):\n  pass", "é = ("])
def test_any_text_is_no_crash(text: str) -> None:
    with pytest.raises(KernelError) as caught:
        pl.parse(text)
    assert caught.value.place.is_known
    assert str(caught.value)
