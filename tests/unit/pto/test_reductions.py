"""Reductions: rows and columns that hold what is no number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from unit.pto.tiles.running import read, run

NAN, INF = float("nan"), float("inf")
ROWS: Any = np.array(
    [[1, NAN, 3, NAN], [-INF, -INF, -INF, -INF], [NAN, NAN, NAN, NAN], [5, 5, 1, 1], [0, INF, -INF, INF]], np.float32
)
SOURCE = "!pto.tile_buf<vec, 5x8xf32, valid=5x4>"


@pytest.mark.parametrize(("op", "find"), [("argmax", np.argmax), ("argmin", np.argmin)])
@pytest.mark.parametrize("axis", ["row", "col"])
def test_the_place_of_what_is_no_number_comes_first(axis: str, op: str, find: Any, target: str) -> None:
    rows, cols = (5, 1) if axis == "row" else (1, 4)
    result, part = f"!pto.tile_buf<vec, 5x8xi32, valid={rows}x{cols}>", f"!pto.partition_tensor_view<{rows}x{cols}xi32>"
    module = read(f"""module {{ func.func @k(%x: !pto.ptr<f32>, %y: !pto.ptr<i32>) {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c4 = arith.constant 4 : index
      %c5 = arith.constant 5 : index
      %v = pto.make_tensor_view %x, shape = [%c5, %c4], strides = [%c4, %c1] : !pto.tensor_view<?x?xf32>
      %w = pto.make_tensor_view %y, shape = [%c{rows}, %c{cols}], strides = [%c{cols}, %c1] : !pto.tensor_view<?x?xi32>
      %p = pto.partition_view %v, offsets = [%c0, %c0], sizes = [%c5, %c4]
        : !pto.tensor_view<?x?xf32> -> !pto.partition_tensor_view<5x4xf32>
      %q = pto.partition_view %w, offsets = [%c0, %c0], sizes = [%c{rows}, %c{cols}]
        : !pto.tensor_view<?x?xi32> -> {part}
      %t = pto.alloc_tile : {SOURCE}
      %tmp = pto.alloc_tile : {SOURCE}
      %u = pto.alloc_tile : {result}
      pto.tload ins(%p : !pto.partition_tensor_view<5x4xf32>) outs(%t : {SOURCE})
      pto.t{axis}{op} ins(%t, %tmp : {SOURCE}, {SOURCE}) outs(%u : {result})
      pto.tstore ins(%u : {result}) outs(%q : {part})
      return
    }} }}""")
    found = run(module, "k", target, 1, [ROWS.reshape(-1), np.zeros(rows * cols, np.int32)])[1]
    np.testing.assert_array_equal(found, find(ROWS, 1 if axis == "row" else 0))
