"""Order: elements sorted along an axis, natively, by the interpreter, and by Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ops.along import VALID, Uses, sample
from ops.kernels import Array, kernel, out, scalar, tensor
from ops.native import Native

import tilewright.language as pl
from tilewright.dtypes import DataType
from tilewright.errors import AttributeValueError, ExecutionError, KernelError, NotStaticError, ShapeMismatchError


def places(x: Array, axis: int, descending: bool) -> Array:
    """Return what Python's own sort, which keeps equal elements in order, makes of each row."""
    rows: Any = np.moveaxis(x, axis, -1)
    found = np.zeros(rows.shape, np.int64)
    every: Any = np.ndindex(rows.shape[:-1])
    for row in every:
        elements = rows[row].astype(np.float64).tolist() if x.dtype.kind not in "iu" else rows[row].tolist()
        keys = [(e != e, 0 if e != e else e) for e in elements]
        found[row] = sorted(range(len(keys)), key=keys.__getitem__, reverse=descending)
    return np.moveaxis(found, -1, axis)


def give(uses: Uses, source: str, axis: int, descending: bool) -> None:
    seen = uses.seen[source]
    order = places(seen, axis, descending)
    options = f"{source}, axis={axis}, descending={descending}"
    uses.give(f"pl.sort({options})", np.take_along_axis(seen, order, axis))
    uses.give(f"pl.argsort({options})", order.astype(np.int32))


def give_few(uses: Uses, source: str, k: int, axis: int, largest: bool) -> None:
    seen = uses.seen[source]
    order = np.take(places(seen, axis, largest), range(k), axis)
    call = f"pl.topk({source}, {k}, axis={axis}, largest={largest})"
    uses.give(f"{call}[0]", np.take_along_axis(seen, order, axis))
    uses.give(f"{call}[1]", order.astype(np.int32))


