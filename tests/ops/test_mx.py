"""Scaled products: small floats with a power of two for every 32 of them, and the order of those in memory."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from ops.kernels import Array, kernel, launch, out, run, scalar, tensor

import tilewright.language as pl
from tilewright.errors import (
    AttributeValueError,
    DTypeMismatchError,
    ExecutionError,
    OperandError,
    ShapeMismatchError,
)

pytestmark = pytest.mark.usefixtures("on_target")

M, K, N = 32, 128, 64
G = K // 32
SMALL: Any = ml_dtypes.float8_e4m3fn
POWER: Any = ml_dtypes.float8_e8m0fnu


def small(seed: int, *shape: int) -> Array:
    return np.random.default_rng(seed).uniform(-6, 6, shape).astype(np.float32).astype(SMALL)


def powers(seed: int, *shape: int, low: int = 120, high: int = 135) -> Array:
    return coded(np.random.default_rng(seed).integers(low, high, shape))


def coded(codes: Array) -> Array:
    given: Any = codes.astype(np.uint8)
    return given.view(POWER)


def codes_of(scale: Array) -> Array:
    given: Any = np.ascontiguousarray(scale)
    return given.view(np.uint8).astype(np.float64)


def product(a: Array, left: Array, b: Array, right: Array) -> Array:
    """Return a scaled product, one step of the inner axis after the other."""
    total = np.zeros((a.shape[0], b.shape[1]))
    for k in range(a.shape[1]):
        x = a[:, k].astype(np.float64) * 2.0 ** (codes_of(left[:, k // 32]) - 127)
        y = b[k].astype(np.float64) * 2.0 ** (codes_of(right[k // 32]) - 127)
        total += np.outer(x, y)
    return total


PARAMETERS = {
    "x": tensor(pl.FP8E4M3FN, M, K),
    "p": tensor(pl.FP8E8M0, M, G),
    "y": tensor(pl.FP8E4M3FN, K, N),
    "q": tensor(pl.FP8E8M0, G, N),
}
LOADS = f"""
a = pl.load(x, [0, 0], [{M}, {K}], valid_shape=[m, k])
b = pl.load(y, [0, 0], [{K}, {N}], valid_shape=[k, n])
left = pl.move(pl.load(p, [0, 0], [{M}, {G}], target_memory=pl.Mem.Mat), target_memory=pl.Mem.LeftScale)
right = pl.move(pl.load(q, [0, 0], [{G}, {N}], target_memory=pl.Mem.Mat), target_memory=pl.Mem.RightScale)
"""
SIZES = {name: scalar(pl.INDEX) for name in "mkn"}
CASES = [(M, K, N), (5, K, N), (M, 97, N), (M, K, 7), (3, 100, 33), (0, K, N)]


@pytest.mark.parametrize("form", ["plain", "acc", "bias", "statement"])
def test_a_scaled_product(form: str) -> None:
    call = {
        "plain": "r = pl.matmul_mx(a, left, b, right)",
        "acc": "r = pl.tile.matmul_mx_acc(c, a, left, b, right)",
        "bias": "r = pl.matmul_mx_bias(a, left, b, right, pl.slice(c, [1, 64], [0, 0]))",
        "statement": "r = pl.move(c, target_memory=pl.Mem.Acc)\npl.matmul_mx_acc(r, a, left, b, right)",
    }[form]
    body = f"{LOADS}c = pl.load(z, [0, 0], [{M}, {N}])\n{call}\nout = pl.store(r, [0, 0], out)"
    function = kernel(body, **PARAMETERS, **SIZES, z=tensor(pl.FP32, M, N), out=out(pl.FP32, M, N))
    a, b, left, right = small(1, M, K), small(2, K, N), powers(3, M, G), powers(4, G, N)
    c = np.random.default_rng(5).standard_normal((M, N)).astype(np.float32)
    for m, k, n in CASES:
        want = np.full((M, N), -1.0)
        exact = product(a[:, :k], left, b[:k], right)
        exact = exact if form == "plain" else exact + (c[:1] if form == "bias" else c)
        want[:m, :n] = exact[:m, :n]
        result = run(function, a, left, b, right, m, k, n, c, fill=-1)
        np.testing.assert_allclose(result, want, rtol=1e-5, atol=1e-4)


def test_powers_of_any_size_meet() -> None:
    body = f"{LOADS}out = pl.store(pl.matmul_mx(a, left, b, right), [0, 0], out)"
    function = kernel(body, **PARAMETERS, **SIZES, out=out(pl.FP32, M, N))
    a, b, codes = small(1, M, K), small(2, K, N), np.array([[0, 254, 3, 200]])
    left, right = coded(np.repeat(codes, M, axis=0)), coded(254 - np.repeat(np.transpose(codes), N, axis=1))
    want = product(a, left, b, right)
    np.testing.assert_allclose(run(function, a, left, b, right, M, K, N), want, rtol=1e-5, atol=1e-4)


def test_an_exponent_that_is_none_makes_the_product_none() -> None:
    body = f"{LOADS}out = pl.store(pl.matmul_mx(a, left, b, right), [0, 0], out)"
    function = kernel(body, **PARAMETERS, **SIZES, out=out(pl.FP32, M, N))
    codes = np.full((M, G), 127)
    codes[3, 1] = 255
    result = run(function, small(1, M, K), coded(codes), small(2, K, N), powers(4, G, N), M, K, N)
    assert np.isnan(result[3]).all() and np.isfinite(np.delete(result, 3, 0)).all()


ORDERED = {
    "p": f"pl.Tensor[[{M}, {G}], pl.FP8E8M0, pl.MX_A_ZZ]",
    "q": f"pl.Tensor[[{G}, {N}], pl.FP8E8M0, pl.MX_B_NN]",
}


@pytest.mark.parametrize(("m", "n", "g", "h"), [(0, 0, 0, 0), (16, 32, 2, 2), (5, 7, 1, 3), (30, 60, 3, 2)])
def test_exponents_are_put_in_order(m: int, n: int, g: int, h: int) -> None:
    body = """
    left = pl.load(p, [m, g], [16, 4], target_memory=pl.Mem.Mat, clamp=True)
    right = pl.load(q, [h, n], [4, 16], target_memory=pl.Mem.Mat, clamp=True)
    rows = pl.store(pl.cast(left, pl.FP32), [0, 0], rows)
    columns = pl.store(pl.cast(right, pl.FP32), [0, 0], columns)
    """
    numbers = {name: scalar(pl.INDEX) for name in "mngh"}
    function = kernel(body, **ORDERED, **numbers, rows=out(pl.FP32, 16, 4), columns=out(pl.FP32, 4, 16))
    p, q = powers(1, M, G), powers(2, G, N)
    a, b = (np.reshape(each, -1).astype(np.float32) for each in (p, q))
    left = [[a[((i // 16 * (G // 2) + j // 2) * 16 + i % 16) * 2 + j % 2] for j in range(G)] for i in range(M)]
    right = [[b[((j // 16 * (G // 2) + i // 2) * 16 + j % 16) * 2 + i % 2] for j in range(N)] for i in range(G)]
    rows, columns = np.full((16, 4), -1, np.float32), np.full((4, 16), -1, np.float32)
    launch(function, p, q, m, n, g, h, rows, columns)
    for result, whole, at in ((rows, np.array(left), (m, g)), (columns, np.array(right), (h, n))):
        live = whole[at[0] : at[0] + result.shape[0], at[1] : at[1] + result.shape[1]]
        want = np.full(result.shape, -1, np.float32)
        want[: live.shape[0], : live.shape[1]] = live
        np.testing.assert_array_equal(result, want)


def test_how_much_is_valid_is_checked_when_it_runs() -> None:
    body = f"{LOADS}out = pl.store(pl.matmul_mx(a, left, b, right), [0, 0], out)"
    function = kernel(body, **PARAMETERS, **SIZES, out=out(pl.FP32, M, N))
    with pytest.raises(ExecutionError, match="not given as much as it needs"):
        run(function, small(1, M, K), powers(3, M, G), small(2, K, N), powers(4, G, N), M, 96, N)


def test_exponents_that_are_not_there_are_not_read() -> None:
    loads = LOADS.replace(f"[{G}, {N}], target", f"[{G}, {N}], valid_shape=[{G}, m], target")
    body = f"{loads}out = pl.store(pl.matmul_mx(a, left, b, right), [0, 0], out)"
    function = kernel(body, **PARAMETERS, **SIZES, out=out(pl.FP32, M, N))
    with pytest.raises(ExecutionError, match="exponents that are not there"):
        run(function, small(1, M, K), powers(3, M, G), small(2, K, N), powers(4, G, N), M, K, N)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        ("pl.matmul_mx(pl.cast(a, pl.FP16), left, b, right)", DTypeMismatchError, "`lhs` must hold fp8e4m3fn"),
        ("pl.matmul_mx(a, b, b, right)", DTypeMismatchError, "`lhs_scale` must hold fp8e8m0"),
        ("pl.matmul_mx(a, right, b, right)", ShapeMismatchError, r"`lhs_scale` must be of shape \[32, 4\]"),
        ("pl.matmul_mx(a, left, b, left)", ShapeMismatchError, r"`rhs_scale` must be of shape \[4, 64\]"),
        ("pl.matmul_mx(a, left, a, right)", ShapeMismatchError, "equal inner sizes"),
        ("pl.matmul_mx(pl.slice(a, [8, 128], [0, 0]), left, b, right)", ShapeMismatchError, "M must be a multiple"),
        ("pl.matmul_mx(a, left, pl.slice(b, [128, 16], [0, 0]), right)", ShapeMismatchError, "N must be a multiple"),
        ("pl.matmul_mx(pl.set_validshape(a, 32, 96), left, b, right)", ShapeMismatchError, "not given as much"),
        ("pl.matmul_mx_acc(left, a, left, b, right)", ShapeMismatchError, "acc must be shaped like the product"),
        ("pl.matmul_mx_bias(a, left, b, right, left)", ShapeMismatchError, "bias must be fp32"),
    ],
)
def test_what_is_refused(call: str, error: type[Exception], message: str) -> None:
    loads = LOADS.replace("[m, k]", f"[{M}, {K}]").replace("[k, n]", f"[{K}, {N}]")
    with pytest.raises(error, match=message):
        kernel(f"{loads}r = {call}", **PARAMETERS)


MAT = "target_memory=pl.Mem.Mat"


@pytest.mark.parametrize(
    ("given", "use", "error", "message"),
    [
        ("[32, 4], pl.FP8E8M0", "pl.load(p, [0, 0], [32, 4])", AttributeValueError, "to pl.Mem.Mat"),
        ("[32, 4], pl.FP8E8M0", f"pl.load(p, [0, 0], [8, 4], {MAT}, pad=0.0)", AttributeValueError, "without padding"),
        ("[24, 4], pl.FP8E8M0", f"pl.load(p, [0, 0], [8, 4], {MAT})", ShapeMismatchError, "16 by 2"),
        ("[32, 4], pl.INT8", f"pl.load(p, [0, 0], [8, 4], {MAT})", DTypeMismatchError, "fp8e8m0"),
        ("[32, 4], pl.FP8E8M0", "pl.slice(p, [8, 4], [0, 0])", OperandError, "in the order MX_A_ZZ"),
        ("[32, 4], pl.FP8E8M0", "pl.transpose(p, 0, 1)", OperandError, "in the order MX_A_ZZ"),
    ],
)
def test_what_cannot_be_put_in_order(given: str, use: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        kernel(f"r = {use}", p=f"pl.Tensor[{given}, pl.MX_A_ZZ]")
