"""Products on matrix tiles agree with NumPy at every edge, and touch nothing else; functions stand for AMX here."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pytest
from unit.backends.cpu.test_gemm import at, expected, loaded, numbers

from tilewright.backends.cpu.compute.tile_gemm import TileGemmSpec, TileOperands, emit_tile_gemm
from tilewright.backends.cpu.compute.words import emit_words, tile_words
from tilewright.dtypes import BF16, FP32, INT8, INT32, UINT8, DataType
from tilewright.native.assemble import assembly
from tilewright.native.llvm import I64, PTR, Builder, Module, Value
from tilewright.native.target import PRESETS, V4, normalized, own_baseline

EDGES = (1, 2, 7, 15, 16, 17, 31, 32, 33, 47, 63, 64, 65, 70, 97)
KINDS = [(BF16, BF16), *product((INT8, UINT8), (INT8, UINT8))]
MATRIX = Value(PTR, "%s"), Value(I64, "%l"), Value(PTR, "%d"), Value(I64, "%r"), Value(I64, "%c")


@cache
def gemm(lhs: DataType, rhs: DataType) -> tuple[TileGemmSpec, Callable[..., None], Callable[..., None]]:
    """Return what multiplies on emulated tiles, and what makes words of its right matrix."""
    spec = TileGemmSpec(replace(own_baseline(), emulates_tiles=True), lhs, rhs)
    module, packing = Module(), Module()
    words = emit_words(packing, tile_words(rhs))
    multiply = loaded(module, emit_tile_gemm(module, spec), TileOperands(), spec.target)
    return spec, multiply, loaded(packing, words, MATRIX, spec.target)


def check(lhs: DataType, rhs: DataType, m: int, n: int, steps: int, accumulate: bool, words_of_step: int = 16) -> None:
    """Multiply into the middle of a larger array and look at all of it."""
    spec, multiply, make_words = gemm(lhs, rhs)
    k = steps * spec.depth * words_of_step // 16
    a, b = numbers(lhs, m, k + 3)[:, :k], numbers(rhs, k, n + 5)[:, :n]
    words = np.full(tile_words(rhs).room(k, n) // 4 + 1, -1, np.int32)
    make_words(b.ctypes.data, at(b)[1], words.ctypes.data, k, n)
    around = numbers(FP32 if lhs.is_float() else INT32, m + 2, n + 23)
    before, c = np.array(around), around[1 : m + 1, 3 : n + 3]
    want, error = expected(a, b, c if accumulate else 0)
    sizes = m, n, steps, words_of_step
    multiply(a.ctypes.data, a.strides[0], words.ctypes.data, c.ctypes.data, c.strides[0], *sizes, accumulate)
    assert np.all(np.abs(c - want) <= error), (lhs, rhs, m, n, steps, accumulate)
    c[:] = before[1 : m + 1, 3 : n + 3]
    assert np.array_equal(around, before), (lhs, rhs, m, n, steps, accumulate)


@pytest.mark.parametrize(("lhs", "rhs"), KINDS, ids=str)
def test_products_of_every_edge_shape(lhs: DataType, rhs: DataType) -> None:
    for m, n, accumulate in product(EDGES, EDGES, (False, True)):
        check(lhs, rhs, m, n, 1 + (m + n) % 3, accumulate)


@pytest.mark.parametrize(("lhs", "rhs"), KINDS, ids=str)
def test_a_short_step_adds_fewer_products(lhs: DataType, rhs: DataType) -> None:
    for m, n, words in product((1, 16, 17, 33, 47), (1, 16, 31, 33, 70), (1, 2, 7, 8, 15)):
        check(lhs, rhs, m, n, 1, (m + n) % 2 == 0, words)


@pytest.mark.parametrize("accumulate", [False, True])
def test_no_steps_are_a_sum_of_nothing(accumulate: bool) -> None:
    check(BF16, BF16, 19, 35, 0, accumulate)


# as AMX runs it


def functions(lhs: DataType, rhs: DataType) -> dict[str, list[str]]:
    """Return the instructions of each function of a gemm for AMX, by what its name ends with."""
    features = normalized({**dict.fromkeys(V4, True), "amx-tile": True, "amx-bf16": True, "amx-int8": True})
    target, module = replace(PRESETS["x86-64-v4"], cpu="sapphirerapids", features=features), Module()
    spec = TileGemmSpec(target, lhs, rhs, polled=True)
    params = *TileOperands(), Value(PTR, "%context")
    entry = Builder(module, "entry", params, linkage="")
    entry.invoke(emit_tile_gemm(module, spec), *params)
    entry.finish()
    found: dict[str, list[str]] = {}
    name = ""
    for line in assembly(module.text(), target).splitlines():
        if re.fullmatch(r"[\w.]+:", line) and not line.startswith(".L"):
            name = line[:-1].removeprefix(spec.family).lstrip(".")
        elif line.startswith("\t") and not line.startswith("\t."):
            found.setdefault(name, []).append(line.strip().split("#")[0].strip())
    return found


@pytest.mark.parametrize(
    ("lhs", "rhs", "instruction"),
    [
        (BF16, BF16, "tdpbf16ps"),
        (INT8, INT8, "tdpbssd"),
        (INT8, UINT8, "tdpbsud"),
        (UINT8, INT8, "tdpbusd"),
        (UINT8, UINT8, "tdpbuud"),
    ],
    ids=str,
)
def test_a_step_is_four_loads_and_four_products(lhs: DataType, rhs: DataType, instruction: str) -> None:
    micro = functions(lhs, rhs)["micro32x32"]
    counts = {name: sum(line.startswith(name) for line in micro) for name in ("tileloadd", "tilestored", instruction)}
    assert counts == {"tileloadd": 4 + 4, "tilestored": 4, instruction: 4}, "sums that go on are loaded once, too"
    first = next(at for at, line in enumerate(micro) if line.startswith("prefetch"))
    assert not any(line.endswith("(%rsp)") for line in micro[first:]), "no step spills anything"


def test_tiles_are_given_back_before_anybody_else_runs() -> None:
    found = functions(BF16, BF16)
    whole = found[""]
    returns = [at for at, line in enumerate(whole) if line == "retq"]
    assert sum(line.startswith("ldtilecfg") for line in whole) == 2
    assert returns and all("tilerelease" in whole[at - 15 : at] for at in returns)
    assert not any("poll" in line for line in whole) and any("poll" in line for line in found["polled"])
    touched = (name for name, lines in found.items() if any("tile" in line.split()[0] for line in lines))
    assert sorted(touched) == ["", "micro16x32", "micro32x32"]
