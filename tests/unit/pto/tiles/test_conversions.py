"""Conversions: every pair of element types at and beyond the limits of the second, with each word of `sat_mode`."""

from __future__ import annotations

from typing import Any, cast

import ml_dtypes
import numpy
import pytest
from unit.pto.tiles import running

from tilewright import pto

np = cast("Any", numpy)
TYPES: dict[str, Any] = {
    "f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "i8": np.int8, "i16": np.int16, "i32": np.int32,
    "i64": np.int64, "ui8": np.uint8, "ui16": np.uint16, "ui32": np.uint32,
}  # fmt: skip
COLUMNS = 32
FLOATS = (0, 1.5, 2.5, -2.5, 127.6, -129, 300, -300, 4e4, -4e4, 65519, 65520, 7e4, -7e4, 3e9, -3e9, 5e9, 2e17)
WRAPS = {("f16", "ui8"), ("f16", "i8"), ("f16", "i16"), ("f32", "i16"), ("i64", "i32"), ("i32", "i16")}
WORDS = {"": None, " {sat_mode = #pto<saturation_mode ON>}": True, " {sat_mode = #pto<saturation_mode OFF>}": False}


def text(source: str) -> str:
    """Return a kernel that converts a row to every other type, three times."""
    lines: list[str] = []
    for name in (source, *others(source)):
        rows = 1 if name == source else len(WORDS)
        view = f"!pto.tensor_view<?x?x{name}>"
        lines.append(
            f"%v{name} = pto.make_tensor_view %{name}, shape = [%c{rows}, %n], strides = [%n, %c1] : {view}\n"
            f"%t{name} = pto.alloc_tile : {tile(name)}"
        )
    lines.append(f"{part(source, 0)}\npto.tload ins(%p{source}0 : {window(source)}) outs(%t{source} : {tile(source)})")
    for name in others(source):
        for row, word in enumerate(WORDS):
            lines.append(
                f"pto.tcvt ins(%t{source} : {tile(source)}) outs(%t{name} : {tile(name)}){word}\n{part(name, row)}\n"
                f"pto.tstore ins(%t{name} : {tile(name)}) outs(%p{name}{row} : {window(name)})"
            )
    pointers = ", ".join(f"%{name}: !pto.ptr<{name}>" for name in (source, *others(source)))
    numbers = "\n".join(f"%c{number} = arith.constant {number} : index" for number in range(4))
    body = "\n".join([numbers, f"%n = arith.constant {COLUMNS} : index", *lines])
    return f'module attributes {{pto.target_arch = "a5"}} {{\nfunc.func @k({pointers}) {{\n{body}\nreturn\n}}\n}}\n'


def tile(name: str) -> str:
    return f"!pto.tile_buf<vec, 1x{COLUMNS}x{name}>"


def window(name: str) -> str:
    return f"!pto.partition_tensor_view<1x{COLUMNS}x{name}>"


def part(name: str, row: int) -> str:
    view = f"!pto.tensor_view<?x?x{name}>"
    return (
        f"%p{name}{row} = pto.partition_view %v{name}, offsets = [%c{row}, %c0], sizes = [%c1, %n] : "
        f"{view} -> {window(name)}"
    )


def others(source: str) -> list[str]:
    return [name for name in TYPES if name != source]


def is_float(name: str) -> bool:
    return "f" in name


def limits(name: str) -> tuple[float, float]:
    """Return the least and the largest finite number of a type."""
    find: Any = ml_dtypes.finfo if is_float(name) else np.iinfo
    found, number = find(TYPES[name]), float if is_float(name) else int
    return number(found.min), number(found.max)


