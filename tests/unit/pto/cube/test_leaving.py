"""Accumulators brought out: every way to scale, rectify, convert, clip, repeat and combine, held to NumPy."""

from __future__ import annotations

from typing import Any, cast

import ml_dtypes
import numpy
from unit.pto.cube.test_products import each_way, staged
from unit.pto.cube.writing import kernel, opened, run

np = cast("Any", numpy)
DTYPES = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "i8": np.int8, "ui8": np.uint8, "i16": np.int16,
    "i32": np.int32,
}  # fmt: skip
M, N = 16, 32
SCALES = np.tile(np.array([1, 2, 0.5, -3], np.float32), N // 4)
OFFSETS = np.arange(N) - 16
SLOPES = np.tile(np.array([0.125, 0.25, 0.5, 0.75], np.float32), N // 4)
COMBINED = {"add": np.add, "max": np.maximum, "min": np.minimum}
WAYS: dict[str, tuple[str, str]] = {
    "plain": ("f32", "nz2nd"),
    "finite": ("f16", "pre_quant(mode = f32_f16)"),
    "infinite": ("f16", "pre_quant(mode = f32_f16), nosat"),
    "kept": ("f16", "pre_quant(mode = f32_f16), sat(preserve_nan)"),
    "brain": ("bf16", "pre_quant(mode = f32_bf16), nosat"),
    "halved": ("f16", "pre_quant(%half, mode = qf322f16_pre_scalar), pre_relu(%quarter, mode = scalar_relu)"),
    "channels": ("i8", "pre_quant(%words, mode = qf322b8_pre_vec)"),
    "wide": ("f32", "pre_quant(%words, mode = qf322f32_pre_vec), pre_relu(%slopes, mode = vector_relu)"),
    "cut": ("ui8", "pre_quant(%half, mode = qf322b8_pre_scalar), pre_relu(mode = normal_relu, clip = %top)"),
    "turned": ("f32", "pre_relu(mode = normal_relu), nz2dn(%n0)"),
    **{op: ("f32", f"atomic(type = f32, op = {op})") for op in COMBINED},
}


def data() -> Any:
    made = np.random.default_rng(0).integers(-300, 300, (M, N)).astype(np.float32) / 2
    made[1, 1], made[2, 1], made[3, 2], made[4, 3], made[5, 5] = 72000, -72000, np.inf, np.nan, -np.inf
    return made


def words() -> Any:
    offsets = (OFFSETS & 0x1FF).astype(np.uint64) << np.uint64(37)
    return SCALES.view(np.uint32).astype(np.uint64) | offsets | np.uint64(0x5)  # whose last bits do not count


def finite(x: Any) -> Any:
    return np.where(np.isnan(x), 0, np.clip(x, -65504, 65504)).astype(np.float16)


def whole(x: Any, low: int, high: int, offset: Any = 0) -> Any:
    return np.where(np.isnan(x), 0, np.clip(np.rint(x) + offset, low, high))


def wanted(acc: Any, before: Any) -> dict[str, Any]:
    half, scaled = acc / 2, acc * SCALES
    rounded = acc.astype(np.float16)
    return {
        "plain": acc, "finite": finite(acc), "infinite": rounded,
        "kept": np.where(np.isnan(acc), np.float16(np.nan), finite(acc)), "brain": acc.astype(ml_dtypes.bfloat16),
        "halved": finite(np.where(half >= 0, half, half / 4)),
        "channels": whole(scaled, -128, 127, OFFSETS), "wide": np.where(scaled >= 0, scaled, scaled * SLOPES),
        "cut": np.minimum(whole(np.maximum(half, 0), 0, 255), 60), "turned": np.maximum(acc, 0).T,
        **{op: combine(before, acc) for op, combine in COMBINED.items()},
    }  # fmt: skip


@each_way
def test_every_way_out(is_open: bool, target: str) -> None:
    pointers = {name: f"{element}, gm" for name, (element, _) in WAYS.items()}
    arguments = {
        "x": "f32, gm",
        "y": "f32, gm",
        "w": "f32, gm",
        "half": "f32",
        "quarter": "f32",
        "top": "i16",
    } | pointers
    places = {
        "x1": ("f32, l1", 0), "y1": ("f32, l1", 4096), "w1": ("f32, l1", 8192), "a": ("f32, l0a", 0),
        "w2": ("f32, l1", 8192 + 8 * N),
        "b": ("f32, l0b", 0), "c": ("f32, l0c", 0), "words": ("f32, fb", 128), "slopes": ("f32, fb", 65600),
    }  # fmt: skip
    lines = [
        staged("x", M, M, 4), staged("y", M, N, 4),
        f"mte_gm_l1 %w, %w1, %n{12 * N} nburst(%n1, %n0, %n0)",
        f"mte_l1_fb %w1, %words, %n{N // 8} nburst(%n1, %n0, %n0)",
        f"mte_l1_fb %w2, %slopes, %n{N // 16} nburst(%n1, %n0, %n0)",
        f"mte_l1_l0a %x1, %a, %n{M}, %n{M}, %n0, %n0",
        f"mte_l1_l0b %y1, %b, %n{M}, %n{N}, %n0, %n0 {{transpose = true}}",
        f"mad %a, %b, %c, %n{M}, %n{N}, %n{M}",
    ]  # fmt: skip
    for name, (_, clauses) in WAYS.items():
        stride = M if "nz2dn" in clauses else N
        lines.append(f"mte_l0c_gm %c, %{name}, %n{M}, %n{N}, %n{M}, %n{stride}, %n0, %n0, {clauses}")
    y, factors = data(), np.concatenate([words().view(np.float32), SLOPES])
    out = {name: np.zeros((M, N), DTYPES[element]) for name, (element, _) in WAYS.items()}
    before = np.random.default_rng(2).integers(-100, 100, (M, N)).astype(np.float32)
    for name in COMBINED:
        out[name][...] = before
    arguments, lines, numbers = opened(arguments, lines) if is_open else (arguments, lines, [])
    given = np.eye(M, dtype=np.float32), y, factors, 0.5, 0.25, 60, *out.values()
    run(kernel(arguments, places, lines), target, *given, *numbers)
    with np.errstate(all="ignore"):
        acc = np.eye(M, dtype=np.float32) @ y
        for name, expected in wanted(acc, before).items():
            found = out[name].reshape(expected.shape)
            np.testing.assert_array_equal(found.astype(np.float64), expected.astype(np.float64), err_msg=name)


@each_way
def test_to_the_cubes_own_memory_and_to_a_vector_core_again_and_again(is_open: bool, target: str) -> None:
    """Two halves of an accumulator: `loop3` steps over rows of it, and over elements of where it goes."""
    arguments = {"x": "i8, gm", "y": "i8, gm", "o": "f16, gm", "p": "i32, gm", "scale": "f32"}
    places = {
        "x1": ("i8, l1", 0), "y1": ("i8, l1", 4096), "l1": ("f16, l1", 8192), "a": ("i8, l0a", 0), "b": ("i8, l0b", 0),
        "c": ("i32, l0c", 0), "u": ("f16, ub", 0), "v": ("i32, ub", 32768),
    }  # fmt: skip
    lines = [
        staged("x", 32, 32, 1), staged("y", 32, 32, 1, 32),
        "mte_l1_l0a %x1, %a, %n32, %n32, %n0, %n0", "mte_l1_l0b %y1, %b, %n32, %n32, %n0, %n0 {transpose = true}",
        "mad %a, %b, %c, %n32, %n32, %n32",
        "mte_l0c_l1 %c, %l1, %n16, %n16, %n32, %n24, pre_quant(%scale, mode = deqf16_scalar), loop3(%n2, %n16, %n400)",
        "mte_l1_ub %l1, %u, %n50 nburst(%n1, %n0, %n0)",
        "mte_l0c_ub %c, %v, %n16, %n32, %n32, %n32, dst_mode(%n0), pre_relu(mode = normal_relu)",
        "mte_ub_gm %u, %o, %n1600 nburst(%n1, %n0, %n0)",
        "mte_ub_gm %v, %p, %n2048 nburst(%n1, %n0, %n0)",
    ]  # fmt: skip
    x, y = np.random.default_rng(3).integers(-128, 128, (2, 32, 32)).astype(np.int8)
    o, p = np.zeros(800, np.float16), np.zeros((16, 32), np.int32)
    arguments, lines, numbers = opened(arguments, lines) if is_open else (arguments, lines, [])
    run(kernel(arguments, places, lines), target, x, y, o, p, 0.25, *numbers)
    acc = x.astype(np.int32) @ y.astype(np.int32)
    for half, found in enumerate((o[:400], o[400:])):
        kept = found[: 16 * 24].reshape(16, 24)
        expected = finite(acc[16 * half : 16 * half + 16, :16].astype(np.float32) / 4)
        np.testing.assert_array_equal(kept[:, :16], expected)
        assert not kept[:, 16:].any()
    np.testing.assert_array_equal(p, np.maximum(acc[:16], 0))


@each_way
def test_what_lies_behind_the_last_row_and_column_is_neither_counted_nor_changed(is_open: bool, target: str) -> None:
    """Whatever it is: a smaller product, in memories that a larger one has filled with what is no number."""
    arguments = {
        "x": "f32, gm",
        "y": "f32, gm",
        "z": "f32, gm",
        "w": "f32, gm",
        "o": "f32, gm",
        "t": "f16, gm",
        "all": "f32, gm",
    }
    places = {
        "x1": ("f32, l1", 0), "y1": ("f32, l1", 4096), "z1": ("f32, l1", 8192), "w1": ("f32, l1", 16384),
        "a": ("f32, l0a", 0), "b": ("f32, l0b", 0), "c": ("f32, l0c", 0),
    }  # fmt: skip
    lines = [
        staged("x", 16, 24, 4), staged("y", 24, 32, 4), staged("z", 16, 16, 4), staged("w", 16, 32, 4),
        "mte_l1_l0a %z1, %a, %n16, %n16, %n0, %n0", "mte_l1_l0b %w1, %b, %n16, %n32, %n0, %n0 {transpose = true}",
        "mad %a, %b, %c, %n16, %n32, %n16",
        "mte_l1_l0a %x1, %a, %n16, %n24, %n0, %n0", "mte_l1_l0b %y1, %b, %n24, %n32, %n0, %n0 {transpose = true}",
        "mad %a, %b, %c, %n13, %n27, %n21 sat",
        "mad_acc %a, %b, %c, %n13, %n27, %n21",
        "mte_l0c_gm %c, %o, %n13, %n27, %n16, %n32, %n0, %n0",
        "mte_l0c_gm %c, %t, %n13, %n27, %n16, %n16, %n0, %n0, pre_quant(mode = f32_f16), nz2dn(%n0)",
        "mte_l0c_gm %c, %all, %n16, %n32, %n16, %n32, %n0, %n0",
    ]  # fmt: skip
    x, y = (np.random.default_rng(n).integers(-9, 10, (16, n)).astype(np.float32) for n in (24, 32))
    w, y = y, np.concatenate([y, y[:8] + 1])
    x[13:], x[:, 21:], y[:, 27:], y[21:] = np.nan, np.nan, np.nan, np.nan
    z = np.eye(16, dtype=np.float32)
    o, t, every = np.zeros((16, 32), np.float32), np.zeros((32, 16), np.float16), np.zeros((16, 32), np.float32)
    arguments, lines, numbers = opened(arguments, lines) if is_open else (arguments, lines, [])
    run(kernel(arguments, places, lines), target, x, y, z, w, o, t, every, *numbers)
    product = 2 * (x[:13, :21] @ y[:21, :27])
    np.testing.assert_array_equal(o[:13, :27], product)
    np.testing.assert_array_equal(t[:27, :13], product.T.astype(np.float16))
    assert not o[13:].any() and not o[:, 27:].any() and not t[27:].any() and not t[:, 13:].any()
    before = w.copy()
    before[:13, :27] = product
    np.testing.assert_array_equal(every, before)
