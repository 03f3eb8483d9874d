"""Vector arithmetic against NumPy, on both platforms."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import pytest
from unit.pto.vectors.running import Array, built, integers, lanes, np, numbers, run

from tilewright.errors import KernelError

bf16: Any = ml_dtypes.bfloat16


def _apart(result: Array, rows: list[Array], **tolerance: float) -> None:
    expected = np.stack(rows).astype(result.dtype)
    np.testing.assert_allclose(
        result.reshape(expected.shape).astype(np.float64), expected.astype(np.float64), **tolerance
    )


def test_vmadd_scales_then_adds_over_1024_elements(target: str) -> None:
    rng = np.random.default_rng(29)
    acc, lhs, rhs = (rng.uniform(-s, s, 1024).astype(np.float32) for s in (2, 3, 1))
    out = np.zeros(1024, np.float32)
    run("vmadd", target, acc, lhs, rhs, out)
    np.testing.assert_allclose(out, acc * lhs + rhs, rtol=2e-4, atol=2e-4)


def test_arithmetic_of_floats(target: str) -> None:
    a, b, out = numbers(1, 64), numbers(2, 64), np.zeros(640, np.float32)
    run("arithmetic_f32", target, a, b, out)
    rows = [a + b, a - b, a * b, a / b, np.maximum(a, b), np.minimum(a, b), np.abs(a), -a, np.exp(a), np.maximum(a, 0)]
    _apart(out, rows, rtol=1e-6)


def test_logarithm_and_root(target: str) -> None:
    a, b, out = numbers(3, 64, low=0.1), numbers(4, 64, low=0.5), np.zeros(192, np.float32)
    run("roots_f32", target, a, b, out)
    _apart(out, [a / b, np.log(a), np.sqrt(a)], rtol=1e-6, atol=1e-7)


def test_integers_wrap_and_lanes_left_out_are_zero(target: str) -> None:
    a, b, out = integers(5, 64, np.int32), integers(6, 64, np.int32), np.zeros(512, np.int32)
    run("arithmetic_i32", target, a, b, out)
    on = lanes(64, "VL8")
    with np.errstate(over="ignore"):
        rows = [a + b, a - b, a * b, np.maximum(a, b), np.minimum(a, b), np.abs(a), -a, np.maximum(a, 0)]
    np.testing.assert_array_equal(out.reshape(8, 64), [np.where(on, row, 0) for row in rows])


def test_halves_round_after_each_op(target: str) -> None:
    a, b = numbers(7, 128).astype(np.float16), numbers(8, 128, low=1).astype(np.float16)
    out = np.zeros(768, np.float16)
    run("arithmetic_f16", target, a, b, out)
    rows = [a + b, a * b, a / b, np.minimum(a, b), np.abs(a), np.exp(a.astype(np.float32))]
    _apart(out, [np.where(lanes(128, "H"), row, 0) for row in rows], rtol=1e-3)


def test_bfloat16_rounds_after_each_op(target: str) -> None:
    a, b = numbers(9, 128).astype(bf16), numbers(10, 128).astype(bf16)
    out = np.zeros(512, bf16)
    run("arithmetic_bf16", target, a, b, out)
    _apart(out, [np.where(lanes(128, "M3"), row, 0) for row in (a + b, a * b, a - b, -a)])


def test_bytes_wrap(target: str) -> None:
    a, b, out = integers(11, 256, np.uint8), integers(12, 256, np.uint8), np.zeros(1024, np.uint8)
    run("arithmetic_u8", target, a, b, out)
    rows = [a + b, a - b, np.maximum(a, b), np.minimum(a, b)]
    np.testing.assert_array_equal(out.reshape(4, 256), [np.where(lanes(256, "M4"), row, 0) for row in rows])


def test_a_vector_meets_a_number(target: str) -> None:
    a, s, out = integers(13, 128, np.int16), np.int16(-300), np.zeros(640, np.int16)
    run("with_scalar_i16", target, a, out, int(s))
    with np.errstate(over="ignore"):
        rows = [a + s, a - s, a * s, np.maximum(a, s), np.minimum(a, s)]
    np.testing.assert_array_equal(out.reshape(5, 128), rows)


def test_slopes_and_sums_below_zero(target: str) -> None:
    a, b, out = numbers(14, 64), numbers(15, 64), np.zeros(384, np.float32)
    run("with_scalar_f32", target, a, b, out)
    q = lanes(64, "Q")
    rows = [
        np.where(q, a + np.float32(0.5), 0), a * np.float32(0.5), np.where(a < 0, a * np.float32(0.5), a),
        np.where(a > 0, a, a * b), np.maximum(a + b, 0), np.where(q, np.maximum(a - b, 0), 0),
    ]  # fmt: skip
    _apart(out, rows, rtol=1e-6)


def test_bits_and_shifts(target: str) -> None:
    a, b, out = integers(16, 64, np.uint32), integers(17, 64, np.uint32), np.zeros(512, np.uint32)
    run("bits_u32", target, a, b, out)
    n = b & np.uint32(31)
    np.testing.assert_array_equal(out.reshape(8, 64), [a & b, a | b, a ^ b, a << n, a >> n, ~a, a << 3, a >> 3])


def test_right_shifts_keep_the_sign(target: str) -> None:
    a, b, out = integers(18, 128, np.int16), integers(19, 128, np.int16, 0, 40), np.zeros(256, np.int16)
    run("shifts_i16", target, a, b, out)
    np.testing.assert_array_equal(out.reshape(2, 128), [a >> (b & 15), a >> 2])


def test_bits_of_floats_join_even_and_odd_lanes(target: str) -> None:
    a, b, out = numbers(20, 64), numbers(21, 64), np.zeros(256, np.float16)
    run("bits_of_floats", target, a, b, out)
    joined = np.stack([a, b], axis=1).reshape(-1).astype(np.float16)
    np.testing.assert_array_equal(out.reshape(2, 128), [joined, np.where(np.arange(128) % 2, 0, joined)])


def test_fused_products(target: str) -> None:
    a, b, c, out = numbers(22, 64), numbers(23, 64), numbers(24, 64), np.zeros(256, np.float32)
    run("fused", target, a, b, c, out)
    rows = [np.where(lanes(64, "VL16"), a + b * c, 0), a * b + c, np.float32(2.5) * a + b, np.exp(a - b)]
    _apart(out, rows, rtol=1e-5, atol=1e-6)


def test_exponentials_of_half_the_halves(target: str) -> None:
    a, b, out = numbers(25, 128).astype(np.float16), numbers(26, 128).astype(np.float16), np.zeros(128, np.float32)
    run("expdif_f16", target, a, b, out)
    rows = np.exp(a.astype(np.float32) - b.astype(np.float32)).reshape(64, 2).T.copy()
    rows[1, 16:] = 0
    _apart(out, list(rows), rtol=1e-6)


def test_comparisons_choose(target: str) -> None:
    a, b, out = np.round(numbers(27, 64)), np.round(numbers(28, 64)), np.zeros(512, np.float32)
    run("choices", target, a, b, out, 1.0)
    tests: list[Any] = [a == b, a != b, (a < b) & lanes(64, "H"), a <= b, a > b, a >= b, a > 1]
    rows = [np.where(test, a, b) for test in tests]
    np.testing.assert_array_equal(out.reshape(8, 64), [*rows, np.where(a > 1, a + b, 0)])


def test_carries_make_sums_of_64_bits(target: str) -> None:
    a, b, out = integers(29, 128, np.int32), integers(30, 128, np.int32), np.zeros(512, np.int32)
    a[5], b[5] = -1, 1
    a[69], b[69] = -1, 0
    run("carries", target, a, b, out)
    al, ah, bl, bh = (x.view(np.uint32).astype(object) for x in (a[:64], a[64:], b[:64], b[64:]))
    low, down = al + bl, al - bl
    high, under = ah + bh + (low >> 32), ah - bh - (down < 0)
    rows = [low, high, low >> 32, high >> 32, down, under, down >= 0, under >= 0]
    expected = np.array([[int(x) & 0xFFFFFFFF for x in row] for row in rows], np.uint32).view(np.int32)
    np.testing.assert_array_equal(out.reshape(8, 64), expected)


def test_long_products(target: str) -> None:
    a, b = integers(31, 64, np.int32), integers(32, 64, np.int32)
    out, big = np.zeros(128, np.int32), np.zeros(128, np.uint32)
    run("long_products", target, a, b, out, big)
    product = a.astype(np.int64) * b
    whole = a.view(np.uint32).astype(np.uint64) * b.view(np.uint32)
    whole = np.where(lanes(64, "Q"), whole, 0)
    np.testing.assert_array_equal(out.reshape(2, 64), [product.astype(np.int32), product >> 32])
    np.testing.assert_array_equal(big.reshape(2, 64), [whole.astype(np.uint32), whole >> np.uint64(32)])


def test_vectors_from_numbers(target: str) -> None:
    a, i = numbers(33, 64), integers(34, 64, np.int32, 0, 127)
    out, n, t = np.zeros(320, np.float32), np.zeros(256, np.int32), np.zeros(128, np.int16)
    run("making", target, a, i, out, n, t, 1.5, -3)
    few, steps = lanes(64, "VL4"), np.arange(64)
    rows = [a[i % 64], np.full(64, a[0]), np.where(few, a[63], 0), np.where(few, 1.5, 0), np.full(64, 1.5)]
    np.testing.assert_array_equal(out.reshape(5, 64), rows)
    np.testing.assert_array_equal(n.reshape(4, 64), [steps - 3, -3 - steps, a.view(np.int32), 7 + steps])
    np.testing.assert_array_equal(t, a.view(np.int16))


def test_vmadd_refuses_short_floats(target: str) -> None:
    text = """module { func.func @f(%s: f16) {
      %m = pto.pset_b16 "PAT_ALL" : !pto.mask<b16>
      %v = pto.vbr %s : f16 -> !pto.vreg<128xf16>
      %r = pto.vmadd %v, %v, %v, %m
        : !pto.vreg<128xf16>, !pto.vreg<128xf16>, !pto.vreg<128xf16>, !pto.mask<b16> -> !pto.vreg<128xf16>
      return } }"""
    with pytest.raises(KernelError, match="vmadd does not take fp16"):
        built(text, target)
