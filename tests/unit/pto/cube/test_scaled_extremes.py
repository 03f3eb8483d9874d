"""Scaled products whose powers of two are extreme, or none: held to NumPy, which scales what is summed as doubles."""

from __future__ import annotations

from typing import Any, cast

import ml_dtypes
import numpy
import pytest
from unit.pto.cube.writing import run

from tilewright.pto.examples.lines import example
from tilewright.pto.text.parser import parse

np = cast("Any", numpy)
K, N = 64, 32
_FORMATS = {"f8E4M3FN": (3, 7, ml_dtypes.float8_e4m3fn), "f8E5M2": (2, 15, ml_dtypes.float8_e5m2)}
"""The bits of a fraction, and what an exponent is stored with."""


def decoded(name: str, codes: Any) -> Any:
    """Return the numbers of bytes: a sign, an exponent and a fraction."""
    (bits, bias, _), codes = _FORMATS[name], codes.astype(np.int64)
    exponent, fraction = codes >> bits & (1 << 7 - bits) - 1, codes & (1 << bits) - 1
    whole = np.where(exponent > 0, 1 << bits, 0) + fraction
    made = np.ldexp(whole.astype(np.float64), np.maximum(exponent, 1) - bias - bits)
    if bits == 3:
        made = np.where(codes & 0x7F == 0x7F, np.nan, made)
    else:
        made = np.where(exponent == 31, np.where(fraction == 0, np.inf, np.nan), made)
    return np.where(codes & 0x80, -made, made)


def powers(codes: Any) -> Any:
    return np.where(codes == 255, np.nan, np.ldexp(1.0, codes.astype(np.int64) - 127))


def meeting(rng: Any, rows: int) -> tuple[Any, Any]:
    """Return exponents of both sides whose powers make up for each other."""
    left = rng.choice([0, 20, 127, 200, 254], (1, K // 32))
    sides = left + rng.integers(-3, 4, (rows, K // 32)), 254 - left.T + rng.integers(-3, 4, (K // 32, N))
    return tuple(np.clip(each, 0, 254).astype(np.uint8) for each in sides)  # pyright: ignore


def extreme(rng: Any, rows: int) -> tuple[Any, Any]:
    """Return exponents at both ends, and such as stand for no number."""
    ends = np.array([0, 1, 2, 64, 126, 127, 128, 190, 252, 253, 254, 254, 0, 255], np.uint8)
    return rng.choice(ends, (rows, K // 32)), rng.choice(ends, (K // 32, N))


def check(got: Any, terms: Any, added: Any) -> None:
    """Hold a product to the sum of its terms, as far as that is rounded."""
    with np.errstate(all="ignore"):
        want = (terms.sum(1) + added).astype(np.float32)
        np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
        np.testing.assert_array_equal(np.where(np.isinf(got), got, 0), np.where(np.isinf(want), want, 0))
        apart = np.abs(got.astype(np.float64) - want.astype(np.float64))
        size = np.abs(terms).sum(1) + np.abs(added)
    assert (apart <= size * 2.0**-22 + 2.0**-149)[np.isfinite(want)].all()


@pytest.mark.parametrize("drawn", [meeting, extreme])
@pytest.mark.parametrize("element", _FORMATS)
@pytest.mark.parametrize("op", [f"{name}.mx{end}" for name in ("tmatmul", "tgemv") for end in ("", ".acc", ".bias")])
def test_tiles(op: str, element: str, drawn: Any, target: str) -> None:
    rows, rng = 1 if op.startswith("tgemv") else 16, np.random.default_rng(len(op))
    text = example(f"pto.{op}").replace("f8E4M3FN", element)
    *_, func = parse(text).funcs()
    a, b = (rng.integers(0, 256, shape).astype(np.uint8) for shape in ((16, K), (K, N)))
    if drawn is extreme:  # NaN in a factor would be all that is left
        a, b = a & 0xBB, b & 0xBB
    i, j = drawn(rng, 16)
    added = rng.normal(size=(1, N) if "bias" in op else (16, N)).astype(np.float32) * (op.count(".") > 1)
    floats = _FORMATS[element][2]
    exponents = ml_dtypes.float8_e8m0fnu
    given = {
        "a": a.view(floats), "b": b.view(floats), "i": i.view(exponents), "j": j.view(exponents),
        "c": added, "x": added, "out": np.zeros((16, N), np.float32),
    }  # fmt: skip
    arguments = [given[each.name.removesuffix("_gm")] for each in func.arguments]
    run(text, target, *[np.array(each) if each is not given["out"] else each for each in arguments])
    with np.errstate(all="ignore"):
        left = decoded(element, a) * np.repeat(powers(i), 32, 1)
        right = decoded(element, b) * np.repeat(powers(j), 32, 0)
        terms = left[:, :, None] * right[None]
    check(given["out"][:rows], terms[:rows], added[: 1 if "bias" in op else rows])


@pytest.mark.parametrize("drawn", [meeting, extreme])
@pytest.mark.parametrize("op", ["mad_mx", "mad_mx_acc", "mad_mx_bias", "mad_mx_raw", "mad_mx_bias_raw"])
def test_matrices_of_the_cube(op: str, drawn: Any, target: str) -> None:
    rng, text = np.random.default_rng(len(op)), example(f"pto.{op}")
    x, y = (rng.integers(0, 256, shape).astype(np.uint8) for shape in ((16, K), (K, N)))
    if drawn is extreme:
        x, y = x & 0xBB, y & 0xBB
    i, j = drawn(rng, 16)
    u, v = i, np.ascontiguousarray(j.T)
    w, out = rng.normal(size=N).astype(np.float32), np.zeros((16, N), np.float32)
    floats = ml_dtypes.float8_e4m3fn
    run(text, target, x.view(floats), y.view(floats), u, v, *[w] * ("bias" in op), out)
    with np.errstate(all="ignore"):
        left = decoded("f8E4M3FN", x) * np.repeat(powers(i), 32, 1)
        right = decoded("f8E4M3FN", y) * np.repeat(powers(j), 32, 0)
        terms = left[:, :, None] * right[None] * (2 if op.endswith("_acc") else 1)
    check(out, terms, w * ("bias" in op))
