"""Vector conversions, reductions and shuffles against NumPy, on both platforms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import pytest
from unit.pto.vectors.running import Array, built, integers, lanes, np, numbers, run

bf16: Any = ml_dtypes.bfloat16


def _lanes(values: Array, part: int, step: int) -> Array:
    """Return values in every `step`-th lane from `part` on, zeros elsewhere."""
    row = np.zeros(len(values) * step, values.dtype)
    row[part::step] = values
    return row


def _shortened(values: Array, choose: Callable[[Array, Array, Array], Array]) -> Array:
    """Return bf16 neighbours below and above each number, as `choose` picks."""
    bits = values.view(np.uint32)
    towards = (bits >> 16).astype(np.uint16).view(bf16)
    away = ((bits >> 16) + 1).astype(np.uint16).view(bf16)
    return np.where(towards.astype(np.float32) == values, towards, choose(values, towards, away))


def test_narrowing_places_saturates_and_wraps(target: str) -> None:
    a = numbers(1, 64, low=-300, high=300)
    a[:6] = [1e6, -1e6, np.inf, -np.inf, 40000.0, np.nan]
    i = integers(2, 64, np.int32, -70000, 70000)
    h, b, s, c = np.zeros(384, np.float16), np.zeros(384, bf16), np.zeros(512, np.int16), np.zeros(512, np.uint8)
    run("narrowing", target, a, i, h, b, s, c)
    with np.errstate(all="ignore"):
        clamped = np.clip(np.nan_to_num(a, nan=0.0), -65504, 65504)
        half = clamped.astype(np.float16)
        down = np.where(np.abs(half.astype(np.float32)) > np.abs(clamped), np.nextafter(half, np.float16(0)), half)
        rows = [_lanes(a.astype(np.float16), 0, 2), _lanes(np.where(lanes(64, "H"), half, 0), 1, 2), _lanes(down, 0, 2)]
        np.testing.assert_array_equal(h.reshape(3, 128), rows)
        _check_bf16(a, b)
        whole = np.rint(np.nan_to_num(a, nan=0.0, posinf=1e9, neginf=-1e9))
        _check_integers(a, whole, i, s, c)


EQUALLY_LONG = """module attributes {pto.target_arch = "a5"} {
  func.func @k(%x: !pto.ptr<bf16>, %o: !pto.ptr<f16>) {
    %z = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %len = arith.constant 256 : i64
    %c0 = arith.constant 0 : index
    %u = pto.castptr %z : i64 -> !pto.ptr<bf16, ub>
    %w = pto.castptr %len : i64 -> !pto.ptr<f16, ub>
    pto.mte_gm_ub %x, %u, %z, %len nburst(%one, %len, %len) : !pto.ptr<bf16>, !pto.ptr<bf16, ub>, i64, i64, i64, i64, i64
    pto.vecscope {
      %m = pto.pset_b16 "PAT_ALL" : !pto.mask<b16>
      %v = pto.vlds %u[%c0] : !pto.ptr<bf16, ub> -> !pto.vreg<128xbf16>
      %r = pto.vcvt %v, %m {rnd = "R", sat = "SAT"} : !pto.vreg<128xbf16>, !pto.mask<b16> -> !pto.vreg<128xf16>
      pto.vsts %r, %w[%c0], %m : !pto.vreg<128xf16>, !pto.ptr<f16, ub>, !pto.mask<b16>
    }
    pto.mte_ub_gm %w, %o, %len nburst(%one, %len, %len) : !pto.ptr<f16, ub>, !pto.ptr<f16>, i64, i64, i64, i64
    return
  }
}
"""  # noqa: E501


def test_floats_of_one_length_saturate_too(target: str) -> None:
    x = np.resize(np.array([1e5, -1e5, np.inf, -np.inf, np.nan, 1.5, -0.0, 2.0**-25 * 1.5], np.float32), 128)
    x, plain, stopped = x.astype(bf16), np.zeros(128, np.float16), np.zeros(128, np.float16)
    built(EQUALLY_LONG, target)(1, x, stopped)
    most, least = 65504, 2.0**-24
    np.testing.assert_array_equal(stopped[:8], [most, -most, most, -most, 0, 1.5, -0.0, least])
    built(EQUALLY_LONG.replace('"SAT"', '"NOSAT"'), target)(1, x, plain)
    np.testing.assert_array_equal(plain[:8], [np.inf, -np.inf, np.inf, -np.inf, np.nan, 1.5, -0.0, least])


def _check_bf16(a: Array, b: Array) -> None:
    finite = np.isfinite(a)
    floor = _shortened(a, lambda x, t, w: np.where(x < 0, w, t))
    ceil = _shortened(a, lambda x, t, w: np.where(x > 0, w, t))
    rows = b.reshape(3, 128).astype(np.float32)
    np.testing.assert_array_equal(rows[0], _lanes(a.astype(bf16), 1, 2).astype(np.float32))
    for row, expected in ((rows[1], floor), (rows[2], ceil)):
        np.testing.assert_array_equal(row[::2][finite], expected.astype(np.float32)[finite])
        np.testing.assert_array_equal(row[1::2], 0)


def _check_integers(a: Array, whole: Array, i: Array, s: Array, c: Array) -> None:
    rows, bytes_ = s.reshape(4, 128), c.reshape(2, 256)
    np.testing.assert_array_equal(rows[0], _lanes(np.clip(whole, -32768, 32767).astype(np.int16), 0, 2))
    finite = np.isfinite(a)
    np.testing.assert_array_equal(rows[1][1::2][finite], np.trunc(a[finite]).astype(np.int64).astype(np.int16))
    np.testing.assert_array_equal(rows[2], _lanes(np.clip(i, -32768, 32767).astype(np.int16), 0, 2))
    np.testing.assert_array_equal(rows[3], _lanes(i.astype(np.int16), 1, 2))
    np.testing.assert_array_equal(bytes_[0], _lanes(np.clip(i, 0, 255).astype(np.uint8), 1, 4))
    np.testing.assert_array_equal(bytes_[1], _lanes(i.astype(np.uint8), 3, 4))


def test_widening_reads_the_lanes_of_a_part(target: str) -> None:
    h, c, s = numbers(3, 128).astype(np.float16), integers(4, 256, np.uint8), integers(5, 128, np.int16)
    out, u, i = np.zeros(192, np.float32), np.zeros(256, np.uint32), np.zeros(128, np.int32)
    run("widening", target, h, c, s, out, u, i)
    odd = np.where(lanes(128, "VL10"), h, 0)[1::2]
    np.testing.assert_array_equal(out.reshape(3, 64), [h[::2], odd, s[1::2]])
    np.testing.assert_array_equal(u.reshape(4, 64), c.reshape(64, 4).T)
    np.testing.assert_array_equal(i.reshape(2, 64), s.reshape(64, 2).T)


def test_rounding_in_every_way(target: str) -> None:
    a = numbers(6, 64, low=-20, high=20)
    a[:10] = [0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 2.0, -3.0, 1e9, -1e9]
    i, f = np.zeros(384, np.int32), np.zeros(448, np.float32)
    run("rounding", target, a, i, f)
    away = np.trunc(a + np.copysign(np.float32(0.5), a))
    cut = np.trunc(a)
    odd = np.where((cut != a) & (cut % 2 == 0), cut + np.sign(a), cut)
    rows = [np.rint(a), away, np.floor(a), np.ceil(a), cut, odd]
    np.testing.assert_array_equal(i.reshape(6, 64), rows)
    np.testing.assert_array_equal(f.reshape(7, 64)[:6], rows)
    np.testing.assert_array_equal(f.reshape(7, 64)[6], np.rint(a))


def test_products_on_their_way_to_halves(target: str) -> None:
    a, out = numbers(7, 64), np.zeros(256, np.float16)
    run("scaled_conversion", target, a, out)
    half = (a * np.float32(0.25)).astype(np.float16)
    np.testing.assert_array_equal(out.reshape(2, 128), [_lanes(half, 0, 2), _lanes(half, 1, 2)])


def _reduced(a: Array, on: Array) -> list[Array]:
    """Return what the seven reductions give."""
    count, each = len(a), len(a) // 8
    low, high = (np.finfo if a.dtype.kind == "f" else np.iinfo)(a.dtype).min, np.iinfo(np.int32).max
    lowest: Any = -np.inf if a.dtype.kind == "f" else low
    highest: Any = np.inf if a.dtype.kind == "f" else np.iinfo(a.dtype).max
    del high
    summed, top, bottom = np.where(on, a, 0), np.where(on, a, lowest), np.where(on, a, highest)
    summed, top, bottom = (x.astype(a.dtype) for x in (summed, top, bottom))
    rows = [np.zeros(count, a.dtype) for _ in range(7)]
    rows[0][0] = summed.sum(dtype=a.dtype)
    for row, values, at in ((rows[1], top, top.argmax()), (rows[2], bottom, bottom.argmin())):
        row[0] = values[at]
        row.view(f"u{a.itemsize}")[1] = at
    rows[3][:8] = summed.reshape(8, each).sum(axis=1, dtype=a.dtype)
    rows[4][:8], rows[5][:8] = top.reshape(8, each).max(axis=1), bottom.reshape(8, each).min(axis=1)
    rows[6][: count // 2] = summed.reshape(-1, 2).sum(axis=1, dtype=a.dtype)
    return rows


@pytest.mark.parametrize(("name", "pattern"), [("reductions_f32", "ALL"), ("reductions_masked", "M3")])
def test_reductions_of_floats(target: str, name: str, pattern: str) -> None:
    a, out = np.round(numbers(8, 64) * 8) / 8, np.zeros(448, np.float32)
    run(name, target, a, out)
    np.testing.assert_array_equal(out.reshape(7, 64), _reduced(a, lanes(64, pattern)))


def test_reductions_of_integers_wrap(target: str) -> None:
    a, out = integers(9, 128, np.int16), np.zeros(896, np.int16)
    run("reductions_i16", target, a, out)
    np.testing.assert_array_equal(out.reshape(7, 128), _reduced(a, lanes(128, "ALL")))


def test_lanes_in_turn_and_apart(target: str) -> None:
    a, b, c = numbers(10, 64), numbers(11, 64), integers(12, 512, np.int8)
    out, d = np.zeros(256, np.float32), np.zeros(1024, np.int8)
    run("interleaving", target, a, b, c, out, d)
    for x, y, made in ((a, b, out), (c[:256], c[256:], d)):
        both, end = np.stack([x, y], axis=1).reshape(-1), np.concatenate([x, y])
        np.testing.assert_array_equal(made, np.concatenate([both, end[::2], end[1::2]]))


def test_packing_and_unpacking(target: str) -> None:
    a, b = integers(13, 64, np.int32), integers(14, 128, np.int16)
    p, w = np.zeros(256, np.uint16), np.zeros(256, np.int32)
    run("packing", target, a, b, p, w)
    low, none = a.astype(np.uint16), np.zeros(64, np.uint16)
    np.testing.assert_array_equal(p, np.concatenate([low, none, none, low]))
    np.testing.assert_array_equal(w, np.concatenate([b.astype(np.int32), b.view(np.uint16).astype(np.int32)]))


def test_lanes_that_pass_follow_each_other(target: str) -> None:
    a = numbers(15, 128)
    out, n, s = np.zeros(128, np.float32), np.zeros(64, np.int32), np.full(128, 9, np.float32)
    run("squeezing", target, a, out, n, s)
    parts = [half[half > 0] for half in (a[:64], a[64:])]
    rows = [np.pad(part, (0, 64 - len(part))) for part in parts]
    np.testing.assert_array_equal(out, np.concatenate(rows))
    np.testing.assert_array_equal(n, np.cumsum(a[:64] > 0) - (a[:64] > 0))
    kept = np.concatenate(parts)
    np.testing.assert_array_equal(s, np.concatenate([kept, np.full(128 - len(kept), 9)]))
