"""Ops of newer texts: interleaved columns, extremes with their places, sines, run natively and interpreted."""

from __future__ import annotations

from typing import Any, cast

import numpy
import pytest

from tilewright import ir
from tilewright.pto.lower import lower
from tilewright.pto.text.parser import parse
from tilewright.pto.verify import verify

np = cast("Any", numpy)
HALF, WHOLE = "!pto.tile_buf<vec, 8x16xf32>", "!pto.tile_buf<vec, 8x32xf32>"
PART = "!pto.partition_tensor_view<8x{}xf32>"
VECTOR, MASK = "!pto.vreg<64xf32>", "!pto.mask<b32>"


def launched(text: str, target: str, *buffers: Any) -> None:
    module = parse(text, "k.pto")
    verify(module)
    *_, func = module.funcs()
    given: list[Any] = [np.reshape(each, -1) for each in buffers]
    ir.compile(lower(module, func, target="a5"), platform=target)(1, *given)


def part(name: str, cols: int, first: int = 0) -> str:
    """Return a window of 8 rows of a buffer that has 32 columns, some of them from one on."""
    return f"""    %at_{name} = arith.constant {first} : index
    %cols_{name} = arith.constant {cols} : index
    %v_{name} = pto.make_tensor_view %{name[0]}, shape = [%c8, %c32], strides = [%c32, %c1] : !pto.tensor_view<?x?xf32>
    %{name}p = pto.partition_view %v_{name}, offsets = [%c0, %at_{name}], sizes = [%c8, %cols_{name}]
      : !pto.tensor_view<?x?xf32> -> {PART.format(cols)}
"""


def columns(lines: str) -> str:
    """Return a kernel that loads 8 x 32 numbers, runs lines that make %low and %high of %x, and stores both halves."""
    return f"""module attributes {{pto.target_arch = "a5"}} {{
  func.func @k(%a: !pto.ptr<f32>, %o: !pto.ptr<f32>) {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %c32 = arith.constant 32 : index
{part("a", 32)}{part("a0", 16)}{part("a1", 16, 16)}{part("o0", 16)}{part("o1", 16, 16)}
    %x = pto.alloc_tile : {WHOLE}
    %low = pto.alloc_tile : {HALF}
    %high = pto.alloc_tile : {HALF}
    pto.tload ins(%ap : {PART.format(32)}) outs(%x : {WHOLE})
    pto.tload ins(%a0p : {PART.format(16)}) outs(%low : {HALF})
    pto.tload ins(%a1p : {PART.format(16)}) outs(%high : {HALF})
    {lines}
    pto.tstore ins(%low : {HALF}) outs(%o0p : {PART.format(16)})
    pto.tstore ins(%high : {HALF}) outs(%o1p : {PART.format(16)})
    return
  }}
}}
"""


@pytest.mark.parametrize(
    ("lines", "turned"),
    [
        (f"pto.tinterleave ins(%low, %high : {HALF}, {HALF}) outs(%low, %high : {HALF}, {HALF})", True),
        (f"pto.tdeinterleave ins(%low, %high : {HALF}, {HALF}) outs(%low, %high : {HALF}, {HALF})", False),
        (f"pto.tdeinterleave ins(%x : {WHOLE}) outs(%low, %high : {HALF}, {HALF})", False),
    ],
)
def test_columns_take_turns_in_place_too(lines: str, turned: bool, target: str) -> None:
    a = np.arange(256, dtype=np.float32).reshape(8, 32)
    out = np.zeros_like(a)
    launched(columns(lines), target, a, out)
    halves = a.reshape(8, 2, 16).transpose(0, 2, 1) if turned else a.reshape(8, 16, 2).transpose(0, 2, 1)
    np.testing.assert_array_equal(out, halves.reshape(8, 32))


def lanes(op: str) -> str:
    """Return a kernel that stores the extreme of the first 40 of 64 lanes, and a one for each that is it."""
    return f"""module {{
  func.func @k(%a: !pto.ptr<f32>, %o: !pto.ptr<f32>) {{
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %n0 = arith.constant 0 : i64
    %n1 = arith.constant 1 : i64
    %bytes = arith.constant 256 : i64
    %both = arith.constant 512 : i64
    %forty = arith.constant 40 : i32
    %one = arith.constant 1.0 : f32
    %x = pto.castptr %n0 : i64 -> !pto.ptr<f32, ub>
    %y = pto.castptr %both : i64 -> !pto.ptr<f32, ub>
    pto.mte_gm_ub %a, %x, %n0, %bytes nburst(%n1, %n0, %n0) : !pto.ptr<f32>, !pto.ptr<f32, ub>, i64, i64, i64, i64, i64
    pto.vecscope {{
      %all = pto.pset_b32 "PAT_ALL" : {MASK}
      %m, %rest = pto.plt_b32 %forty : i32 -> {MASK}, i32
      %v = pto.vlds %x[%c0] : !pto.ptr<f32, ub> -> {VECTOR}
      %best, %at = pto.{op} %v, %m : {VECTOR}, {MASK} -> {VECTOR}, {MASK}
      %ones = pto.vdup %one, %at : f32, {MASK} -> {VECTOR}
      pto.vsts %best, %y[%c0], %all : {VECTOR}, !pto.ptr<f32, ub>, {MASK}
      pto.vsts %ones, %y[%c64], %all : {VECTOR}, !pto.ptr<f32, ub>, {MASK}
    }}
    pto.mte_ub_gm %y, %o, %both nburst(%n1, %n0, %n0) : !pto.ptr<f32, ub>, !pto.ptr<f32>, i64, i64, i64, i64
    return
  }}
}}
"""


@pytest.mark.parametrize(("op", "extreme"), [("vcbmax", np.max), ("vcbmin", np.min)])
def test_an_extreme_comes_with_all_its_places_among_lanes_that_take_part(op: str, extreme: Any, target: str) -> None:
    a, out = np.random.default_rng(0).integers(-3, 4, 64).astype(np.float32), np.ones((2, 64), np.float32)
    launched(lanes(op), target, a, out)
    best = extreme(a[:40])
    np.testing.assert_array_equal(out[0], np.append(best, np.zeros(63)))
    np.testing.assert_array_equal(out[1], (a == best) & (np.arange(64) < 40))


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_functions_of_angles(name: str, target: str) -> None:
    text = f"""module {{
  func.func @k(%a: !pto.ptr<f32>, %o: !pto.ptr<f32>) {{
    %c0 = arith.constant 0 : index
    %x = pto.load %a[%c0] : !pto.ptr<f32> -> f32
    %r = pto.{name} %x : f32 -> f32
    pto.store %r, %o[%c0] : !pto.ptr<f32>, f32
    return
  }}
}}
"""
    a, out = np.array([1.25], np.float32), np.zeros(1, np.float32)
    launched(text, target, a, out)
    np.testing.assert_allclose(out, getattr(np, name)(a), rtol=1e-6)
