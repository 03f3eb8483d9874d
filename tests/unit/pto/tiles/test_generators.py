"""Generators and quantized tiles against NumPy, natively and on the interpreter."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import tilewright.pto as pto
from tilewright.programs.compiler import compile
from tilewright.pto.errors import PtoAttributeError, PtoTypeMismatchError
from tilewright.pto.lower import lower
from tilewright.pto.verify import verify

Array = Any
ELEMENTS = {"float32": "f32", "int8": "i8", "uint8": "ui8", "uint16": "ui16", "int32": "i32", "uint32": "ui32"}
each_platform = pytest.mark.parametrize("platform", ["cpu", "interpret"])


def tile_of(array: Array) -> str:
    """Return the type of a tile that holds an array."""
    rows, cols = array.shape
    layout = ", blayout=col_major" if cols == 1 else ""
    return f"!pto.tile_buf<vec, {rows}x{cols}x{ELEMENTS[str(array.dtype)]}{layout}>"


def loaded(name: str, array: Array) -> list[str]:
    """Return the lines that load an array into a tile of a name."""
    rows, cols = array.shape
    element = ELEMENTS[str(array.dtype)]
    view, part = f"!pto.tensor_view<?x?x{element}>", f"!pto.partition_tensor_view<{rows}x{cols}x{element}>"
    sizes = f"[%c{rows}, %c{cols}]"
    return [
        f"%{name}_view = pto.make_tensor_view %{name}_gm, shape = {sizes}, strides = [%c{cols}, %c1] : {view}",
        f"%{name}_part = pto.partition_view %{name}_view, offsets = [%c0, %c0], sizes = {sizes} : {view} -> {part}",
        f"%{name} = pto.alloc_tile : {tile_of(array)}",
        f"pto.tload ins(%{name}_part : {part}) outs(%{name} : {tile_of(array)})",
    ]


def run(op: str, arrays: Sequence[Array], words: Sequence[int] = (), platform: str = "cpu", room: int = 0) -> Array:
    """Run a kernel that loads all arrays, does one op into the last, and stores that; return it.

    With `room` all tiles have that many columns, and their arrays' are valid.
    """
    names, numbers = [f"t{i}" for i in range(len(arrays))], [f"%w{i}" for i in range(len(words))]
    sizes = sorted({0, 1, *(n for array in arrays for n in array.shape)})
    lines = [f"%c{number} = arith.constant {number} : index" for number in sizes]
    lines += [line for name, array in zip(names, arrays, strict=True) for line in loaded(name, array)]
    given = ", ".join([*numbers, *(f"%{name}" for name in names[:-1])])
    typed = ", ".join([*("i32" for _ in words), *map(tile_of, arrays[:-1])])
    (word, _, attributes), out = op.partition(" "), f"%{names[-1]} : {tile_of(arrays[-1])}"
    lines.append(f"pto.{word} ins({given} : {typed}) outs({out}) {attributes}")
    part = lines[-2].partition("ins(")[2].partition(")")[0]
    lines += [f"pto.tstore ins({out}) outs({part})", "return"]
    params = [f"%{n}_gm: !pto.ptr<{ELEMENTS[str(a.dtype)]}>" for n, a in zip(names, arrays, strict=True)]
    head = ", ".join([*params, *(f"{number}: i32" for number in numbers)])
    text = "\n".join(["module {", f"func.func @kernel({head}) {{", *lines, "}", "}"])
    wide = re.sub(r"<vec, (\d+)x(\d+)x(\w+)", rf"<vec, \1x{room}x\3, valid=\1x\2", text) if room else text
    module = pto.parse(wide)
    verify(module, is_portable=True)
    (func,) = module.funcs()
    flat = [np.ravel(array.copy()) for array in arrays]
    compile(lower(module, func, target="a5"), platform=platform)(1, *flat, *words)
    return np.reshape(flat[-1], arrays[-1].shape)


@each_platform
def test_triangles(platform: str) -> None:
    for diagonal in (-3, 0, 5):
        blank = np.zeros((8, 16), np.float32)
        rows, cols = np.indices(blank.shape)
        lower_half = run("ttri", [blank], [diagonal], platform)
        upper_half = run("ttri {upperOrLower = 1 : i32}", [blank], [diagonal], platform)
        np.testing.assert_array_equal(lower_half, cols <= rows + diagonal)
        np.testing.assert_array_equal(upper_half, cols >= rows + diagonal)


def philox(key: Sequence[int], counter: int, rounds: int) -> list[int]:
    """Return the four words of one block."""
    k0, k1 = key
    c = [counter >> 32 * i & 0xFFFFFFFF for i in range(4)]
    for _ in range(rounds):
        p0, p1 = c[0] * 0xD2511F53, c[2] * 0xCD9E8D57
        c = [p1 >> 32 ^ c[1] ^ k0, p1 & 0xFFFFFFFF, p0 >> 32 ^ c[3] ^ k1, p0 & 0xFFFFFFFF]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return c


@each_platform
@pytest.mark.parametrize("rounds", [7, 10])
def test_random_words_are_those_of_philox(platform: str, rounds: int) -> None:
    words = [11, -22, -1, 7, 0, 5]
    found = run(f"trandom {{rounds = {rounds} : i32}}", [np.zeros((2, 256), np.uint32)], words, platform)
    k0, k1, *counter = (word & 0xFFFFFFFF for word in words)
    start = sum(word << 32 * i for i, word in enumerate(counter))
    expected = [philox((k0, k1), start + i, rounds) for i in range(128)]
    np.testing.assert_array_equal(found.ravel(), np.ravel(expected))


@each_platform
@pytest.mark.parametrize("is_high", [True, False])
def test_histograms_count_bytes_up_to_each(platform: str, is_high: bool) -> None:
    rng = np.random.default_rng(0)
    source = rng.integers(0, 4 << 8, (3, 64)).astype(np.uint16)
    chosen = np.array([[0], [2], [9]], np.uint8)
    found = run(
        f"thistogram {{isMSB = {str(is_high).lower()}}}", [source, chosen, np.zeros((3, 256), np.uint32)], (), platform
    )
    for row in range(3):
        high = source[row] >> 8
        counted = high if is_high else source[row][high == chosen[row]] & 255
        np.testing.assert_array_equal(found[row], [np.sum(counted <= bin) for bin in range(256)])


@each_platform
def test_rows_are_joined_by_index(platform: str) -> None:
    rng = np.random.default_rng(1)
    first, second = rng.normal(size=(2, 4, 16)).astype(np.float32)
    counts = np.array([[3], [0], [16], [20]], np.int32)
    others = np.array([[5], [16], [16], [-2]], np.int32)
    blank = np.full((4, 24), -1, np.float32)
    found = run("tconcatidx", [first, second, counts, others, blank], (), platform)
    for row, (a, b) in enumerate(zip(counts[:, 0], others[:, 0], strict=True)):
        here = min(int(a), 16)
        there = min(max(int(b), 0), 16, 24 - here)
        np.testing.assert_array_equal(
            found[row], [*first[row, :here], *second[row, :there], *[-1] * (24 - here - there)]
        )


@each_platform
def test_floats_become_bytes_and_back(platform: str) -> None:
    rng = np.random.default_rng(2)
    x = rng.normal(size=(8, 20)).astype(np.float32) * 100
    factors = rng.uniform(0.5, 2, (8, 8)).astype(np.float32)
    offsets = rng.integers(100, 140, (8, 8)).astype(np.float32)
    scale, offset = np.tile(factors, 3)[:, :20], np.tile(offsets, 3)[:, :20]
    signed = run("tquant", [x, factors, np.zeros((8, 20), np.int8)], (), platform)
    np.testing.assert_array_equal(signed, np.minimum(np.maximum(np.rint(x * scale), -128), 127))
    ragged = run("tquant", [x, factors, np.zeros((8, 20), np.int8)], (), platform, room=32)
    np.testing.assert_array_equal(ragged, signed)
    asymmetric = "tquant {quant_type = #pto<quant_type INT8_ASYM>}"
    unsigned = run(asymmetric, [x, factors, offsets, np.zeros((8, 20), np.uint8)], (), platform)
    np.testing.assert_array_equal(unsigned, np.minimum(np.maximum(np.rint(x * scale + offset), 0), 255))
    back = run("tdequant", [signed, factors, offsets, np.zeros((8, 20), np.float32)], (), platform)
    np.testing.assert_array_equal(back, (signed.astype(np.float32) - offsets[:, :1]) * factors[:, :1])


def test_what_they_do_not_take_is_refused() -> None:
    x, byte = np.zeros((8, 8), np.float32), np.zeros((8, 8), np.int8)
    with pytest.raises(PtoAttributeError, match="has an offset"):
        run("tquant", [x, x, x, byte])
    with pytest.raises(PtoTypeMismatchError, match="makes i8"):
        run("tquant", [x, x, x])
    with pytest.raises(PtoAttributeError, match="8 rounds"):
        run("trandom {rounds = 8 : i32}", [np.zeros((1, 8), np.uint32)], [0] * 6)
    with pytest.raises(PtoTypeMismatchError, match="counts ui16"):
        run("thistogram", [x, x, np.zeros((8, 256), np.uint32)])
