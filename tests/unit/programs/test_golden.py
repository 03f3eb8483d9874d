"""Golden checks: tolerances by element type, and the worst element."""

from __future__ import annotations

from typing import Any, cast

import ml_dtypes
import numpy as np
import pytest
import torch

from tilewright.programs.golden import TOLERANCES, GoldenError
from tilewright.runtime import assert_golden

LINE: Any = np.linspace(-4, 4, 12, dtype=np.float32)
X: Any = LINE.reshape(3, 4)


@pytest.mark.parametrize("dtype", [d for d in TOLERANCES if d.bits >= 16], ids=str)
def test_a_type_allows_a_few_of_its_roundings(dtype: Any) -> None:
    step = float(cast(Any, ml_dtypes).finfo(dtype.numpy).eps)
    exact: Any = X.astype(dtype.numpy)
    assert_golden((exact.astype(np.float64) * (1 + step)).astype(dtype.numpy), exact)
    with pytest.raises(GoldenError, match="the result is wrong"):
        assert_golden((exact.astype(np.float64) * 1.1).astype(dtype.numpy), exact)


def test_integers_must_agree() -> None:
    big: Any = np.array([2**62, 5])
    assert_golden(big, big.copy())
    with pytest.raises(GoldenError, match=r"1 of 2 elements are off; the worst at \[0\] is 4611686018427387905"):
        assert_golden(big + [1, 0], big)


def test_the_worst_element_is_shown_with_its_index() -> None:
    actual = X.copy()
    actual[0, 1] += 0.5
    actual[2, 3] += 2
    with pytest.raises(GoldenError) as raised:
        assert_golden(actual, X)
    assert str(raised.value) == (
        "the result is wrong: 2 of 12 elements are off; the worst at [2, 3] is 6.0, expected 4.0: "
        "off by 2, allowed 5e-05\n    float32 against float32, rtol=1e-05, atol=1e-05"
        "\n    [0, 1]: -2.7727273, expected -3.2727273\n    [2, 3]: 6.0, expected 4.0"
    )


def test_the_less_exact_type_decides() -> None:
    assert_golden(X, torch.tensor(X).bfloat16())
    with pytest.raises(GoldenError):
        assert_golden(torch.tensor(X).bfloat16().float(), X)


def test_tolerances_can_be_given() -> None:
    assert_golden(X + 0.1, X, atol=0.11)
    with pytest.raises(GoldenError, match="rtol=0, atol=0"):
        assert_golden(np.nextafter(X, np.float32(9)), X, rtol=0, atol=0)


@pytest.mark.parametrize("wrong", [1.0, np.inf, -np.inf, np.nan])
def test_nan_and_infinities_equal_their_like_alone(wrong: float) -> None:
    special: Any = np.array([1.0, np.inf, -np.inf, np.nan], np.float32)
    assert_golden(special, special.copy())
    for place in range(4):
        changed = special.copy()
        changed[place] = wrong
        if not np.array_equal(changed, special, equal_nan=True):
            with pytest.raises(GoldenError, match=rf"the worst at \[{place}\]"):
                assert_golden(changed, special)


def test_up_to_twenty_elements_are_listed() -> None:
    with pytest.raises(GoldenError) as raised:
        assert_golden(np.ones(30, np.float32), np.zeros(30, np.float32))
    assert str(raised.value).endswith("\n    [19]: 1.0, expected 0.0\n    and 10 more")


def test_what_is_expected_to_be_nan_can_be_left_out() -> None:
    expected: Any = np.array([1.0, np.nan, 3.0], np.float32)
    assert_golden(np.array([1.0, 7.0, 3.0], np.float32), expected, skip_nan=True)
    with pytest.raises(GoldenError, match=r"1 of 3 elements are off; the worst at \[0\]"):
        assert_golden(np.array([np.nan, 7.0, 3.0], np.float32), expected, skip_nan=True)


def test_several_results_are_compared_by_name_or_in_order() -> None:
    assert_golden({"a": X, "b": 3}, {"a": X, "b": 3})
    assert_golden((X, [1, 2]), [X, [1, 2]])
    with pytest.raises(GoldenError, match=r"`b` is wrong: 1 of 1 elements are off; the worst is 4, expected 3"):
        assert_golden({"a": X, "b": 4}, {"a": X, "b": 3})
    with pytest.raises(GoldenError, match=r"the result\[1\] has shape \[3, 4\], expected \[4, 3\]"):
        assert_golden((X, X), (X, X.T))
    with pytest.raises(GoldenError, match="the result is a, expected a, b"):
        assert_golden({"a": X}, {"a": X, "b": 3})


def test_empty_results_agree() -> None:
    assert_golden(np.zeros((0, 3), np.float32), torch.zeros(0, 3))
