"""Formats of few bits: every code decoded, and numbers encoded to the nearest, natively and in the interpreter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy
import pytest
from unit.pto.sentences import words_of
from unit.pto.tiles import running

from tilewright.pto.examples.lines import example
from tilewright.pto.lower import lower
from tilewright.pto.text.parser import parse
from tilewright.tools.pto import given_values, launch

np: Any = numpy


def hif8(code: int) -> float:
    """Return what a code stands for, as the format's own text has it."""
    sign, low = (-1.0 if code & 0x80 else 1.0), code & 0x7F
    if code == 0x80 or low == 0x6F:
        return np.nan if code == 0x80 else sign * np.inf
    if low < 8:
        return sign * 2.0 ** (low - 23) if low else 0.0
    text = f"{low:07b}"
    prefix, bits = next(
        (p, b) for p, b in (("0001", 0), ("001", 1), ("01", 2), ("10", 3), ("11", 4)) if text.startswith(p)
    )
    field, fraction = text[len(prefix) : len(prefix) + bits], text[len(prefix) + bits :]
    exponent = int("1" + field[1:], 2) * (-1 if field[0] == "1" else 1) if bits else 0
    return sign * 2.0**exponent * (1 + int(fraction, 2) / 2 ** len(fraction))


HIF8 = np.array([hif8(code) for code in range(256)], np.float32)
E4M3 = np.arange(256, dtype=np.uint8).view(ml_dtypes.float8_e4m3).astype(np.float32)


def tile(memory: str, height: int, width: int, element: str) -> str:
    return f"!pto.tile_buf<{memory}, {height}x{width}x{element}>"


def window(name: str, height: int, width: int, element: str) -> list[str]:
    """Return the text that sees all of a matrix behind a pointer."""
    view, part = f"!pto.tensor_view<?x?x{element}>", f"!pto.partition_tensor_view<{height}x{width}x{element}>"
    sizes = f"[%h{name}, %w{name}]"
    return [
        f"%h{name} = arith.constant {height} : index",
        f"%w{name} = arith.constant {width} : index",
        f"%m{name} = pto.make_tensor_view %{name}, shape = {sizes}, strides = [%w{name}, %c1] : {view}",
        f"%p{name} = pto.partition_view %m{name}, offsets = [%c0, %c0], sizes = {sizes} : {view} -> {part}",
    ]


def move(op: str, name: str, buffer: str, memory: str, height: int, width: int, element: str) -> str:
    """Return the text that loads a matrix into a tile, or stores it from one."""
    sides = [f"(%p{name} : !pto.partition_tensor_view<{height}x{width}x{element}>)"]
    sides.append(f"(%{buffer} : {tile(memory, height, width, element)})")
    source, target = sides if op == "tload" else sides[::-1]
    return f"pto.{op} ins{source} outs{target}"


def kernel(name: str, pointers: dict[str, str], lines: list[str]) -> str:
    arguments = ", ".join(f"%{each}: !pto.ptr<{element}>" for each, element in pointers.items())
    start = ["%c0 = arith.constant 0 : index", "%c1 = arith.constant 1 : index"]
    body = "\n    ".join([*start, *lines, "return"])
    return f"module {{\n  func.func @{name}({arguments}) {{\n    {body}\n  }}\n}}\n"


def casts(t: str, sat: str) -> str:
    """Return a kernel that decodes 256 codes and encodes 256 numbers."""
    pointers = {"codes": t, "numbers": "f32", "x": "f32", "out": t}
    few, wide = (tile("vec", 1, 256, element) for element in (t, "f32"))
    lines = [line for name, element in pointers.items() for line in window(name, 1, 256, element)]
    lines += [
        f"%c = pto.alloc_tile : {few}",
        f"%f = pto.alloc_tile : {wide}",
        move("tload", "codes", "c", "vec", 1, 256, t),
        f"pto.tcvt ins(%c : {few}) outs(%f : {wide})",
        move("tstore", "numbers", "f", "vec", 1, 256, "f32"),
        move("tload", "x", "f", "vec", 1, 256, "f32"),
        f"pto.tcvt ins(%f : {wide}) outs(%c : {few}) {{sat_mode = #pto<saturation_mode {sat}>}}",
        move("tstore", "out", "c", "vec", 1, 256, t),
    ]
    return kernel("casts", pointers, lines)


def nearest(values: Any, table: Any, tie: Callable[[int, int], int], most: int) -> list[int]:
    """Return the codes nearest to sizes, among positive ones in the order of their numbers."""
    order = sorted((float(table[code]), code) for code in range(128) if np.isfinite(table[code]))
    found: list[int] = []
    for value in values:
        below = max((pair for pair in order if pair[0] <= value), default=order[0])
        above = min((pair for pair in order if pair[0] >= value), default=(np.inf, most))
        middle = (below[0] + above[0]) / 2 if above[0] < np.inf else np.inf
        found.append(below[1] if value < middle else above[1] if value > middle else tie(below[1], above[1]))
    return found


