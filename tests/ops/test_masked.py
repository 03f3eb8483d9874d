"""Masked loads and stores: what lies outside a mask is neither read nor written, wherever it would be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ops.kernels import Array, inout, kernel, out, scalar, tensor
from ops.native import Native, assert_same

import tilewright.language as pl
from tilewright.dtypes import from_numpy
from tilewright.errors import AttributeValueError, DTypeMismatchError, KernelError, ShapeMismatchError

WINDOWS = """
    rows, columns = r + pl.iota([9, 1], axis=0), c + pl.arange(40)
    there = (rows >= 0) & (rows < 5) & (columns >= 0) & (columns < 37)
    t = pl.load(x, [r, c], [9, 40], mask=there, pad=-1.5)
    a = pl.store(t + 0.5, [0, 0], a)
    u = pl.load(x, [0, 3], [5, 1], mask=pl.iota([5, 1], axis=0) > 1)
    b = pl.store(u, [0, 0], b)
    line = pl.load(y, [c], [40], mask=(columns >= 0) & (columns < 37) & (columns % 3 == 1))
    d = pl.store(line, [0], d)
    odd = pl.load(h, [0, 0], [5, 37], mask=pl.load(x, [0, 0], [5, 37]) > pl.row_max(u), other=7.0)
    e = pl.store(odd, [0, 0], e)
    flags = pl.load(z, [r, c], [9, 40], mask=there)
    f = pl.store(flags & there, [0, 0], f)
""".replace("columns % 3 == 1", "pl.rem(columns, 3) == 1")


def moved(x: Array, start: tuple[int, ...], shape: tuple[int, ...], pad: Any) -> Array:
    """Return what lies in a window of an array that may reach past its edges."""
    room = max(map(abs, start)) + max(shape)
    first = [room + at for at in start]
    window = tuple(slice(at, at + size) for at, size in zip(first, shape, strict=True))
    return np.pad(x, room, constant_values=pad)[window]


@pytest.mark.parametrize("start", [(0, 0), (-3, -2), (1, 20), (-40, 3)])
def test_a_masked_load_reads_what_is_admitted_and_pads_the_rest(start: tuple[int, int]) -> None:
    rng = np.random.default_rng(7)
    x, y = rng.normal(size=(5, 37)).astype(np.float32), np.arange(37, dtype=np.int32)
    h, z = rng.normal(size=(5, 37)).astype(np.float16), rng.random((5, 37)) < 0.5
    outs = {"a": np.zeros((9, 40), np.float32), "b": np.zeros((5, 1), np.float32), "d": np.zeros(40, np.int32)}
    outs |= {"e": np.zeros((5, 37), np.float16), "f": np.zeros((9, 40), bool)}
    given = {"x": x, "y": y, "h": h, "z": z}
    types = {name: tensor(from_numpy(value.dtype), *value.shape) for name, value in given.items()}
    types |= {"r": scalar(pl.INDEX), "c": scalar(pl.INDEX)}
    types |= {name: out(from_numpy(value.dtype), *value.shape) for name, value in outs.items()}
    found = Native(kernel(WINDOWS, **types)).run([*given.values(), *start, *outs.values()])
    for got, meant in found:
        assert_same(got, meant)
    a, b, d, e, f = (got for got, _ in found[4:])
    np.testing.assert_array_equal(a, moved(x, start, (9, 40), -1.5) + np.float32(0.5))
    np.testing.assert_array_equal(b, np.where(np.arange(5)[:, None] > 1, x[:, 3:4], 0))
    line = moved(y, start[1:], (40,), -1)
    np.testing.assert_array_equal(d, np.where(line % 3 == 1, line, 0))
    np.testing.assert_array_equal(e, np.where(x > b, h, np.float16(7)))
    np.testing.assert_array_equal(f, moved(z, start, (9, 40), False))


STORES = """
    rows, columns = r + pl.iota([9, 1], axis=0), c + pl.arange(40)
    t = pl.cast(100 * rows + columns, pl.FP32)
    inside = (rows >= 0) & (rows < 5) & (columns >= 0) & (columns < 37)
    a = pl.store(t, [r, c], a, mask=inside & (pl.rem(columns, 2) == 0))
    part = pl.set_validshape(t, 4, n)
    b = pl.store(part, [0, 0], b, mask=part_of > pl.row_sum(part_of))
    d = pl.store(pl.cast(columns, pl.INT8), [2, 1, c], d, mask=(columns >= 0) & (columns < 37))
    e = pl.store(pl.row_max(t), [r, 1], e, mask=(rows >= 0) & (rows < 5))
