"""Scans by a function of the author's, natively and by the interpreter, against loops in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from ops.along import VALID, Uses, sample
from ops.kernels import Array, kernel, scalar, tensor
from ops.native import Native, assert_same

import tilewright.language as pl
from tilewright.core.program import Function
from tilewright.errors import ArgumentCountError, KernelError, OperandError, ShapeMismatchError


def scanned(fold: Callable[[Any, Any], Any], x: Array, axis: int, is_reverse: bool = False) -> Array:
    rows = [*np.moveaxis(x.astype(np.float64), axis, 0)]
    rows = rows[::-1] if is_reverse else rows
    for at in range(1, len(rows)):
        rows[at] = fold(rows[at - 1], rows[at])
    return np.moveaxis(np.stack(rows[::-1] if is_reverse else rows), 0, axis)


def test_lambdas_and_ops_fold_along_every_axis() -> None:
    uses = Uses(sample(pl.FP32), VALID)
    folds: dict[str, Callable[[Any, Any], Any]] = {
        "lambda a, b: a + b": lambda a, b: a + b,
        "pl.maximum": np.maximum,
        "lambda part, x: x * 1.0": lambda a, b: b,
        "lambda x, y: x": lambda a, b: a,
    }
    for number, (text, fold) in enumerate(folds.items()):
        for axis in (-1, 1, 0):
            source = ("cut", "part", "whole")[(number + axis) % 3]
            want = scanned(fold, uses.seen[source], axis).astype(np.float32)
            uses.give(f"pl.scan({text}, {source}, axis={axis})", want, 8, np.full(want.shape, 20.0))
        want = scanned(fold, uses.x, -1, True).astype(np.float32)
        uses.give(f"pl.scan({text}, whole, reverse=True)", want, 8, np.full(want.shape, 20.0))
    uses.check()


@pl.jit
def along(x: pl.Tensor, out: pl.Out[pl.Tensor], axis: int):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.scan(pl.maximum, pl.load(x, [0, 0], x.shape), axis=axis), [0, 0], out)
    return out


@pytest.mark.parametrize("axis", [0, 1])
def test_one_element_along_an_axis_is_what_it_was(axis: int) -> None:
    x = np.random.default_rng(0).normal(size=(1, 9) if axis == 0 else (9, 1)).astype(np.float32)
    out = np.zeros_like(x)
    along(x, out, axis)
    np.testing.assert_array_equal(out, x)


RECURRENCE = """
@pl.inline
def linear(left, right):
    kept = left[0] * right[0]
    return kept, left[1] * right[0] + right[1]

@pl.function(type=pl.FunctionType.InCore)
def kernel(
    a: pl.Tensor[[13, 20], pl.FP32], b: pl.Tensor[[13, 20], pl.FP32], n: pl.Scalar[pl.INDEX],
    o: pl.Out[pl.Tensor[[13, 20], pl.FP32]], p: pl.Out[pl.Tensor[[13, 20], pl.FP32]],
):
    decay = pl.load(a, [0, 0], [13, 20])
    _, state = pl.scan(linear, (decay, pl.load(b, [0, 0], [13, 20])), axis=0)
    o = pl.store(state, [0, 0], o)
    some, more = pl.load(a, [0, 0], [13, 20], [13, n]), pl.load(b, [0, 0], [13, 20], [13, n])
    _, last = pl.scan(lambda l, r: (l[0] * r[0], l[1] * r[0] + r[1]), (some, more), axis=1)
    p = pl.store(last, [0, 0], p)
"""


def test_a_recurrence_is_a_scan_of_pairs() -> None:
    function = pl.parse(RECURRENCE)
    assert isinstance(function, Function)
    a, b = np.random.default_rng(7).uniform(0.2, 0.9, (2, 13, 20)).astype(np.float32)
    outputs = [np.zeros((13, 20), np.float32) for _ in range(2)]
    results = Native(function).run([a, b, np.asarray(17), *outputs])[2:]
    for (got, meant), axis in zip(results, (0, 1), strict=True):
        state, want = np.zeros(a.shape[1 - axis]), list[Array]()
        for decay, added in zip(np.moveaxis(a, axis, 0), np.moveaxis(b, axis, 0), strict=True):
            state = state * decay + added
            want.append(state)
        held = np.moveaxis(np.stack(want), 0, axis).astype(np.float32)
        held[:, 17 if axis else 20 :] = 0
        assert_same(got, held, 8, np.full(held.shape, 10.0))
        assert_same(meant, held, 8, np.full(held.shape, 10.0))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        ("pl.scan(lambda a: a, t)", ArgumentCountError, "takes two values"),
        ("pl.scan(t)", ArgumentCountError, "takes a function"),
        ("pl.scan(pl.add, x)", OperandError, "a scan takes tiles"),
        ("pl.scan(lambda a, b: pl.cast(a, pl.FP16), t)", ShapeMismatchError, "gives what it takes"),
        ("pl.scan(lambda a, b: a[0], (t, t))", ShapeMismatchError, "gives what it takes"),
        ("pl.scan(pl.add, (t, pl.load(x, [0, 0], [2, 4])))", ShapeMismatchError, "have one shape"),
    ],
)
def test_what_cannot_be_scanned_is_said(call: str, error: type[KernelError], words: str) -> None:
    with pytest.raises(error) as raised:
        kernel(f"t = pl.load(x, [0, 0], [4, 4])\nb = {call}", x=tensor(pl.FP32, 4, 4), n=scalar(pl.INDEX))
    assert words in str(raised.value)