def away(low: int, high: int) -> int:
    return high


def even(low: int, high: int) -> int:
    return low if low % 2 == 0 else high


def samples(table: Any, seed: int) -> Any:
    """Return the numbers of a format, those halfway between two, and others around them."""
    finite = np.sort(table[:127][np.isfinite(table[:127])])
    middles = (finite[1:] + finite[:-1]) / 2
    rng = np.random.default_rng(seed)
    chosen = rng.choice(np.concatenate([finite, middles, middles * np.float32(1.0001)]), 240)
    return np.concatenate([chosen, [0, 1e-9, 2**-23, 1.5 * 2**-24, 1.25 * 2**-23, 0, 1, 3]]).astype(np.float32)


@pytest.mark.parametrize(("name", "table"), [("!pto.hif8", HIF8), ("f8E4M3", E4M3)])
def test_codes_and_numbers(name: str, table: Any, target: str) -> None:
    x = np.concatenate([samples(table, 1), [-1.0, -3.3, np.nan, np.inf, -np.inf, 1e6, -1e6, -0.0]]).astype(np.float32)
    codes, zeros = np.arange(256, dtype=np.uint8), np.zeros(256, np.float32)
    is_hif8 = name == "!pto.hif8"
    largest, infinite, nan = (0x6E, 0x6F, 0x80) if is_hif8 else (0x77, 0x78, 0x7F)
    tie = away if is_hif8 else even
    for sat, beyond in (("on", largest), ("off", infinite)):
        module = running.read(casts(name, sat))
        _, numbers, _, found = running.run(module, "casts", target, 1, [codes, zeros, x, np.zeros(256, np.uint8)])
        np.testing.assert_array_equal(numbers, table)
        assert found[:248].tolist() == nearest(x[:248], table, tie, beyond)
        minus = [0x80 | code for code in nearest([1.0, 3.3], table, tie, beyond)]
        zero = 0 if is_hif8 else 0x80
        assert found[248:].tolist() == [*minus, nan, beyond, 0x80 | beyond, beyond, 0x80 | beyond, zero]


PAIRS = """module attributes {pto.target_arch = "a5"} {
  func.func @pairs(%x: !pto.ptr<vector<2xf32>>, %out: !pto.ptr<i32>, %back: !pto.ptr<vector<2xf32>>, %n: index) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    scf.for %i = %c0 to %n step %c1 {
      %v = pto.load %x[%i] : !pto.ptr<vector<2xf32>> -> vector<2xf32>
      %h = pto.convert %v round(a) nosat : vector<2xf32> -> !pto.hif8x2
      %hb = llvm.bitcast %h : !pto.hif8x2 to i16
      %hw = arith.extui %hb : i16 to i32
      %b = pto.convert %v round(r) nosat : vector<2xf32> -> vector<2xbf16>
      %q = pto.convert %b round(r) sat : vector<2xbf16> -> !pto.f4E2M1x2
      %qb = llvm.bitcast %q : !pto.f4E2M1x2 to i8
      %qw = arith.extui %qb : i8 to i32
      %u = pto.convert %b round(r) sat : vector<2xbf16> -> !pto.f4E1M2x2
      %ub = llvm.bitcast %u : !pto.f4E1M2x2 to i8
      %uw = arith.extui %ub : i8 to i32
      %c16 = arith.constant 16 : i32
      %c24 = arith.constant 24 : i32
      %s0 = arith.shli %qw, %c16 : i32
      %s1 = arith.shli %uw, %c24 : i32
      %o0 = arith.ori %hw, %s0 : i32
      %o1 = arith.ori %o0, %s1 : i32
      pto.store %o1, %out[%i] : !pto.ptr<i32>, i32
      %w = pto.convert %q round(r) nosat : !pto.f4E2M1x2 -> vector<2xbf16>
      %f = pto.convert %w round(r) nosat : vector<2xbf16> -> vector<2xf32>
      pto.store %f, %back[%i] : !pto.ptr<vector<2xf32>>, vector<2xf32>
    }
    return
  }
}
"""
FOUR = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])


def test_pairs_of_codes(target: str) -> None:
    x = np.array([1, 2, 0.25, 0.75, 5, -2.5, 7, -0.3, 1.25, 3.5, 0, 100], np.float32)
    out, back = np.zeros(6, np.int32), np.zeros(6, np.uint64)
    _, out, back = running.run(running.read(PAIRS), "pairs", target, 1, [x.view(np.uint64), out, back, 6])
    assert out[0] & 0xFFFF == 0x1008
    e2m1 = [0x2 | 0x4 << 4, 0 | 0x2 << 4, 0x6 | 0xC << 4, 0x7 | 0x9 << 4, 0x2 | 0x6 << 4, 0 | 0x7 << 4]
    e1m2 = [0x4 | 0x7 << 4, 0x1 | 0x3 << 4, 0x7 | 0xF << 4, 0x7 | 0x9 << 4, 0x5 | 0x7 << 4, 0 | 0x7 << 4]
    assert [(int(n) >> 16) & 0xFF for n in out] == e2m1
    assert [(int(n) >> 24) & 0xFF for n in out] == e1m2
    signed = [FOUR[code & 7] * (-1 if code & 8 else 1) for byte in e2m1 for code in (byte & 15, byte >> 4)]
    assert back.view(np.float32).tolist() == signed


