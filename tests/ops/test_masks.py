"""Masks: what compares to what, how masks are joined, and what is chosen by them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from ops.kernels import Array, kernel, out, scalar, tensor
from ops.native import Native, assert_same

import tilewright.language as pl
from tilewright.dtypes import from_numpy
from tilewright.errors import DTypeMismatchError, KernelError, NotStaticError, OutOfBoundsError, ShapeMismatchError

SHAPE = (5, 19)


def held(lines: str, parameters: dict[str, str], values: list[Array | float]) -> list[Array]:
    """Return what native code leaves in each array, which is what the interpreter leaves there."""
    results: list[Array] = []
    for got, want in Native(kernel(lines, **parameters)).run(values):
        assert_same(got, want)
        results.append(got)
    return results


def test_integers_of_any_two_types_compare_as_the_numbers_they_are() -> None:
    rng = np.random.default_rng(3)
    kinds = {"i1": np.int8, "u1": np.uint8, "i4": np.int32, "u4": np.uint32, "i8": np.int64}
    values = {n: rng.integers(np.iinfo(t).min, np.iinfo(t).max, SHAPE, t, endpoint=True) for n, t in kinds.items()}
    values["u1"][0] = values["i1"][0].view(np.uint8)  # equal bits, and other numbers
    values["u4"][0] = values["i4"][0].view(np.uint32)
    pairs = [("u1", "i1"), ("i1", "u4"), ("u4", "i4"), ("i8", "u4"), ("u1", "i8")]
    lines = [f"t_{name} = pl.load({name}, [0, 0], [5, 19])" for name in kinds]
    lines += [f"o{n} = pl.store((t_{a} < t_{b}) | (t_{a} == t_{b}), [0, 0], o{n})" for n, (a, b) in enumerate(pairs)]
    types = {name: tensor(from_numpy(np.dtype(t)), *SHAPE) for name, t in kinds.items()}
    outs = {f"o{n}": out(pl.BOOL, *SHAPE) for n in range(len(pairs))}
    masks = held("\n".join(lines), types | outs, [*values.values(), *(np.zeros(SHAPE, bool) for _ in pairs)])
    for mask, (a, b) in zip(masks[len(kinds) :], pairs, strict=True):
        want = [
            [int(p) <= int(q) for p, q in zip(*rows, strict=True)] for rows in zip(values[a], values[b], strict=True)
        ]
        assert mask.tolist() == want


def test_a_running_index_and_an_integer_beyond_the_elements_compare() -> None:
    x = np.reshape(np.arange(95, dtype=np.int8), SHAPE)
    lines = """
    t = pl.load(x, [0, 0], [5, 19])
    a = pl.store(t < n, [0, 0], a)
    b = pl.store(m > t, [0, 0], b)
    """
    types = {"x": tensor(pl.INT8, *SHAPE), "n": scalar(pl.INDEX), "m": scalar(pl.INT32)}
    types |= {"a": out(pl.BOOL, *SHAPE), "b": out(pl.BOOL, *SHAPE)}
    _, a, b = held(lines, types, [x, 40, 300, np.zeros(SHAPE, bool), np.zeros(SHAPE, bool)])
    assert (a == (x < 40)).all() and b.all()


CHOICES = """
t = pl.load(x, [0, 0], [5, 19])
row = pl.load(y, [0, 0], [1, 19])
column = pl.load(z, [0, 0], [5, 1])
inner = (column <= t < row) ^ pl.isnan(t)
a = pl.store(pl.where(inner, t, row), [0, 0], a)
b = pl.store(pl.where(~inner & (column != row), 1, 2), [0, 0], b)
c = pl.store(pl.where(row > column, pl.load(h, [0, 0], [5, 19]), t), [0, 0], c)
d = pl.store(pl.where(inner | (t == 0.0), inner, True), [0, 0], d)
e = pl.store(pl.where(inner, 0.5, n), [0, 0], e)
f = pl.store(pl.sel(inner, t, pl.sels(~inner, t, scalar=3.0)), [0, 0], f)
"""


def test_masks_broadcast_and_choose_as_numpy_does() -> None:
    rng = np.random.default_rng(4)
    x, y, z = (rng.integers(-2, 3, s).astype(np.float32) for s in (SHAPE, (1, 19), (5, 1)))
    x[1, 3:7] = [np.nan, -0.0, np.inf, -np.inf]
    h = rng.normal(size=SHAPE).astype(np.float16)
    types = {"x": tensor(pl.FP32, *SHAPE), "y": tensor(pl.FP32, 1, 19), "z": tensor(pl.FP32, 5, 1)}
    types |= {"h": tensor(pl.FP16, *SHAPE), "n": scalar(pl.INT32)}
    kinds = {"a": np.float32, "b": np.int32, "c": np.float32, "d": bool, "e": np.float32, "f": np.float32}
    types |= {name: out(from_numpy(np.dtype(t)), *SHAPE) for name, t in kinds.items()}
    values: list[Array | float] = [x, y, z, h, 7, *(np.zeros(SHAPE, t) for t in kinds.values())]
    inner = ((z <= x) & (x < y)) ^ np.isnan(x)
    want = [np.where(inner, x, y), np.where(~inner & (z != y), 1, 2), np.where(y > z, h, x)]
    want += [np.where(inner | (x == 0), inner, True), np.where(inner, np.float32(0.5), np.float32(7)), x]
    for got, expected in zip(held(CHOICES, types, values)[4:], want, strict=True):
        np.testing.assert_array_equal(got, expected)


M, N = pl.dynamic("M"), pl.dynamic("N")


@pl.jit
def banded(
    x: pl.Tensor[[M, N], pl.FP32],
    allowed: pl.Tensor[[M, N], pl.BOOL],
    out: pl.Out[pl.Tensor[[M, N], pl.FP32]],
    seen: pl.Out[pl.Tensor[[M, N], pl.BOOL]],
):
    for r in pl.parallel(0, M, 16):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [r, 0], [16, 64], clamp=True)
            mask = pl.load(allowed, [r, 0], [16, 64], clamp=True) & (t < 1)
            pl.store(mask, [r, 0], seen)
            pl.store(pl.where(mask, t, -1.0), [r, 0], out)
    return out


def test_a_mask_of_torch_bools_goes_in_and_comes_out() -> None:
    x, allowed = torch.randn(37, 50), torch.rand(37, 50) > 0.5
    result, seen = torch.empty(37, 50), torch.empty(37, 50, dtype=torch.bool)
    banded(x, allowed, result, seen)
    assert torch.equal(seen, allowed & (x < 1))
    assert torch.equal(result, torch.where(allowed & (x < 1), x, -1.0))


@pl.jit
def rectified(x: pl.Tensor[[M, N], pl.FP32], out: pl.Out[pl.Tensor[[M, N], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        out = pl.assemble(out, pl.where((x > 0) | pl.isnan(x), x, 0.0), [0, 0])
    return out


def test_masks_of_whole_tensors_of_any_extent_choose() -> None:
    x = np.random.default_rng(5).normal(size=(33, 70)).astype(np.float32)
    x[3, 4] = np.nan
    np.testing.assert_array_equal(rectified(x), np.where((x > 0) | np.isnan(x), x, 0))


@pl.jit
def lower(x: pl.Tensor[[M, N], pl.FP32], out: pl.Out[pl.Tensor[[M, N], pl.FP32]]):
    for r in pl.parallel(0, M, 16):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [r, 0], [16, 64], clamp=True)
            seen = pl.arange(64) <= r + pl.iota([16, 1], axis=0)
            pl.store(pl.where(seen, t, -1.0), [r, 0], out)
            pl.store(t, [r, 0], out, mask=(t > 2) & seen)
            pl.store(pl.where(~seen, 0.0, t), [r, 0], out, mask=t > 1)
    return out


def test_what_is_chosen_is_valid_where_the_data_is() -> None:
    x = torch.randn(37, 50) * 2
    assert torch.equal(lower(x), torch.where(x > 1, x.tril(), torch.where(torch.ones(37, 50).tril() > 0, x, -1.0)))


COUNTED = """
    r = pl.cast(n, pl.INDEX)
    rows, columns = r + pl.iota([5, 1], axis=0), pl.arange(r - 2, r + 17)
    a = pl.store(pl.where((columns >= rows) & (columns != 12), 2 * rows + columns, -1), [0, 0], a)
    b = pl.store(pl.arange(8, -11, -3) + pl.iota([2, 7], step=-2, start=n), [0, 0], b)
    c = pl.store(pl.arange(0.5, 2, 0.25), [0], c)
    d = pl.store(pl.iota([3, 1, 4], axis=0, start=250, step=5, dtype=pl.UINT8), [0, 0, 0], d)
    e = pl.store(pl.iota([3, 1, 4], axis=1, start=3, dtype=pl.FP16), [0, 0, 0], e)