def numbers(source: str) -> Any:
    """Return a row of numbers that some types cannot hold."""
    if is_float(source):
        row = [number for number in FLOATS if abs(number) <= limits(source)[1]]
    else:
        low, high = limits(source)
        row = sorted({min(max(round(n), low), high) for n in FLOATS} | {low, high, high // 2})
    return np.resize(np.array(row).astype(TYPES[source]), (1, COLUMNS))


def expected(values: Any, source: str, to: str, asked: bool | None) -> Any:
    saturates = (source, to) not in WRAPS if asked is None else asked
    low, high = limits(to)
    exact = values.astype(np.float64) if is_float(source) else values.astype(object)
    if is_float(to):
        narrower = high < max(abs(end) for end in limits(source))
        clamped = np.clip(exact, low, high) if saturates and narrower else exact
        return clamped.astype(np.float64).astype(TYPES[to])
    whole = np.array([[int(n) for n in np.rint(row)] if is_float(source) else list(row) for row in exact], object)
    span = int(high) - int(low) + 1
    return (np.clip(whole, low, high) if saturates else (whole - int(low)) % span + int(low)).astype(TYPES[to])


@pytest.mark.parametrize("source", TYPES)
def test_numbers_beyond_the_limits_are_clamped_or_not_as_the_word_says(source: str) -> None:
    names = [source, *others(source)]
    annotations = {name: pto.ptr(getattr(pto, name), "gm") for name in names}

    def k() -> None: ...

    declared = ", ".join(f"{name}: given['{name}']" for name in names)
    scope: dict[str, Any] = {"given": annotations, "k": k}
    exec(f"def k({declared}): ...", scope)
    row = numbers(source)
    outs = {name: np.zeros((len(WORDS), COLUMNS), TYPES[name]) for name in others(source)}
    with np.errstate(over="ignore"):
        pto.jit(source=text(source))(scope["k"])[1, None](row, *outs.values())
        for name, out in outs.items():
            wanted = np.concatenate([expected(row, source, name, asked) for asked in WORDS.values()])
            np.testing.assert_array_equal(out.astype(np.float64), wanted.astype(np.float64), f"{source} to {name}")


SLOPED = """module attributes {pto.target_arch = "a5"} {
  func.func @k(%x: !pto.ptr<f16>, %s: f32) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = arith.constant 16 : index
    %v = pto.make_tensor_view %x, shape = [%c1, %n], strides = [%n, %c1] : !pto.tensor_view<1x16xf16>
    %p = pto.partition_view %v, offsets = [%c0, %c0], sizes = [%c1, %n] : !pto.tensor_view<1x16xf16>
    %a = pto.alloc_tile : !pto.tile_buf<vec, 1x16xf16>
    pto.tload ins(%p : !pto.partition_tensor_view<1x16xf16>) outs(%a : !pto.tile_buf<vec, 1x16xf16>)
    pto.tlrelu ins(%a, %s : !pto.tile_buf<vec, 1x16xf16>, f32) outs(%a : !pto.tile_buf<vec, 1x16xf16>)
    pto.tstore ins(%a : !pto.tile_buf<vec, 1x16xf16>) outs(%p : !pto.partition_tensor_view<1x16xf16>)
    return
  }
}
"""


@pytest.mark.parametrize("slope", [0.1, 1e-8, 70000.0, float("inf")])
def test_a_slope_is_not_rounded_to_the_elements_that_it_meets(slope: float) -> None:
    x = np.resize(np.array([-0.000623, -1246, -np.inf, 3, -8, 0.5, 0, -0.0], np.float16), 16)
    with np.errstate(over="ignore", invalid="ignore"):
        wanted = np.where(x > 0, x, x.astype(np.float32) * np.float32(slope)).astype(np.float16)

    def k(x: Any, s: Any) -> None: ...

    k.__annotations__ = {"x": pto.ptr(pto.f16, "gm"), "s": pto.f32}
    pto.jit(source=SLOPED)(k)[1, None](x, slope)
    np.testing.assert_array_equal(x, wanted)


ROUNDED = """module attributes {{pto.target_arch = "a5"}} {{
  func.func @k(%x: !pto.ptr<{e}>) {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = arith.constant 16 : index
    %v = pto.make_tensor_view %x, shape = [%c1, %n], strides = [%n, %c1] : !pto.tensor_view<1x16x{e}>
    %p = pto.partition_view %v, offsets = [%c0, %c0], sizes = [%c1, %n] : !pto.tensor_view<1x16x{e}>
    %a = pto.alloc_tile : !pto.tile_buf<vec, 1x16x{e}>
    pto.tload ins(%p : !pto.partition_tensor_view<1x16x{e}>) outs(%a : !pto.tile_buf<vec, 1x16x{e}>)
    pto.tcvt ins(%a : !pto.tile_buf<vec, 1x16x{e}>) outs(%a : !pto.tile_buf<vec, 1x16x{e}>) {{rmode = #pto<round_mode {mode}>}}
    pto.tstore ins(%a : !pto.tile_buf<vec, 1x16x{e}>) outs(%p : !pto.partition_tensor_view<1x16x{e}>)
    return
  }}
}}
"""  # noqa: E501
ROUNDINGS = ["RINT", "ROUND", "FLOOR", "CEIL", "TRUNC", "ODD"]


def nearest(mode: str, x: Any) -> Any:
    """Return doubles rounded to integers."""
    if mode == "ROUND":
        return np.trunc(x + np.copysign(0.5, x))
    if mode == "ODD":
        return np.where(np.floor(x) % 2 == 1, np.floor(x), np.ceil(x))
    return getattr(np, mode.lower())(x)


@pytest.mark.parametrize("mode", ROUNDINGS)
@pytest.mark.parametrize("element", ["f32", "f16", "bf16"])
def test_zeros_keep_their_signs_when_elements_are_rounded(element: str, mode: str, target: str) -> None:
    given = [-0.0, 0.0, -0.3, 0.3, -0.5, 0.5, -1.5, 1.5, 2.5, -2.5, 1000, -np.inf, np.inf, np.nan, 1e-5, -1e-5]
    x = np.array(given).astype(TYPES[element])
    with np.errstate(invalid="ignore"):
        wanted = np.copysign(nearest(mode, x.astype(np.float64)), x.astype(np.float64))
    found = running.run(running.read(ROUNDED.format(e=element, mode=mode)), "k", target, 1, [x])[0].astype(np.float64)
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(wanted))
