"""Choices and conditions: what Python's own words mean where only the running program knows the answer."""

from __future__ import annotations

from textwrap import dedent

import numpy as np
import pytest
from unit.frontend.texts import Array, in_core, jitted, ramp

from tilewright.errors import ExecutionError, StaticAssertionError
from tilewright.runtime import RunConfig

X = ramp(4, 8) - 10


def given(body: str, target: str, x: Array = X, rows: int = 4) -> Array:
    """Return what a kernel gives that stores `t`, a tile of `x`."""
    out = np.zeros((rows, x.shape[1]), np.float32)
    lines = in_core("t = pl.load(x, [0, 0], x.shape)", dedent(body).strip(), "pl.store(t, [0, 0], out)")
    jitted(lines)(x, out, config=RunConfig(platform=target))
    return out


def test_a_conditional_expression_takes_one_side(target: str) -> None:
    body = """
        n = pl.read(x, [0, 0])
        m = pl.cast(n, pl.INT32)
        number = 2.0 if n > 0 else 3.0
        mixed = m if m > 0 else 7
        near = pl.read(x, [1, 1 if n < 0 else 100])
        tile, other = (-t, t) if n < 0 else (pl.exp(t), -t)
        tile = tile if pl.max(other) > 1.0 else other
        t = tile * number + pl.cast(mixed, pl.FP32) + near + (1.0 if n in (-10.0, 5.0) else 0.0)
    """
    np.testing.assert_array_equal(given(body, target), -X * 3 + 7 + X[1, 1] + 1)


def test_one_condition_of_where_is_for_all_elements(target: str) -> None:
    body = """
        n = pl.read(x, [0, 0])
        t = pl.where(n > 0, t, 0.0) + pl.where(n < 0, t, pl.sqrt(t)) + pl.where(True, t, 1.0)
    """
    np.testing.assert_array_equal(given(body, target), 2 * X)


def test_a_loop_asks_a_tile_anew_each_turn(target: str) -> None:
    body = """
        turns = 0
        while pl.max(t) < 100.0:
            turns = turns + 1
            t = t * 2.0
            if turns % 2:
                continue
            t = t + 1.0
    """
    want: Array = X
    turns = 0
    while want.max() < 100:
        turns += 1
        want = want * 2 + (turns + 1) % 2
    np.testing.assert_array_equal(given(body, target), want)


def test_loops_that_ask_tiles_lie_in_each_other_and_are_left(target: str) -> None:
    body = """
        while pl.max(t) < 100.0:
            while pl.min(t) < -20.0:
                t = t + 8.0
            t = t * 2.0
            if pl.min(t) > 50.0:
                break
    """
    want: Array = X
    while want.max() < 100:
        while want.min() < -20:
            want = want + 8
        want = want * 2
        if want.min() > 50:
            break
    np.testing.assert_array_equal(given(body, target), want)


def test_a_number_other_than_zero_is_true(target: str) -> None:
    body = """
        n = pl.read(x, [1, 2])
        for i in range(5):
            if i % 2:
                t = t + 1.0
            if not i % 2:
                t = t + 10.0
            if i not in (1, 3):
                t = t + 100.0
            if (i % 2 and i > 1) or not (i or x.shape[0] == 3):
                t = t + 0.25
        if n or n and n > 1.0:
            t = t + 1000.0
        if 3 and x.shape[0]:
            t = t + 5000.0
    """
    assert X[1, 2] == 0
    np.testing.assert_array_equal(given(body, target), X + 2 + 30 + 300 + 0.5 + 5000)


def test_nan_is_true_and_both_zeros_are_not(target: str) -> None:
    body = """
        for i in range(4):
            if pl.read(x, [0, i]):
                t = t + 1.0
    """
    x = np.array([[np.nan, 0.0, -0.0, 2.0]], np.float32)
    np.testing.assert_array_equal(given(body, target, x, 1), x + 2)


def test_python_functions_take_running_numbers(target: str) -> None:
    body = """
        n, zero = pl.read(x, [0, 0]), pl.read(x, [1, 2])
        i = pl.cast(n, pl.INT32)
        t = t * abs(n) + min(n, 0.5, 2.0) + max((n, 0.5)) + abs(t) + pl.cast(abs(i), pl.FP32) + 1.0 / abs(-zero)
    """
    want: Array = X * 10 - 10 + 0.5 + np.abs(X) + 10 + np.inf
    np.testing.assert_array_equal(given(body, target), want)


def test_dicts_and_stars_are_read_with_the_kernel(target: str) -> None:
    body = """
        first, *rest = (1.0, 2.0, 3.0)
        *_, columns = x.shape
        count = 1
        for i in range(2):
            count = count + 1
        held = {"tile": t, "sum": first + rest[1], **{"count": count}}
        count = count + 100
        where = {"offsets": [0, 0], "shapes": [4, 8]}
        again = pl.load(x, **where) + pl.load(x, *([0, 0], [4, 8]))
        for name, value in {"a": t, "b": again}.items():
            t = t + value * (1.0 if name == "a" else 2.0)
        t = sum([*[t, t], held["tile"]]) + held["sum"] + columns + pl.cast(held["count"], pl.FP32)
    """
    np.testing.assert_array_equal(given(body, target), 2 * (X + X + 4 * X) + X + 4 + 8 + 3)


def test_an_assertion_is_checked_as_soon_as_it_can_be(target: str) -> None:
    with pytest.raises(StaticAssertionError, match="assert failed: of 4"):
        given('assert x.shape[0] == 5, f"of {x.shape[0]}"', target)
    with pytest.raises(ExecutionError, match="`n > 0` does not hold"):
        given("assert x.shape[0] == 4\nn = pl.read(x, [0, 0])\nassert n > 0", target)


def test_the_place_in_all_of_a_tile_keeps_its_axes_where_that_is_asked(target: str) -> None:
    body = "t = t + pl.cast(pl.argmax(t, keepdims=True) - pl.argmin(-t, keepdims=True), pl.FP32)"
    np.testing.assert_array_equal(given(body, target), X)


def test_a_column_of_a_tile_meets_columns_and_matrices(target: str) -> None:
    body = "t = t * t[:, 0] + pl.sum(t, axis=1, keepdims=True) * t[:, 1] + t * t[0] + t[:, 2:3] * t[0]"
    want = X * X[:, :1] + X.sum(1, keepdims=True) * X[:, 1:2] + X * X[:1] + X[:, 2:3] * X[:1]
    np.testing.assert_array_equal(given(body, target), want)