""".replace("part_of > pl.row_sum(part_of)", "t > pl.row_sum(t) / 40")


@pytest.mark.parametrize("start", [(0, 0), (-3, -2), (1, 20), (-40, 3)])
def test_a_masked_store_writes_what_is_admitted(start: tuple[int, int]) -> None:
    (r, c), n = start, 11
    a, e = np.full((5, 37), 7, np.float32), np.full((5, 2), 7, np.float32)
    b, d = np.full((9, 40), 7, np.float32), np.full((3, 2, 37), 7, np.int8)
    types = {"r": scalar(pl.INDEX), "c": scalar(pl.INDEX), "n": scalar(pl.INDEX)}
    types |= {name: inout(from_numpy(x.dtype), *x.shape) for name, x in {"a": a, "b": b, "d": d, "e": e}.items()}
    found = Native(kernel(STORES, **types)).run([r, c, n, a, b, d, e])
    for got, meant in found:
        assert_same(got, meant)
    got_a, got_b, got_d, got_e = (got for got, _ in found)
    rows, columns = np.arange(5)[:, None], np.arange(37)
    seen = (rows >= r) & (rows < r + 9) & (columns >= c) & (columns < c + 40)
    np.testing.assert_array_equal(got_a, np.where(seen & (columns % 2 == 0), 100 * rows + columns, 7))
    t = (100 * (r + np.arange(9)[:, None]) + c + np.arange(40)).astype(np.float32)
    part = (np.arange(9)[:, None] < 4) & (np.arange(40) < n) & (t > t.mean(axis=1, keepdims=True))
    np.testing.assert_array_equal(got_b, np.where(part, t, 7))
    want = np.full((3, 2, 37), 7, np.int8)
    want[2, 1] = np.where((columns >= c) & (columns < c + 40), columns, 7)
    np.testing.assert_array_equal(got_d, want)
    inner = (np.arange(5) >= r) & (np.arange(5) < r + 9)
    np.testing.assert_array_equal(got_e[:, 1], np.where(inner, 100 * np.arange(5) + c + 39, 7))
    assert (got_e[:, 0] == 7).all()


@pytest.mark.parametrize("n", [0, 1])
def test_a_column_that_may_not_be_there_is_stored_by_a_mask(n: int) -> None:
    lines = """
    t = pl.load(x, [0, 0], [5, 1])
    seen = pl.iota([5, 1], axis=0) > 1
    a = pl.store(pl.set_validshape(t, 4, n), [0, 0], a, mask=seen)
    b = pl.store(pl.load(y, [0], [1], valid_shape=[n]), [0], b, mask=pl.iota([1]) < 1)
    c = pl.store(pl.set_validshape(t + 1.0, n, 1), [0, 0], c, mask=t > -9.0)
    """
    types = {"x": tensor(pl.FP32, 5, 1), "y": tensor(pl.FP32, 1), "n": scalar(pl.INDEX)}
    types |= {"a": inout(pl.FP32, 5, 1), "b": inout(pl.FP32, 1), "c": inout(pl.FP32, 5, 1)}
    x, y = np.reshape(np.arange(5, dtype=np.float32), (5, 1)), np.full(1, 3, np.float32)
    outs = [np.full(shape, 7, np.float32) for shape in ((5, 1), 1, (5, 1))]
    found = Native(kernel(lines, **types)).run([x, y, n, *outs])
    for got, meant in found:
        assert_same(got, meant)
    assert found[2][0].ravel().tolist() == ([7, 7, 2, 3, 7] if n else [7] * 5)
    assert found[3][0].tolist() == [3 if n else 7] and found[4][0][0, 0] == (1 if n else 7)


def test_an_element_that_a_mask_admits_has_to_be_there() -> None:
    lines = """
    columns = n + pl.arange(40)
    t = pl.load(x, [n], [40], mask=columns < m)
    out = pl.store(t, [n], out, mask=(columns >= 0) & (columns < k))
    """
    sizes = {"n": scalar(pl.INDEX), "m": scalar(pl.INDEX), "k": scalar(pl.INDEX)}
    native = Native(kernel(lines, x=tensor(pl.FP32, 64), out=inout(pl.FP32, 64), **sizes))
    x = np.ones(64, np.float32)
    for n, m, k, works in ((30, 64, 64, True), (-5, 64, 64, False), (30, 65, 64, False), (30, 64, 65, False)):
        native_error, meant = native.errors([x, np.array(x), n, m, k])
        assert (native_error is None) == (meant is None) == works
        assert works or "a mask is True" in str(native_error)


VIEWED = """
    turned = pl.transpose(x, 0, 1)
    t = pl.load(turned, [-1, 0], [40, 5], mask=(pl.iota([40, 1], axis=0) > n) & (pl.iota([40, 1], axis=0) < 38))
    out = pl.store(t, [0, 0], out)
"""


def test_a_masked_load_follows_strides() -> None:
    x = np.random.default_rng(8).normal(size=(5, 37)).astype(np.float32)
    function = kernel(VIEWED, x=tensor(pl.FP32, 5, 37), n=scalar(pl.INT32), out=out(pl.FP32, 40, 5))
    _, (got, want) = Native(function).run([x, 2, np.zeros((40, 5), np.float32)])
    assert_same(got, want)
    np.testing.assert_array_equal(got[3:38], np.transpose(x)[2:])
    assert not got[:3].any() and not got[38:].any()


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ("pl.load(x, [0, 0], [8, 8], mask=t)", DTypeMismatchError, "a mask has bool elements"),
        ("pl.load(x, [0, 0], [8, 8], mask=pl.iota([8, 4]) > 0)", ShapeMismatchError, r"a mask of \[8, 4\]"),
        ("pl.load(x, [0, 0], [8, 8], mask=True)", KernelError, "must be a tile"),
        ("pl.load(x, [0, 0], [8, 8], valid_shape=[4, 4], mask=t > 0)", AttributeValueError, "or `valid_shape`"),
        ("pl.load(x, [0, 0], [8, 8], mask=pl.set_validshape(t, 4, 4) > 0)", ShapeMismatchError, "everywhere"),
        ("pl.store(t, [0, 0], x, atomic=pl.AtomicType.Add, mask=t > 0)", AttributeValueError, "or `atomic`"),
    ],
)
def test_a_mask_that_does_not_fit_is_refused(given: str, error: type[KernelError], message: str) -> None:
    with pytest.raises(error, match=message):
        kernel(f"t = pl.load(x, [0, 0], [8, 8])\nu = {given}", x=inout(pl.FP32, 16, 16))