def product(op: str, rows: int, depth: int, columns: int, kind: str, scale: str) -> str:
    """Return a kernel that multiplies matrices of small floats: the product twice, and the product and a bias."""
    groups = depth // 32
    sizes = {"a": (rows, depth, kind), "s": (rows, groups, scale), "b": (depth, columns, "f8E4M3FN")}
    sizes |= {"t": (groups, columns, scale), "o": (rows, columns, "f32"), "v": (1, columns, "f32")}
    sizes |= {"z": sizes["o"]}
    memories = {"a": "left", "s": "scaling", "b": "right", "t": "scaling", "o": "acc", "v": "bias", "z": "acc"}
    tiles = {name: tile(memories[name], *size) for name, size in sizes.items()}
    lines = [line for name, size in sizes.items() for line in window(name, *size)]
    lines += [f"%x{name} = pto.alloc_tile : {tiles[name]}" for name in sizes]
    lines += [f"pto.tget_scale_addr ins(%xa : {tiles['a']}) outs(%xs : {tiles['s']})"]
    lines += [
        move("tload", name, f"x{name}", memories[name], *size) for name, size in sizes.items() if name not in "oz"
    ]
    four, out = ", ".join(tiles[n] for n in "asbt"), f"outs(%xo : {tiles['o']})"
    lines += [
        f"pto.{op}.mx ins(%xa, %xs, %xb, %xt : {four}) {out}",
        f"pto.{op}.mx.acc ins(%xo, %xa, %xs, %xb, %xt : {tiles['o']}, {four}) {out}",
        f"pto.{op}.mx.bias ins(%xa, %xs, %xb, %xt, %xv : {four}, {tiles['v']}) {out.replace('%xo', '%xz')}",
        move("tstore", "o", "xo", "acc", *sizes["o"]),
        move("tstore", "z", "xz", "acc", *sizes["o"]),
    ]
    return kernel("product", {name: element for name, (_, _, element) in sizes.items()}, lines)


@pytest.mark.parametrize(("op", "rows", "kind", "scale"), [
    ("tmatmul", 16, "f8E4M3FN", "f8E8M0FNU"), ("tgemv", 1, "f8E5M2", "ui8"),
])  # fmt: skip
def test_scaled_products(op: str, rows: int, kind: str, scale: str, target: str) -> None:
    rng, (depth, columns) = np.random.default_rng(2), (64, 32)
    small = ml_dtypes.float8_e5m2 if kind == "f8E5M2" else ml_dtypes.float8_e4m3fn
    a = rng.normal(size=(rows, depth)).astype(small)
    b = rng.normal(size=(depth, columns)).astype(ml_dtypes.float8_e4m3fn)
    s, t = rng.integers(120, 134, (rows, 2)).astype(np.uint8), rng.integers(120, 134, (2, columns)).astype(np.uint8)
    bias = rng.normal(size=(1, columns)).astype(np.float32)
    exponents = ml_dtypes.float8_e8m0fnu if scale == "f8E8M0FNU" else np.uint8
    blank = np.zeros((rows, columns), np.float32)
    arguments = [a, s.view(exponents), b, t.view(exponents), blank, bias, blank]
    module = running.read(product(op, rows, depth, columns, kind, scale))
    found = running.run(module, "product", target, 1, arguments)
    left = a.astype(float) * np.repeat(2.0 ** (s.astype(float) - 127), 32, 1)
    right = b.astype(float) * np.repeat(2.0 ** (t.astype(float) - 127), 32, 0)
    np.testing.assert_allclose(found[4].reshape(rows, columns), 2 * (left @ right), rtol=1e-5, atol=1e-3)
    np.testing.assert_allclose(found[6].reshape(rows, columns), left @ right + bias, rtol=1e-5, atol=1e-3)


def test_scales_that_nobody_wrote_are_bytes_of_zero(target: str) -> None:
    """A product by 2 to the power of -127, on both sides, is nothing that f32 holds."""
    lines = [line for line in example("pto.tget_scale_addr").splitlines() if "pto.tmov ins(%m " not in line]
    module = parse("\n".join(lines), "scales.pto")
    *_, func = module.funcs()
    values = given_values(func, words_of("\n".join(lines)), 0)
    launch(lower(module, func, target="a5"), target, 1, values)
    assert np.abs(values[-1]).max() < 1e-30
