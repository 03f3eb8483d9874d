"""Conversion in native code: every pair of types, every rounding mode."""

from __future__ import annotations

import math

import numpy as np
import pytest
from ops.kernels import Array, kernel, out, scalar, tensor
from ops.native import Native, assert_converted, assert_same, of_bits

import tilewright.language as pl
from tilewright.core.enums import RoundMode
from tilewright.dtypes import STORABLE, DataType

every_type = pytest.mark.parametrize("dtype", STORABLE, ids=str)
EDGES = [0.0, -0.0, 0.25, 0.49999997, 0.5, -0.5, 1.5, 2.5, -2.5, 3.5, 0.99999994, 6.0, 7.0, 7.5, -8.5, 15.5, 127.5,
         -128.5, 255.5, 448.0, 464.0, 465.0, 32767.5, 65504.0, 65520.0, 57344.0, 61440.0, 2.0**31, -(2.0**31),
         2147483520.0, 2.0**32, 2.0**63, -(2.0**63), 2.0**64, 3e38, 1e-8, 1e-40, float("inf"), -float("inf"),
         float("nan")]  # fmt: skip


def samples(dtype: DataType) -> Array:
    """Return elements of a type where conversions go wrong, and others; a whole number of rows of 41."""
    rng = np.random.default_rng(7)
    if dtype.bits <= 8 or dtype.bits == 16:
        step = 1 if dtype.bits <= 8 else 29
        raw = np.arange(0, 2 if dtype == pl.BOOL else 1 << dtype.bits, step)
        flat = of_bits(raw.astype(np.uint16 if dtype.bits == 16 else np.uint8), dtype)
        if dtype in (pl.FP16, pl.BF16):
            with np.errstate(invalid="ignore"):
                flat = np.where(np.isnan(flat), np.array(np.nan, dtype.numpy), flat)
    elif dtype.is_float():
        many = of_bits(rng.integers(0, 1 << 32, 400, np.uint64).astype(np.uint32), dtype)
        flat = np.concatenate([np.array([*EDGES, *(-e for e in EDGES)], np.float32), many])
        flat = np.concatenate([flat, rng.uniform(-300, 300, 400).astype(np.float32)])
        if dtype == pl.FP64:  # beside the halves, and where the last bits are halves and ones
            near = [2.0**power + step for power in (-1, 51, 52, 53, 62) for step in (-1, -0.5, 0, 0.5, 1)]
            flat = np.concatenate([flat, near, np.negative(near), np.nextafter([0.5, -0.5, 2.5], 0)])
    else:
        low, high = (int(limit) for limit in dtype.limits)
        powers = [2**p + d for p in range(0, dtype.bits) for d in (-1, 0, 1)]
        near = [v for v in (low, low + 1, high, high - 1, *powers, *(-p for p in powers)) if low <= v <= high]
        flat = np.concatenate([np.array(near, dtype.numpy), rng.integers(low, high, 400, dtype.numpy, endpoint=True)])
    return np.resize(flat, (-(-flat.size // 41), 41))


@every_type
def test_a_cast_rounds_as_the_interpreter_does(dtype: DataType) -> None:
    x = samples(dtype)
    shape = x.shape
    lines, outputs = [f"t = pl.load(x, [0, 0], {list(shape)})"], dict[str, DataType]()
    for target in STORABLE:
        if dtype.bits == 4 and dtype.is_int() and target.is_int():
            continue  # the interpreter takes these for floats
        modes = list(RoundMode) if dtype.is_float() and target.is_int() else [RoundMode.round]
        for mode in modes if target != dtype else []:
            name = f"{target}_{mode.name}"
            cast = f'pl.cast(t, pl.{target.symbol}, mode="{mode.name}")'
            lines.append(f"{name} = pl.store({cast}, [0, 0], {name})")
            outputs[name] = target
    native = Native(
        kernel(
            "\n".join(lines), x=tensor(dtype, *shape), **{name: out(target, *shape) for name, target in outputs.items()}
        )
    )
    pairs = native.run([x, *(np.zeros(shape, target.numpy) for target in outputs.values())])
    for name, (got, want) in zip(outputs, pairs[1:], strict=True):
        try:
            assert_converted(got, want)
        except AssertionError as error:
            raise AssertionError(f"{dtype} to {name}: {error}") from None


def test_a_cast_of_part_of_a_tile_keeps_the_rest() -> None:
    native = Native(
        kernel(
            "t = pl.load(x, [0, 0], [5, 37], valid_shape=[i, j])\nout = pl.store(pl.cast(t, pl.INT8), [0, 0], out)",
            x=tensor(pl.FP32, 5, 37),
            i=scalar(pl.INDEX),
            j=scalar(pl.INDEX),
            out=out(pl.INT8, 5, 37),
        )  # fmt: skip
    )
    x = np.random.default_rng(1).uniform(-200, 200, (5, 37)).astype(np.float32)
    for i, j in ((3, 17), (5, 37), (0, 0)):
        for got, want in native.run([x, i, j, np.full((5, 37), 7, np.int8)]):
            assert_same(got, want)


SCALARS = [pl.FP32, pl.FP16, pl.BF16, pl.INT8, pl.INT16, pl.INT32, pl.INT64, pl.UINT8, pl.UINT32, pl.UINT64, pl.BOOL]


@pytest.mark.parametrize("dtype", SCALARS, ids=str)
def test_a_scalar_is_cast_as_the_interpreter_does(dtype: DataType) -> None:
    lines, outputs = list[str](), dict[str, DataType]()
    for target in (t for t in SCALARS if t != dtype):
        lines.append(f"c_{target} = pl.cast(n, pl.{target.symbol})")
        lines.append(f"pl.write({target}_out, [0], c_{target})")
        outputs[f"{target}_out"] = target
    native = Native(
        kernel("\n".join(lines), n=scalar(dtype), **{name: out(target, 1) for name, target in outputs.items()})
    )
    for number in samples(dtype).ravel()[::7]:
        value = number.item() if dtype != pl.BF16 else float(number)
        for got, want in native.run([value, *(np.zeros(1, t.numpy) for t in outputs.values())]):
            assert_same(got, want)


LARGE = [2**60 + 2**52 + 1, 2**60 + 2**36 + 1, 2**53 + 1, 2**53 - 1, 2**62 - 1, 2**24 + 1, 2**62 + 2**54 + 1, 2**63 - 1]
"""Integers just above or below the middle of two floats, which rounding twice would move to the middle first."""


@pytest.mark.parametrize("dtype", [pl.INT64, pl.UINT64], ids=str)
@pytest.mark.parametrize("target", [pl.FP32, pl.BF16, pl.FP16, pl.FP8E5M2], ids=str)
def test_a_large_integer_becomes_the_nearest_float(dtype: DataType, target: DataType) -> None:
    values = LARGE + ([-n for n in LARGE] if dtype.is_signed_int() else [2**64 - 1, 2**63 + 2**55 + 1])
    body = f"t = pl.load(x, [0], [{len(values)}])\nout = pl.store(pl.cast(t, pl.{target.symbol}), [0], out)\n"
    for at in range(len(values)):
        body += f"n{at} = pl.read(x, [{at}])\npl.write(each, [{at}], pl.cast(n{at}, pl.{target.symbol}))\n"
    results = {name: out(target, len(values)) for name in ("out", "each")}
    native = Native(kernel(body, x=tensor(dtype, len(values)), **results))
    given = [np.array(values, dtype.numpy), *(np.zeros(len(values), target.numpy) for _ in results)]
    for got, want in native.run(given)[1:]:
        assert_converted(got, want)
        assert [float(n) for n in got] == [_nearest(n, target) for n in values]


def _nearest(number: int, dtype: DataType) -> float:
    """Return the float nearest to an integer, by exact arithmetic; of two, the one with an even last digit."""
    bits = {pl.FP32: 24, pl.BF16: 8}.get(dtype)
    if bits is None:
        return math.copysign(math.inf, number)  # too large for the narrow ones
    spare = max(0, abs(number).bit_length() - bits)
    kept, rest = abs(number) >> spare, abs(number) & ((1 << spare) - 1)
    half = (1 << spare) >> 1
    kept += rest > half or (rest == half and half > 0 and kept % 2 == 1)
    return math.copysign(float(kept << spare), number)
