"""Products of the cube: matrices staged, multiplied and brought out, held to NumPy."""

from __future__ import annotations

from typing import Any, cast

import ml_dtypes
import numpy
import pytest
from unit.pto.cube.writing import kernel, opened, run

from tilewright.errors import UnsupportedFeatureError
from tilewright.pto.errors import PtoOperandError

np = cast("Any", numpy)
DTYPES = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "i8": np.int8, "i32": np.int32}


def up(number: int, unit: int) -> int:
    return -(-number // unit) * unit


def staged(name: str, rows: int, cols: int, size: int, unit: int = 16, *, columns: bool = False) -> str:
    """Return the staging of a row-major matrix, or of one whose columns lie one after the other."""
    stride = (rows if columns else cols) * size
    mode = "dn2nz" if columns else "nd2nz"
    pitch = up(rows, unit)
    return (
        f"mte_gm_l1_frac %{name}, %{name}1, {mode}, shape(%n{rows}, %n{cols}), src_layout(%n{stride}), "
        f"dst_group(%n1, %n1, %n{pitch}, %n0), ctrl(%n0, %no)"
    )


def factors(element: str, m: int, n: int, k: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(m)
    made = [rng.integers(-8, 9, shape) for shape in ((m, k), (k, n))]
    return tuple((x if element == "i8" else x / 4).astype(DTYPES[element]) for x in made)  # pyright: ignore


each_way = pytest.mark.parametrize("is_open", [False, True], ids=["known", "open"])
"""Extents that are known, and such as only the running program knows."""


@each_way
@pytest.mark.parametrize("element", ["f16", "bf16", "f32", "i8"])
def test_products_of_every_element(element: str, is_open: bool, target: str) -> None:
    m, n, k = (40, 60, 50)
    size, total = np.dtype(DTYPES[element]).itemsize, "i32" if element == "i8" else "f32"
    shift = element if element == "f16" else total  # half floats are widened on their way to a bias
    staging, width = "mte_l1_bias" if shift == "f16" else "mte_l1_bt", np.dtype(DTYPES[shift]).itemsize
    arguments = {
        "x": f"{element}, gm", "y": f"{element}, gm", "w": f"{shift}, gm", "o": f"{total}, gm", "t": f"{total}, gm",
    }  # fmt: skip
    places = {
        "x1": (f"{element}, l1", 0), "y1": (f"{element}, l1", 65536), "w1": (f"{shift}, l1", 131072),
        "a": (f"{element}, l0a", 0), "b": (f"{element}, l0b", 0), "c": (f"{total}, l0c", 0), "bt": (f"{total}, bt", 0),
    }  # fmt: skip
    lines = [
        staged("x", m, k, size), staged("y", k, n, size, max(16, 32 // size)),
        f"mte_gm_l1 %w, %w1, %n{n * width} nburst(%n1, %n0, %n0)",
        f"{staging} %w1, %bt, %n{2 * width} nburst(%n1, %n0, %n0)",
        f"mte_l1_l0a %x1, %a, %n{m}, %n{k}, %n0, %n0",
        f"mte_l1_l0b %y1, %b, %n{k}, %n{n}, %n0, %n0 {{transpose = true}}",
        f"mad_bias %a, %b, %c, %bt, %n{m}, %n{n}, %n{k}",
        f"mad_acc %a, %b, %c, %n{m}, %n{n}, %n{k} unit_flag(check_only) disable_gemv n_dir",
        f"mte_l0c_gm %c, %o, %n{m}, %n{n}, %n{up(m, 16)}, %n{n}, %n0, %n0, nz2nd",
        f"mad %a, %b, %c, %n{m}, %n{n}, %n{k}",
        f"mte_l0c_gm %c, %t, %n{m}, %n{n}, %n{up(m, 16)}, %n48, %n0, %n0, nz2dn(%n0)",
    ]  # fmt: skip
    if element == "f32":  # whose fractals are not square: the left factor comes by columns
        lines[0], lines[4] = (
            staged("x", k, m, 4, columns=True),
            f"mte_l1_l0a %x1, %a, %n{m}, %n{k}, %n0, %n0 {{transpose = true}}",
        )
    x, y = factors(element, m, n, k)
    w = np.arange(n).astype(DTYPES[shift])
    o, t = np.zeros((m, n), DTYPES[total]), np.zeros((n, 48), DTYPES[total])
    arguments, lines, numbers = opened(arguments, lines) if is_open else (arguments, lines, [])
    run(kernel(arguments, places, lines), target, x, y, w, o, t, *numbers)
    product = x.astype(DTYPES[total]) @ y.astype(DTYPES[total])
    np.testing.assert_array_equal(o, 2 * product + w)
    np.testing.assert_array_equal(t[:, :m], product.T)
    assert not t[:, m:].any()


@each_way
def test_floats_rounded_or_made_finite_as_they_are_multiplied(is_open: bool, target: str) -> None:
    arguments = {"x": "f32, gm", "y": "f32, gm", **{name: "f32, gm" for name in "pqrs"}}
    places = {
        "x1": ("f32, l1", 0), "y1": ("f32, l1", 4096),
        "a": ("f32, l0a", 0), "b": ("f32, l0b", 0), "c": ("f32, l0c", 0),
    }  # fmt: skip
    ways = {"p": "tf32_mode(round_even)", "q": "tf32_mode(round_away)", "r": "sat", "s": "nosat"}
    lines = [
        staged("x", 16, 16, 4), staged("y", 16, 16, 4), "mte_l1_l0a %x1, %a, %n16, %n16, %n0, %n0",
        "mte_l1_l0b %y1, %b, %n16, %n16, %n0, %n0 {transpose = true}",
    ]  # fmt: skip
    for name, way in ways.items():
        lines += [f"mad %a, %b, %c, %n16, %n16, %n16 {way}"]
        lines += [f"mte_l0c_gm %c, %{name}, %n16, %n16, %n16, %n16, %n0, %n0"]
    y = np.random.default_rng(1).normal(size=(16, 16)).astype(np.float32)
    y[3, 4], y[5, 6], y[7, 8], y[0, 0] = np.inf, -np.inf, np.nan, np.float32(1.0) + np.float32(2**-11)
    x = np.eye(16, dtype=np.float32)
    out = [np.zeros((16, 16), np.float32) for _ in ways]
    arguments, lines, numbers = opened(arguments, lines) if is_open else (arguments, lines, [])
    run(kernel(arguments, places, lines), target, x, y, *out, *numbers)
    bits = y.view(np.uint32)
    even = ((bits + 0xFFF + ((bits >> 13) & 1)) & 0xFFFFE000).view(np.float32)
    away = ((bits + 0x1000) & 0xFFFFE000).view(np.float32)
    kept = np.where(np.isnan(y), 0, np.clip(y, -np.finfo(np.float32).max, np.finfo(np.float32).max))
    with np.errstate(all="ignore"):
        for found, wanted in zip(out, (x @ even, x @ away, kept, x @ y), strict=True):
            np.testing.assert_array_equal(found, wanted)


def test_extents_that_only_the_running_program_knows(target: str) -> None:
    """Matrices are staged with them too, the rest of their last blocks as zeros."""
    arguments = {"x": "f16, gm", "o": "f16, gm", "rows": "i64", "cols": "i64"}
    places = {"x1": ("f16, l1", 64), "u": ("f16, ub", 0)}
    lines = [
        "mte_gm_l1_frac %x, %x1, nd2nz, shape(%rows, %cols), src_layout(%n80, %n800), "
        "dst_group(%n2, %n1, %n10, %n30), ctrl(%n0, %no)",
        "mte_l1_ub %x1, %u, %n60 nburst(%n1, %n0, %n0)",
        "mte_ub_gm %u, %o, %n1920 nburst(%n1, %n0, %n0)",
    ]
    x, o = np.arange(1, 801, dtype=np.float16), np.zeros(960, np.float16)
    run(kernel(arguments, places, lines), target, x, o, 9, 38)
    wanted = np.zeros((2, 3, 10, 16), np.float16)
    for group, matrix in enumerate(x.reshape(2, 10, 40)):
        padded = np.pad(matrix[:9, :38], ((0, 0), (0, 10)))
        wanted[group, :, :9] = padded.reshape(9, 3, 16).transpose(1, 0, 2)
    np.testing.assert_array_equal(o.reshape(wanted.shape), wanted)


SMALL = {"f8E4M3FN": ml_dtypes.float8_e4m3fn, "f8E5M2": ml_dtypes.float8_e5m2}


@pytest.mark.parametrize("element", [*SMALL, "!pto.hif8"])
def test_floats_of_eight_bits(element: str, target: str) -> None:
    """Powers of two, whose sums are exact, multiplied; and the sums as such floats again."""
    arguments = {"x": f"{element}, gm", "y": f"{element}, gm", "o": "f32, gm", "p": f"{element}, gm"}
    places = {
        "x1": (f"{element}, l1", 0), "y1": (f"{element}, l1", 4096),
        "a": (f"{element}, l0a", 0), "b": (f"{element}, l0b", 0), "c": ("f32, l0c", 0),
    }  # fmt: skip
    mode = "qf322hif8_pre_scalar" if "hif8" in element else "qf322fp8_pre_scalar"
    lines = [
        staged("x", 16, 32, 1), staged("y", 32, 32, 1, 32), "mte_l1_l0a %x1, %a, %n16, %n32, %n0, %n0",
        "mte_l1_l0b %y1, %b, %n32, %n32, %n0, %n0 {transpose = true}", "mad %a, %b, %c, %n16, %n32, %n32",
        "mte_l0c_gm %c, %o, %n16, %n32, %n16, %n32, %n0, %n0",
        f"mte_l0c_gm %c, %p, %n16, %n32, %n16, %n32, %n0, %n0, pre_quant(%one, mode = {mode})",
    ]  # fmt: skip
    codes = {1.0: 0x08, 2.0: 0x10, -1.0: 0x88, -2.0: 0x90, 0.0: 0x00}
    x, y = (np.random.default_rng(n).choice(list(codes), (n, 32)) for n in (16, 32))
    if element in SMALL:
        given = [each.astype(SMALL[element]) for each in (x, y)]
        p = np.zeros((16, 32), SMALL[element])
    else:
        given = [np.vectorize(codes.__getitem__)(each).astype(np.uint8) for each in (x, y)]
        p = np.zeros((16, 32), np.uint8)
    o = np.zeros((16, 32), np.float32)
    run(kernel({**arguments, "one": "f32"}, places, lines), target, *given, o, p, 1.0)
    np.testing.assert_array_equal(o, (x @ y).astype(np.float32))
    if element in SMALL:
        np.testing.assert_array_equal(p.astype(np.float32), o.astype(SMALL[element]).astype(np.float32))
    else:
        for value, code in codes.items():
            assert (p[o == value] == code).all()


def test_infinities_of_hif8_are_the_largest_number(target: str) -> None:
    """One row of infinity, minus infinity, no number and one, times the identity."""
    element = "!pto.hif8"
    places = {
        "x1": (f"{element}, l1", 0), "y1": (f"{element}, l1", 4096),
        "a": (f"{element}, l0a", 0), "b": (f"{element}, l0b", 0), "c": ("f32, l0c", 0),
    }  # fmt: skip
    lines = [
        staged("x", 16, 32, 1), staged("y", 32, 32, 1, 32), "mte_l1_l0a %x1, %a, %n16, %n32, %n0, %n0",
        "mte_l1_l0b %y1, %b, %n32, %n32, %n0, %n0 {transpose = true}", "mad %a, %b, %c, %n16, %n32, %n32 sat",
        "mte_l0c_gm %c, %o, %n16, %n32, %n16, %n32, %n0, %n0",
    ]  # fmt: skip
    x, o = np.zeros((16, 32), np.uint8), np.zeros((16, 32), np.float32)
    x[0, :4] = 0x6F, 0xEF, 0x80, 0x08
    y = np.where(np.eye(32, dtype=bool), 0x08, 0).astype(np.uint8)
    run(kernel({"x": f"{element}, gm", "y": f"{element}, gm", "o": "f32, gm"}, places, lines), target, x, y, o)
    assert o[0, :4].tolist() == [32768, -32768, 0, 1]


def test_blocks_that_lie_on_each_other_are_refused_or_written_in_turn(target: str) -> None:
    arguments = {"x": "f16, gm", "o": "f16, gm", "pitch": "i64"}
    places = {"x1": ("f16, l1", 0), "u": ("f16, ub", 0)}
    lines = [
        "mte_gm_l1_frac %x, %x1, nd2nz, shape(%n40, %n32), src_layout(%n64), dst_group(%n1, %n1, %pitch, %n0), "
        "ctrl(%n0, %no)",
        "mte_l1_ub %x1, %u, %n80 nburst(%n1, %n0, %n0)",
        "mte_ub_gm %u, %o, %n2560 nburst(%n1, %n0, %n0)",
    ]
    x = np.arange(1280, dtype=np.float16)
    for pitch in (16, 40):
        wanted, o = np.zeros((80, 16), np.float16), np.zeros(1280, np.float16)
        for r, row in enumerate(x.reshape(40, 2, 16)):
            wanted[r], wanted[r + pitch] = row
        run(kernel(arguments, places, lines), target, x, o, pitch)
        np.testing.assert_array_equal(o.reshape(80, 16), wanted)
    lines[0] = lines[0].replace("%pitch", "%n16")
    with pytest.raises(UnsupportedFeatureError, match="strides 0, 1, 16, elements of this window lie on each other"):
        run(kernel(arguments, places, lines), target, x, np.zeros(1280, np.float16), 16)


def flagged(lines: list[str]) -> str:
    """Return a kernel that brings out what lines make of 16 x 16 ones and two more numbers, a flag and a bias."""
    arguments = {"x": "f16, gm", "w": "f32, gm", "o": "f32, gm", "is": "i1"}
    places = {
        "x1": ("f16, l1", 0), "w1": ("f32, l1", 65536), "a": ("f16, l0a", 0), "b": ("f16, l0b", 0),
        "c": ("f32, l0c", 0), "bt": ("f32, bt", 0),
    }  # fmt: skip
    head = [
        staged("x", 16, 16, 2),
        "mte_gm_l1 %w, %w1, %n64 nburst(%n1, %n0, %n0)",
        "mte_l1_bt %w1, %bt, %n2 nburst(%n1, %n0, %n0)",
        "mte_l1_l0a %x1, %a, %n16, %n16, %n0, %n0",
        "mte_l1_l0b %x1, %b, %n16, %n16, %n0, %n0 {transpose = true}",
        "mad %a, %b, %c, %n16, %n16, %n16",
    ]
    return kernel(arguments, places, [*head, *lines, "mte_l0c_gm %c, %o, %n16, %n16, %n16, %n16, %n0, %n0, nz2nd"])


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("mad %a, %b, %c, %n16, %n16, %n16 acc_init(%yes)", (16, 16)),
        ("mad %a, %b, %c, %n16, %n16, %n16 acc_init(%no)", (32, 32)),
        ("mad %a, %b, %c, %n16, %n16, %n16 unit_flag_value(%n2) acc_init(%is) disable_gemv_value(%yes)", (32, 16)),
        ("mad_acc %a, %b, %c, %n16, %n16, %n16 acc_init(%is)", (32, 16)),
        ("mad_bias %a, %b, %c, %bt, %n16, %n16, %n16 bias_init(%no)", (32, 32)),
        ("mad_bias %a, %b, %c, %bt, %n16, %n16, %n16 bias_init(%is)", (32, 19)),
    ],
)
def test_what_a_product_begins_with_may_be_told_when_it_runs(line: str, expected: tuple[int, int], target: str) -> None:
    x, w = np.ones((16, 16), np.float16), np.full(16, 3, np.float32)
    for flag, wanted in enumerate(expected):
        o = np.zeros((16, 16), np.float32)
        run(flagged([line]), target, x, w, o, bool(flag))
        assert (o == wanted).all()


SIX = "m_start(%n0), m_step(%n1), k_start(%n0), k_step(%n1), dst_stride(%n1), src_stride(%n1)"


@pytest.mark.parametrize("numbers", ["%n0, %n0, %n1, %n1, %n1, %n1", SIX])
def test_six_numbers_load_fractals_in_order_or_by_name(numbers: str, target: str) -> None:
    lines = [f"mte_l1_l0a %x1, %a, {numbers}", "mad %a, %b, %c, %n16, %n16, %n16"]
    x, o = np.random.default_rng(0).integers(-4, 5, (16, 16)).astype(np.float16), np.zeros((16, 16), np.float32)
    run(flagged(lines), target, x, np.zeros(16, np.float32), o, False)
    np.testing.assert_array_equal(o, x.astype(np.float32) @ x.astype(np.float32))


def test_a_load_of_five_numbers_is_refused() -> None:
    with pytest.raises(PtoOperandError, match="has 5 numbers"):
        run(flagged(["mte_l1_l0a %x1, %a, %n16, %n16, %n0, %n0, %n1"]), "interpret")
