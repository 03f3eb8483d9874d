"""Axes: values folded along some axes, natively, by the interpreter, and by torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from ops.along import VALID, Uses, in_torch, sample
from ops.kernels import Array, kernel, out, run, scalar, tensor
from ops.native import Native

import tilewright.language as pl
from tilewright.dtypes import DataType
from tilewright.errors import AttributeValueError, ExecutionError, KernelError, OutOfBoundsError, ShapeMismatchError

Axis = int | tuple[int, ...] | None
AXES: list[Axis] = [-1, 1, 0, (0, 2), (-1, -2), None]
ULP = {"sum": 4, "prod": 8, "mean": 6, "var": 16, "softmax": 8, "log_softmax": 8}


def _prod(x: torch.Tensor, dim: tuple[int, ...], keepdim: bool) -> torch.Tensor:
    for axis in sorted(dim, reverse=True):
        x = torch.prod(x, axis, keepdim=keepdim)
    return x


def _mean(x: torch.Tensor, dim: tuple[int, ...], keepdim: bool) -> torch.Tensor:
    return torch.mean(x.double(), dim, keepdim)


def _var(x: torch.Tensor, dim: tuple[int, ...], keepdim: bool) -> torch.Tensor:
    return torch.var(x.double(), dim, keepdim=keepdim)


FOLDS: dict[str, Callable[..., torch.Tensor]] = {
    "sum": torch.sum,
    "max": torch.amax,
    "min": torch.amin,
    "prod": _prod,
    "mean": _mean,
    "var": _var,
}
"""What each op means, over elements that hold sums."""


@pytest.mark.parametrize("dtype", [pl.FP32, pl.BF16, pl.INT16, pl.FP64], ids=str)
def test_values_fold_along_axes_as_in_torch(dtype: DataType) -> None:
    uses = Uses(sample(dtype), VALID)
    for number, name in enumerate(FOLDS):
        for turn, axis in enumerate(AXES):
            _fold(uses, name, axis, ("whole", "part", "cut")[(number + turn) % 3], dtype)
    uses.check()


def _fold(uses: Uses, name: str, axis: Axis, source: str, dtype: DataType) -> None:
    seen = uses.seen[source]
    dims = tuple(d % 3 for d in (range(3) if axis is None else axis if isinstance(axis, tuple) else (axis,)))
    keepdims = axis == (0, 2)
    want = FOLDS[name](in_torch(seen), dim=dims, keepdim=keepdims).numpy()
    scale = FOLDS[name](in_torch(np.abs(seen)), dim=dims, keepdim=keepdims).numpy() if name in ("sum", "mean") else None
    is_float = dtype.is_float() or name in ("mean", "var")
    held = want.astype(dtype.numpy if dtype.is_float() or not is_float else np.float32)
    call = f"pl.{name}({source}, axis={axis}, keepdims={keepdims})"
    less = 8 if dtype == pl.FP64 else 1  # torch rounds every step, too
    uses.give(call, held, less * ULP.get(name, 0) * is_float, scale if is_float else None)


@pytest.mark.parametrize("dtype", [pl.FP32, pl.INT32, pl.UINT8, pl.FP16], ids=str)
def test_positions_are_found_along_axes_as_in_torch(dtype: DataType) -> None:
    uses = Uses(np.abs(sample(dtype)) if dtype == pl.UINT8 else sample(dtype), VALID)
    flat = Uses(uses.x[0], VALID[1:])
    for name in ("argmax", "argmin"):
        find = getattr(np, name)
        for axis, source in ((-1, "part"), (1, "cut"), (0, "cut"), (0, "whole")):
            wide = uses.seen[source].astype(np.float64)
            uses.give(f"pl.{name}({source}, axis={axis})", find(wide, axis=axis).astype(np.int32))
            kept = np.expand_dims(find(wide, axis=axis), axis).astype(np.int32)
            uses.give(f"pl.{name}({source}, axis={axis}, keepdims=True)", kept)
        uses.give(f"pl.{name}(whole)", np.asarray(find(uses.x.astype(np.float64)), np.int32))
        for source in ("part", "cut"):
            masked = np.full(flat.x.shape, -np.inf if name == "argmax" else np.inf)
            masked[:4, :17] = flat.seen[source]
            flat.give(f"pl.{name}({source})", np.asarray(find(masked), np.int32))
    uses.check()
    flat.check()


@pytest.mark.parametrize("dtype", [pl.FP32, pl.BF16, pl.INT32, pl.FP64], ids=str)
def test_shares_along_an_axis_are_those_of_torch(dtype: DataType) -> None:
    uses = Uses(sample(dtype), VALID)
    for name in ("softmax", "log_softmax"):
        for axis, source in ((-1, "part"), (1, "cut"), (0, "whole")):
            want = getattr(torch, name)(in_torch(uses.seen[source]).double(), axis).numpy()
            held = want.astype(dtype.numpy if dtype.is_float() else np.float32)
            scale = np.full(want.shape, np.abs(want).max()) if name == "log_softmax" else np.maximum(want, 1e-30)
            uses.give(f"pl.{name}({source}, axis={axis})", held, 8, scale)
    uses.check()


def test_masks_are_counted_and_decided() -> None:
    uses = Uses(sample(pl.FP32), VALID)
    for number, axis in enumerate(AXES):
        source = ("cut", "whole", "part")[number % 3]
        dims = None if axis is None else axis
        mask = uses.seen[source] > 0.9
        for name, of, held in (("any", mask, np.bool_), ("all", ~mask, np.bool_), ("sum", mask, np.int32)):
            want = np.asarray(getattr(np, name)(of, axis=dims), held)
            call = f"pl.{name}({source} {'<=' if name == 'all' else '>'} 0.9, axis={axis})"
            uses.give(call if want.ndim or name == "sum" else f"({call})", want)
    uses.give("pl.mean(part > 0.0, axis=1)", np.asarray(np.mean(uses.seen["part"] > 0, axis=1), np.float32), 2)
    uses.give("pl.argmax(part > 0.5, axis=-1)", np.argmax(uses.seen["part"] > 0.5, axis=-1).astype(np.int32))
    uses.give("pl.cumsum(cut > 0.5, axis=-1)", np.cumsum(uses.seen["cut"] > 0.5, axis=-1, dtype=np.int32))
    uses.give("pl.cumsum(cut > 0.5, axis=1)", np.cumsum(uses.seen["cut"] > 0.5, axis=1, dtype=np.int32))
    uses.give("pl.any(part, axis=-1)", np.any(uses.seen["part"], axis=-1))
    mask = uses.seen["part"] > 0.5
    uses.give("pl.max(part > 0.5, axis=-1)", mask.max(-1))
    uses.give("pl.min(part > 0.5, axis=1, keepdims=True)", mask.min(1, keepdims=True))
    uses.give("pl.prod(part > 0.5, axis=-1)", mask.prod(-1, dtype=np.int32))
    uses.give("pl.sort(part > 0.5, axis=-1)", np.sort(mask, -1))
    uses.give("pl.argsort(part > 0.5, axis=1)", np.argsort(mask, 1, kind="stable").astype(np.int32))
    uses.give("pl.topk(part > 0.5, 2, axis=-1)[0]", np.sort(mask, -1)[..., :-3:-1])
    uses.check()


def test_some_or_every_one_of_nothing() -> None:
    body = "a = pl.load(x, [0, 0], [3, 4], valid_shape=[3, n]) > 0.0\n"
    body += "p = pl.store(pl.any(a, axis=1), [0], p)\nq = pl.store(pl.all(a, axis=1), [0], q)\n"
    body += "if pl.all(a):\n    r = pl.write(r, [0], 1.0)"
    parameters = {"x": tensor(pl.FP32, 3, 4), "n": scalar(pl.INDEX), "p": out(pl.BOOL, 3), "q": out(pl.BOOL, 3)}
    native = Native(kernel(body, **parameters, r=out(pl.FP32, 1)))
    given = [np.ones((3, 4), np.float32), np.asarray(0), *(np.full(3, v) for v in (True, False)), np.zeros(1, "f4")]
    for got, meant in native.run(given)[1:]:
        np.testing.assert_array_equal(got, meant)
        assert not got.any() or got.all()
    assert not native.run(given)[1][0].any() and native.run(given)[2][0].all()


def test_nan_and_zeros_fold_as_in_torch() -> None:
    x = np.array([[1, np.nan, 3, np.nan], [-0.0, -0.0, -0.0, -0.0], [np.inf, -np.inf, 2, 2]], np.float32)
    uses = Uses(x, (3, 4))
    for name, find in (("max", torch.amax), ("min", torch.amin), ("sum", torch.sum), ("argmax", torch.argmax)):
        want = find(torch.as_tensor(x), 1).numpy()
        uses.give(f"pl.{name}(whole, axis=1)", want.astype(np.int32) if name == "argmax" else want)
    uses.check()


def test_the_square_of_a_mean_is_not_lost() -> None:
    x = (1e4 + sample(pl.FP32, (4, 64))).astype(np.float32)
    function = kernel(
        "a = pl.load(x, [0, 0], [4, 64])\no = pl.store(pl.var(a, axis=-1, correction=0), [0], o)",
        x=tensor(pl.FP32, 4, 64),
        o=out(pl.FP32, 4),
    )
    np.testing.assert_allclose(run(function, x), np.var(x.astype(np.float64), axis=1), rtol=1e-5)


def test_nothing_folds_to_what_an_op_starts_with() -> None:
    x = sample(pl.FP32, (3, 4))
    body = "a = pl.load(x, [0, 0], [3, 4], valid_shape=[3, n])\n"
    names = {"sum": 0, "prod": 1, "max": -np.inf, "min": np.inf, "mean": np.nan}
    body += "\n".join(f"{n}_ = pl.store(pl.{n}(a, axis=1), [0], {n}_)" for n in names)
    parameters = {"x": tensor(pl.FP32, 3, 4), "n": scalar(pl.INDEX)} | {f"{n}_": out(pl.FP32, 3) for n in names}
    native = Native(kernel(body, **parameters))
    results = native.run([x, np.asarray(0), *[np.zeros(3, np.float32) for _ in names]])[1:]
    for (got, meant), want in zip(results, names.values(), strict=True):
        np.testing.assert_array_equal(got, np.full(3, want, np.float32))
        np.testing.assert_array_equal(got, meant)


def test_the_place_of_nothing_is_an_error() -> None:
    function = kernel(
        "a = pl.load(x, [0, 0], [3, 4], valid_shape=[3, n])\no = pl.store(pl.argmax(a, axis=1), [0], o)",
        x=tensor(pl.FP32, 3, 4), n=scalar(pl.INDEX), o=out(pl.INT32, 3),
    )  # fmt: skip
    errors = Native(function).errors([sample(pl.FP32, (3, 4)), np.asarray(0), np.zeros(3, np.int32)])
    assert all(isinstance(error, ExecutionError) and "no element to choose" in str(error) for error in errors)


def test_a_number_of_all_elements_goes_on_in_scalar_arithmetic() -> None:
    x = sample(pl.FP32, (3, 4))
    function = kernel(
        "a = pl.load(x, [0, 0], [3, 4])\nbest = pl.max(pl.max(a), pl.min(a)) + 1.0\no = pl.store(a - best, [0, 0], o)",
        x=tensor(pl.FP32, 3, 4),
        o=out(pl.FP32, 3, 4),
    )
    np.testing.assert_allclose(run(function, x), x - (x.max() + 1), rtol=1e-6)


@pytest.mark.parametrize(("rows", "columns"), [(3, 40), ("R", "C")])
def test_tensors_fold_as_tiles_do(rows: int | str, columns: int | str) -> None:
    x = sample(pl.FP32, (3, 40))
    lines = [
        "a = pl.sum(x, axis=1)", "o0[:] = a",
        "b = pl.max(x, axis=0, keepdims=True)", "o1[:] = b",
        "c = pl.argmax(x, axis=1, keepdims=True)", "o2[:] = c",
        "d = pl.softmax(x)", "o3[:] = d",
        "pl.write(o4, [0], pl.mean(x))",
    ]  # fmt: skip
    shapes = {"o0": (rows,), "o1": (1, columns), "o2": (rows, 1), "o3": (rows, columns), "o4": (1,)}
    names = [f'{n} = pl.dynamic("{n}")\n' for n in (rows, columns) if isinstance(n, str)]
    given = {n: out(pl.INT32 if n == "o2" else pl.FP32, *shape) for n, shape in shapes.items()}
    signature = ", ".join(f"{n}: {a}" for n, a in {"x": tensor(pl.FP32, rows, columns), **given}.items())
    body = "\n".join(f"    {line}" for line in lines)
    text = f"{''.join(names)}@pl.function(type=pl.FunctionType.InCore)\ndef kernel({signature}):\n{body}\n"
    function: Any = pl.parse(text)
    sizes = ((3,), (1, 40), (3, 1), (3, 40), (1,))
    outputs: list[Array] = [np.zeros(s, np.int32 if s == (3, 1) else np.float32) for s in sizes]
    wide = x.astype(np.float64)
    powers = np.exp(wide - wide.max(1, keepdims=True))
    shares = powers / powers.sum(1, keepdims=True)
    places = wide.argmax(1)[:, None]
    wanted = (wide.sum(1), wide.max(0)[None], places, shares, np.array([wide.mean()]))
    for (got, meant), want in zip(Native(function).run([x, *outputs])[1:], wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(meant, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        ("pl.sum(a, axis=2)", OutOfBoundsError, "axis 2 of tile[3, 4, fp32] does not exist"),
        ("pl.sum(a, axis=(0, -2))", AttributeValueError, "named twice"),
        ("pl.sum(a, axis=0.5)", AttributeValueError, "an axis is an integer"),
        ("pl.argmax(a, axis=(0, 1))", AttributeValueError, "one axis is needed"),
        ("pl.var(a, correction='one')", AttributeValueError, "correction is a number"),
        ("pl.sum(1.0)", KernelError, "must be a tile or a tensor, got 1.0"),
        ("pl.argmax(pl.load(y, [0, 0, 0], [2, 2, 2], [1, 1, 1]))", ShapeMismatchError, "two axes"),
    ],
)  # fmt: skip
def test_what_cannot_be_folded_is_said(call: str, error: type[KernelError], words: str) -> None:
    with pytest.raises(error) as raised:
        lines = f"a = pl.load(x, [0, 0], [3, 4])\nb = {call}"
        kernel(lines, x=tensor(pl.FP32, 3, 4), y=tensor(pl.FP32, 2, 2, 2))
    assert words in str(raised.value) and "help:" in str(raised.value)
