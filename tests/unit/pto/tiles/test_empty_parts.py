"""Tiles of which nothing is valid, or a part that only the run knows, beside others that are valid in part."""

from __future__ import annotations

import numpy as np
import pytest
from unit.pto.vectors.running import built

WORDS = "!pto.tile_buf<vec, 8x64xi32>"
NOTHING = "!pto.tile_buf<vec, 8x64xi32, valid=8x0>"
FOUND = f"""module attributes {{pto.target_arch = "a5"}} {{
  func.func @k(%o: !pto.ptr<i32>, %n: i32) {{
    %c0 = arith.constant 0 : index
    %c8 = arith.constant 8 : index
    %x = pto.alloc_tile : {NOTHING}
    %scratch = pto.alloc_tile : {NOTHING}
    %places = pto.alloc_tile : {WORDS}
    %counts = pto.alloc_tile : {WORDS}
    pto.texpands ins(%n : i32) outs(%counts : {WORDS})
    pto.tgather ins(%x, %n, %scratch : {NOTHING}, i32, {NOTHING}) outs(%places, %counts : {WORDS}, {WORDS})
    %e = pto.tgetval ins(%counts, %c0 : {WORDS}, index) outs : i32
    pto.store_scalar %e, %o[%c0] : !pto.ptr<i32>, i32
    return
  }}
}}
"""


@pytest.mark.parametrize("platform", ["cpu", "interpret"])
def test_nothing_compares_so_in_a_tile_without_columns(platform: str) -> None:
    out = np.full(1, 9, np.int32)
    built(FOUND.replace("    %c8 = arith.constant 8 : index\n", ""), platform)(1, out, 7)
    assert out[0] == 0


PART = "!pto.tile_buf<vec, 1x32xi16, valid=1x31>"
OPEN = "!pto.tile_buf<vec, 1x32xi16, valid=1x?>"
ADDED = f"""module attributes {{pto.target_arch = "a5"}} {{
  func.func @k(%o: !pto.ptr<i16>, %n: index) {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c31 = arith.constant 31 : index
    %two = arith.constant 2 : i16
    %v = pto.make_tensor_view %o, shape = [%c1, %c31], strides = [%c31, %c1] : !pto.tensor_view<?x?xi16>
    %p = pto.partition_view %v, offsets = [%c0, %c0], sizes = [%c1, %c31]
      : !pto.tensor_view<?x?xi16> -> !pto.partition_tensor_view<1x31xi16>
    %x = pto.alloc_tile : {PART}
    %y = pto.alloc_tile valid_col = %n : {OPEN}
    %z = pto.alloc_tile : {PART}
    pto.texpands ins(%two : i16) outs(%x : {PART})
    pto.texpands ins(%two : i16) outs(%y : {OPEN})
    pto.tpartadd ins(%x, %y : {PART}, {OPEN}) outs(%z : {PART})
    pto.tstore ins(%z : {PART}) outs(%p : !pto.partition_tensor_view<1x31xi16>)
    return
  }}
}}
"""


@pytest.mark.parametrize("platform", ["cpu", "interpret"])
def test_a_part_that_only_the_run_knows_is_added_to_one_that_is_known(platform: str) -> None:
    kernel = built(ADDED, platform)
    for count in (0, 5, 31):
        out = np.zeros(31, np.int16)
        kernel(1, out, count)
        np.testing.assert_array_equal(out, np.where(np.arange(31) < count, 4, 2))