TYPES = [pl.FP32, pl.FP64, pl.BF16, pl.FP16, pl.INT8, pl.UINT16, pl.INT32, pl.UINT32, pl.INT64, pl.UINT64]


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_every_type_is_ordered_along_every_axis(dtype: DataType) -> None:
    uses, long = Uses(sample(dtype), VALID), Uses(_many(dtype), (2, 177))
    for number, axis in enumerate((-1, 1, 0)):
        source = ("part", "cut", "whole")[(number + dtype.bits // 8) % 3]
        give(uses, source, axis, descending=bool(number % 2))
        give_few(uses, source, 2, axis, largest=not number % 2)
    give(long, "cut", -1, descending=False)
    give(long, "whole", -1, descending=True)
    give_few(long, "cut", 9, -1, largest=True)
    give_few(long, "part", 150, -1, largest=False)
    uses.check()
    long.check()


def _many(dtype: DataType) -> Array:
    """Return elements many of which are equal, and some of which are special."""
    rng = np.random.default_rng(5)
    x = rng.integers(-40, 40, (3, 200)).astype(dtype.numpy)
    if dtype.is_float():
        special: Any = rng.choice([np.nan, -np.nan, 0.0, -0.0, np.inf, -np.inf], (3, 200)).astype(dtype.numpy)
        return np.where(rng.uniform(size=(3, 200)) < 0.3, special, x)
    limits = np.array(dtype.limits, dtype.numpy)
    return np.where(rng.uniform(size=(3, 200)) < 0.1, rng.choice(limits, (3, 200)), x)


def test_the_largest_are_found_wherever_they_are() -> None:
    counting = np.arange(700, dtype=np.float32)
    x = np.stack([counting, -counting, np.zeros(700, np.float32), np.full(700, np.nan, np.float32)])
    uses = Uses(x, (4, 650))
    for k in (1, 8, 16, 17, 64, 65):
        give_few(uses, "cut", k, -1, largest=bool(k % 2))
        give_few(uses, "whole", k, -1, largest=True)
    uses.check()


def test_the_rest_of_a_row_is_no_part_of_its_order() -> None:
    function = kernel(
        "a = pl.load(x, [0, 0], [2, 8], valid_shape=[2, n])\no = pl.store(pl.sort(a), [0, 0], o)",
        x=tensor(pl.FP32, 2, 8), n=scalar(pl.INDEX), o=out(pl.FP32, 2, 8),
    )  # fmt: skip
    x = sample(pl.FP32, (2, 8))
    for n in (0, 5):
        _, (got, want) = Native(function).run([x, np.asarray(n), np.full((2, 8), 9, "f4")])
        assert got.tobytes() == want.tobytes()
        np.testing.assert_array_equal(got[:, :n], np.sort(x[:, :n]))
        assert (got[:, n:] == 9).all()


def test_more_elements_than_there_are_cannot_be_taken() -> None:
    function = kernel(
        "a = pl.load(x, [0, 0], [2, 8], valid_shape=[2, n])\no = pl.store(pl.topk(a, 4)[0], [0, 0], o)",
        x=tensor(pl.FP32, 2, 8), n=scalar(pl.INDEX), o=out(pl.FP32, 2, 4),
    )  # fmt: skip
    errors = Native(function).errors([sample(pl.FP32, (2, 8)), np.asarray(3), np.zeros((2, 4), np.float32)])
    assert all(isinstance(error, ExecutionError) and "fewer valid elements" in str(error) for error in errors)


@pytest.mark.parametrize("axis", [0, 1])
def test_tensors_are_ordered_along_an_axis_of_static_extent(axis: int) -> None:
    shape = ("R", 40) if axis else (40, "R")
    few = ("R", 3) if axis else (3, "R")
    parameters = {"x": tensor(pl.FP32, *shape), "a": out(pl.FP32, *shape), "b": out(pl.INT32, *shape)}
    parameters |= {"c": out(pl.FP32, *few), "d": out(pl.INT32, *few)}
    signature = ", ".join(f"{name}: {annotation}" for name, annotation in parameters.items())
    lines = [f"a[:] = pl.sort(x, axis={axis})", f"b[:] = pl.argsort(x, axis={axis}, descending=True)"]
    lines += [f"best, where = pl.topk(x, 3, axis={axis})", "c[:] = best", "d[:] = where"]
    body = "\n".join(f"    {line}" for line in lines)
    head = 'R = pl.dynamic("R")\n@pl.function(type=pl.FunctionType.InCore)'
    function: Any = pl.parse(f"{head}\ndef kernel({signature}):\n{body}\n")
    x = sample(pl.FP32, (21, 40) if axis else (40, 21))
    cut = (21, 3) if axis else (3, 21)
    outputs: list[Array] = [np.zeros(x.shape, np.float32), np.zeros(x.shape, np.int32)]
    outputs += [np.zeros(cut, np.float32), np.zeros(cut, np.int32)]
    up, down = places(x, axis, False), places(x, axis, True)
    first = np.take(down, range(3), axis)
    wanted = (np.take_along_axis(x, up, axis), down, np.take_along_axis(x, first, axis), first)
    for (got, meant), want in zip(Native(function).run([x, *outputs])[1:], wanted, strict=True):
        np.testing.assert_array_equal(got, want)
        np.testing.assert_array_equal(meant, want)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        ("pl.topk(a, 9)", ShapeMismatchError, "fewer valid elements"),
        ("pl.topk(a, 0)", AttributeValueError, "k is a positive integer"),
        ("pl.topk(a, 1.5)", AttributeValueError, "k is a positive integer"),
        ("pl.sort(y)", NotStaticError, "must be static"),
        ("pl.topk(x, 9)", ShapeMismatchError, "fewer valid elements"),
    ],
)
def test_what_cannot_be_ordered_is_said(call: str, error: type[KernelError], words: str) -> None:
    text = f'R = pl.dynamic("R")\n@pl.function(type=pl.FunctionType.InCore)\ndef kernel(x: {tensor(pl.FP32, 2, 8)}, '
    text += f"y: {tensor(pl.FP32, 2, 'R')}):\n    a = pl.load(x, [0, 0], [2, 8])\n    b = {call}\n"
    with pytest.raises(error) as raised:
        pl.parse(text)
    assert words in str(raised.value) and "help:" in str(raised.value)
