"""Windows whose strides only the running program knows: none is written whose elements lie on each other."""

from __future__ import annotations

from typing import Any

import numpy
import pytest
from unit.pto.tiles import running

from tilewright.errors import ExecutionError

np: Any = numpy
VIEW, PART, TILE = "!pto.tensor_view<8x8xf32>", "!pto.partition_tensor_view<8x8xf32>", "!pto.tile_buf<vec, 8x8xf32>"
TEXT = f"""module attributes {{pto.target_arch = "a5"}} {{
  func.func @k(%o: !pto.ptr<f32>, %down: index, %across: index) {{
    %c0 = arith.constant 0 : index
    %c8 = arith.constant 8 : index
    %one = arith.constant 1.0 : f32
    %v = pto.make_tensor_view %o, shape = [%c8, %c8], strides = [%down, %across] : {VIEW}
    %p = pto.partition_view %v, offsets = [%c0, %c0], sizes = [%c8, %c8] : {VIEW} -> {PART}
    %t = pto.alloc_tile : {TILE}
    pto.tload ins(%p : {PART}) outs(%t : {TILE})
    pto.tadds ins(%t, %one : {TILE}, f32) outs(%t : {TILE})
    pto.tstore ins(%t : {TILE}) outs(%p : {PART})
    return
  }}
}}
"""


@pytest.mark.parametrize(("down", "across"), [(8, 1), (1, 8), (20, 2), (2, 20)])
def test_elements_that_lie_apart_are_updated_once(down: int, across: int, target: str) -> None:
    o = np.zeros(200, np.float32)
    (found,) = running.run(running.read(TEXT, "apart.pto"), "k", target, 1, [o, down, across])[:1]
    assert found.max() == 1 and found.sum() == 64


@pytest.mark.parametrize(("down", "across"), [(4, 1), (0, 1), (1, 1), (1, 0), (0, 0), (7, 1)])
def test_elements_that_lie_on_each_other_are_not_written(down: int, across: int, target: str) -> None:
    with pytest.raises(ExecutionError, match="elements of this window lie on each other"):
        running.run(running.read(TEXT, "apart.pto"), "k", target, 1, [np.zeros(200, np.float32), down, across])
