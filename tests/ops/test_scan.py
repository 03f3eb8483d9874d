"""Scans: what all elements up to each one fold to, natively, by the interpreter, and by NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ops.along import VALID, Uses, sample
from ops.kernels import Array, kernel, out, scalar, tensor
from ops.launched import launched
from ops.native import Native, assert_same

import tilewright.language as pl
from tilewright.dtypes import DataType
from tilewright.errors import AttributeValueError, KernelError, OutOfBoundsError

SCANS: dict[str, Any] = {"cumsum": np.add, "cumprod": np.multiply, "cummax": np.maximum, "cummin": np.minimum}
ULP = {"cumsum": 4, "cumprod": 8}


def scanned(name: str, x: Array, axis: int, is_reverse: bool) -> Array:
    wide: Any = x if x.dtype.kind in "iu" else x.astype(np.float64)
    with np.errstate(all="ignore"):
        if is_reverse:
            return np.flip(SCANS[name].accumulate(np.flip(wide, axis), axis, wide.dtype), axis)
        return SCANS[name].accumulate(wide, axis, wide.dtype)


def give(uses: Uses, name: str, source: str, axis: int, is_reverse: bool) -> None:
    seen = uses.seen[source]
    want, scale = scanned(name, seen, axis, is_reverse).astype(seen.dtype), None
    if seen.dtype.kind not in "iu" and name == "cumsum":
        scale = scanned(name, np.abs(seen), axis, is_reverse)
    ulp = ULP.get(name, 0) if seen.dtype.kind not in "iu" else 0
    uses.give(f"pl.{name}({source}, axis={axis}, reverse={is_reverse})", want, ulp, scale)


@pytest.mark.parametrize("dtype", [pl.FP32, pl.BF16, pl.INT16, pl.UINT64, pl.FP64], ids=str)
def test_every_axis_is_scanned_both_ways(dtype: DataType) -> None:
    uses = Uses(sample(dtype), VALID)
    for number, name in enumerate(SCANS):
        for turn, axis in enumerate((-1, 1, 0)):
            for is_reverse in (False, True):
                give(uses, name, ("whole", "part", "cut")[(number + turn + is_reverse) % 3], axis, is_reverse)
    uses.check()


def test_long_rows_are_summed_as_exactly_as_they_are_stored() -> None:
    uses = Uses(np.random.default_rng(1).uniform(-1, 1, (2, 1100)).astype(np.float32), (2, 1091))
    for is_reverse in (False, True):
        give(uses, "cumsum", "cut", -1, is_reverse)
        give(uses, "cumprod", "cut", -1, is_reverse)
        give(uses, "cummax", "part", -1, is_reverse)
    uses.check()


def test_rows_are_scanned_where_they_lie_and_go_where_they_are_stored() -> None:
    native = Native(
        kernel(
            """
            early = pl.load(y, [0, 0], [6, 33])
            t = pl.load(x, [0, 3], [6, 33], valid_shape=[n, m])
            x = pl.store(pl.cumsum(t, axis=1), [0, 1], x)
            y = pl.store(pl.cummax(pl.load(x, [0, 0], [6, 33]), axis=0, reverse=True), [0, 2], y)
            summed = pl.cumsum(early, axis=-1)
            out = pl.store(summed, [0, 0], out)
            out = pl.store(pl.cumsum(pl.load(out, [1, 0], [2, 33]), axis=1), [0, 3], out)
            more = pl.store(pl.cumsum(pl.load(y, [n, 1], [1, 35]), axis=1), [5, 0], more)
            """,
            x=tensor(pl.FP32, 6, 36),
            y=tensor(pl.FP32, 6, 36),
            n=scalar(pl.INDEX),
            m=scalar(pl.INDEX),
            out=out(pl.FP32, 6, 36),
            more=out(pl.FP32, 6, 36),
        )  # fmt: skip
    )
    rng = np.random.default_rng(2)
    for n, m in ((5, 33), (2, 17), (0, 4)):
        arrays = [rng.integers(-9, 9, (6, 36)).astype(np.float32) for _ in range(4)]
        for got, want in native.run([*arrays[:2], n, m, *arrays[2:]]):
            assert_same(got, want)


def test_long_results_pass_the_caches() -> None:
    native = Native(
        kernel(
            """
            for i in pl.range(0, 70, 2):
                out = pl.store(pl.cumsum(pl.load(x, [i, 0], [2, 16384]), axis=1), [i, 0], out)
            """,
            x=tensor(pl.FP32, 70, 16384),
            out=out(pl.FP32, 70, 16384),
        )
    )
    x = np.random.default_rng(3).integers(-9, 9, (70, 16384)).astype(np.float32)
    room = np.full(x.size + 32, 7, np.float32)
    first = 16 + -room.ctypes.data // 4 % 16
    aligned = np.reshape(room[first : first + x.size], x.shape)
    launched(native.native, native.name, [x, aligned])
    assert_same(aligned, np.cumsum(x, axis=1))
    assert np.all(room[:first] == 7) and np.all(room[first + x.size :] == 7)


def test_nan_stays_and_columns_of_one_are_themselves() -> None:
    x = np.array([[1, np.nan, 3, 0.5], [-0.0, 0.0, -np.inf, 5], [np.inf, -np.inf, 2, 1]], np.float32)
    uses, column = Uses(x, (3, 3)), Uses(np.array(x[:, :1]), (2, 1))
    for name in SCANS:
        for is_reverse in (False, True):
            give(uses, name, "whole", -1, is_reverse)
            give(uses, name, "cut", 0, is_reverse)
            give(column, name, "cut", -1, is_reverse)
            give(column, name, "part", 0, is_reverse)
    uses.check()
    column.check()


def test_nothing_is_scanned_where_nothing_is_valid() -> None:
    body = "a = pl.load(x, [0, 0], [3, 4], valid_shape=[n, m])\n"
    body += "o = pl.store(pl.cumsum(pl.cumsum(a, axis=0), axis=1), [0, 0], o)"
    parameters = {"x": tensor(pl.FP32, 3, 4), "n": scalar(pl.INDEX), "m": scalar(pl.INDEX), "o": out(pl.FP32, 3, 4)}
    native = Native(kernel(body, **parameters))
    for n, m in ((0, 4), (3, 0)):
        _, (got, want) = native.run([sample(pl.FP32, (3, 4)), np.asarray(n), np.asarray(m), np.full((3, 4), 7, "f4")])
        assert (got == 7).all() and (want == 7).all()


@pytest.mark.parametrize("axis", [-1, -2, 0])
def test_tensors_of_any_extents_are_scanned(axis: int) -> None:
    uses = {"cumsum": False, "cumprod": True} if axis == -1 else {"cumsum": True, "cummax": False}
    lines = [f"    o{i}[:] = pl.{name}(x, axis={axis}, reverse={each})" for i, (name, each) in enumerate(uses.items())]
    outputs = ", ".join(f"o{i}: pl.Out[pl.Tensor[[A, B, C], pl.FP32]]" for i in range(len(uses)))
    names = "".join(f'{n} = pl.dynamic("{n}")\n' for n in "ABC")
    head = f"def kernel(x: pl.Tensor[[A, B, C], pl.FP32], {outputs}):"
    function: Any = pl.parse("\n".join([f"{names}@pl.function(type=pl.FunctionType.InCore)", head, *lines]))
    shape = {-1: (1, 2, 2100), -2: (1, 130, 5), 0: (70, 2, 5)}[axis]
    x = np.random.default_rng(2).uniform(0.9, 1.1, shape).astype(np.float32)
    results = Native(function).run([x, *[np.zeros(shape, np.float32) for _ in uses]])[1:]
    for (name, is_reverse), (got, meant) in zip(uses.items(), results, strict=True):
        want = scanned(name, x, axis, is_reverse).astype(np.float32)
        assert_same(got, want, 16 * ULP.get(name, 0))
        assert_same(meant, want, 16 * ULP.get(name, 0))


@pytest.mark.parametrize(
    ("call", "error"), [("pl.cumsum(a, axis=2)", OutOfBoundsError), ("pl.cumsum(a, axis=None)", AttributeValueError)]
)
def test_an_axis_that_is_none_is_refused(call: str, error: type[KernelError]) -> None:
    with pytest.raises(error):
        kernel(f"a = pl.load(x, [0, 0], [3, 4])\nb = {call}", x=tensor(pl.FP32, 3, 4))