"""


@pytest.mark.parametrize("range_", [(0.1, 0.7, 0.2), (-1.0, 1.0, 0.01), (1.0, 0.0, -0.1), (0.0, 0.3, 0.1)])
def test_as_many_floats_are_counted_as_numpy_counts(range_: tuple[float, float, float]) -> None:
    want = np.arange(*range_)
    (found,) = held(
        f"o = pl.store(pl.arange{range_}, [0], o)", {"o": out(pl.FP32, len(want))}, [np.zeros(len(want), np.float32)]
    )
    np.testing.assert_allclose(found, want, atol=1e-6)


def test_numbers_count_along_any_axis_as_numpys_do() -> None:
    outs = {"a": np.zeros((5, 19), np.int32), "b": np.zeros((2, 7), np.int32), "c": np.zeros(6, np.float32)}
    outs |= {"d": np.zeros((3, 1, 4), np.uint8), "e": np.zeros((3, 1, 4), np.float16)}
    types = {"n": scalar(pl.INT32)} | {name: out(from_numpy(x.dtype), *x.shape) for name, x in outs.items()}
    a, b, c, d, e = held(COUNTED, types, [6, *outs.values()])
    rows, columns = 6 + np.arange(5)[:, None], np.arange(4, 23)
    np.testing.assert_array_equal(a, np.where((columns >= rows) & (columns != 12), 2 * rows + columns, -1))
    np.testing.assert_array_equal(b, np.broadcast_to(np.arange(8, -11, -3) + 6 - 2 * np.arange(7), (2, 7)))
    np.testing.assert_array_equal(c, np.arange(0.5, 2, 0.25))
    assert d[:, 0, 1].tolist() == [250, 255, 4] and (e == 3).all()


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("pl.arange(n)", NotStaticError, "how many numbers"),
        ("pl.arange(0, 8, n)", NotStaticError, "how many numbers"),
        ("pl.arange(3, 3)", ShapeMismatchError, "nothing to count"),
        ("pl.arange(0, 8, 0)", ShapeMismatchError, "steps of zero"),
        ("pl.arange(0, 8, 0.5, dtype=pl.INT32)", KernelError, "fractions|floats"),
        ("pl.iota([4, 8], axis=2)", OutOfBoundsError, "none of number 2"),
    ],
)
def test_what_cannot_be_counted_is_refused(text: str, error: type[KernelError], message: str) -> None:
    with pytest.raises(error, match=message):
        kernel(f"t = {text}", n=scalar(pl.INDEX))


def test_a_float_scalar_does_not_compare_with_integers() -> None:
    with pytest.raises(DTypeMismatchError, match="a scalar of fp32 does not compare with int32 elements"):
        kernel("m = pl.load(x, [0, 0], [4, 4]) < n", x=tensor(pl.INT32, 4, 4), n=scalar(pl.FP32))
