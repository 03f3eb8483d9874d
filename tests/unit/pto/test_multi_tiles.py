"""Multi-tiles: rings of tiles that loops take in turn, wherever they lie."""

from __future__ import annotations

from typing import Any, cast

import numpy
import pytest

from tilewright import ir
from tilewright.errors import KernelError
from tilewright.pto.lower import lower
from tilewright.pto.text.parser import parse
from tilewright.pto.verify import verify

np = cast("Any", numpy)
TILE, RING = "!pto.tile_buf<vec, 8x64xf32>", "!pto.multi_tile_buf<{}, count=3>"
SPELLED = RING.format("vec, 8x64xf32"), RING.format(TILE)


def rotated(place: str = "", ring: str = SPELLED[0], after: str = "", steps: int = 7) -> str:
    """Return a kernel that loads each block of rows into the next tile of a ring, and stores those of two turns ago."""
    return f"""
module {{
  func.func @k(%x: !pto.ptr<f32>, %out: !pto.ptr<f32>) {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %c8 = arith.constant 8 : index
    %c64 = arith.constant 64 : index
    %steps = arith.constant {steps} : index
    %all = arith.constant {8 * steps} : index
    %at = arith.constant 2048 : i64
    %vx = pto.make_tensor_view %x, shape = [%all, %c64], strides = [%c64, %c1] : !pto.tensor_view<?x?xf32>
    %vo = pto.make_tensor_view %out, shape = [%all, %c64], strides = [%c64, %c1] : !pto.tensor_view<?x?xf32>
    %ring = pto.alloc_multi_tile {place} : {ring}
    {after}
    scf.for %i = %c0 to %steps step %c1 {{
      %row = arith.muli %i, %c8 : index
      %px = pto.partition_view %vx, offsets = [%row, %c0], sizes = [%c8, %c64]
        : !pto.tensor_view<?x?xf32> -> !pto.partition_tensor_view<8x64xf32>
      %slot = arith.remui %i, %c3 : index
      %t = pto.multi_tile_get %ring[%slot] : {ring} -> {TILE}
      pto.tload ins(%px : !pto.partition_tensor_view<8x64xf32>) outs(%t : {TILE})
      %late = arith.cmpi sge, %i, %c2 : index
      scf.if %late {{
        %before = arith.subi %i, %c2 : index
        %old = arith.remui %before, %c3 : index
        %u = pto.multi_tile_get %ring[%old] : {ring} -> {TILE}
        %there = arith.muli %before, %c8 : index
        %po = pto.partition_view %vo, offsets = [%there, %c0], sizes = [%c8, %c64]
          : !pto.tensor_view<?x?xf32> -> !pto.partition_tensor_view<8x64xf32>
        pto.tstore ins(%u : {TILE}) outs(%po : !pto.partition_tensor_view<8x64xf32>)
      }}
    }}
    return
  }}
}}
"""


def launched(text: str, target: str) -> tuple[Any, Any]:
    module = parse(text, "ring.pto")
    verify(module)
    x = np.random.default_rng(0).normal(size=(56, 64)).astype(np.float32)
    out = np.zeros_like(x)
    ir.compile(lower(module, next(module.funcs()), target="a5"), platform=target)(1, x.reshape(-1), out.reshape(-1))
    return x, out


@pytest.mark.parametrize("ring", SPELLED)
@pytest.mark.parametrize("place", ["", "addr = %at"])
def test_a_ring_keeps_what_its_last_turns_loaded(ring: str, place: str, target: str) -> None:
    x, out = launched(rotated(place, ring), target)
    np.testing.assert_array_equal(out[:40], x[:40])
    assert not out[40:].any()


def test_a_tile_at_the_address_of_a_slot_sees_its_bytes(target: str) -> None:
    after = f"%second = arith.constant 4096 : i64\n    %fixed = pto.alloc_tile addr = %second : {TILE}"
    text = rotated("addr = %at", after=after).replace("pto.tstore ins(%u", "pto.tstore ins(%fixed")
    x, out = launched(text, target)
    np.testing.assert_array_equal(out.reshape(7, 8, 64)[:5], x.reshape(7, 8, 64)[[1, 1, 4, 4, 4]])


def test_numbers_of_other_types_may_stand_once_behind_the_tile() -> None:
    tile = "!pto.tile_buf<vec, 8x64xf32, valid=?x?>"
    text = f"""module {{
  func.func @k(%n: i32) {{
    %t = pto.alloc_tile valid_row = %n valid_col = %n : {tile}, i32
    pto.set_validshape %t, %n, %n : {tile}, i32
    return
  }}
}}
"""
    module = parse(text, "k.pto")
    verify(module)
    assert str(module) == text


def test_the_number_behind_a_tile_has_the_type_that_stands_there() -> None:
    tile = "!pto.tile_buf<vec, 8x64xf32, valid=?x?>"
    text = (
        f"module {{\n  func.func @k(%n: i32) {{\n    %t = pto.alloc_tile valid_row = %n valid_col = %n : {tile}, i64\n"
    )
    with pytest.raises(KernelError, match="has 2 results"):
        parse(f"{text}    return\n  }}\n}}\n", "k.pto")
