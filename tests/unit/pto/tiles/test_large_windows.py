"""Large windows: a tile takes as much of one as it has rows for, and looks at no more."""

from __future__ import annotations

import pytest
from unit.pto.tiles.running import np, read, run

TILE = "!pto.tile_buf<vec, 8x32xf32, valid=?x32>"
TEXT = f"""module {{
  func.func @kernel(%a: !pto.ptr<f32>, %o: !pto.ptr<f32>, %n: index, %r: index) {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    %av = pto.make_tensor_view %a, shape = [%n, %n, %c2, %c32], strides = [%c64, %c64, %c32, %c1]
      : !pto.tensor_view<?x?x2x32xf32>
    %ov = pto.make_tensor_view %o, shape = [%n, %n, %c2, %c32], strides = [%c64, %c64, %c32, %c1]
      : !pto.tensor_view<?x?x2x32xf32>
    %aw = pto.partition_view %av, offsets = [%c0, %c0, %c0, %c0], sizes = [%n, %n, %c2, %c32]
      : !pto.tensor_view<?x?x2x32xf32> -> !pto.partition_tensor_view<?x?x2x32xf32>
    %ow = pto.partition_view %ov, offsets = [%c0, %c0, %c0, %c0], sizes = [%n, %n, %c2, %c32]
      : !pto.tensor_view<?x?x2x32xf32> -> !pto.partition_tensor_view<?x?x2x32xf32>
    %t = pto.alloc_tile valid_row = %r : {TILE}
    pto.tload ins(%aw : !pto.partition_tensor_view<?x?x2x32xf32>) outs(%t : {TILE})
    pto.tstore ins(%t : {TILE}) outs(%ow : !pto.partition_tensor_view<?x?x2x32xf32>)
    return
  }}
}}"""


@pytest.mark.parametrize("extent", [4, 2**31, 2**62])
def test_a_tile_takes_as_much_of_a_window_as_it_has_rows_for(target: str, extent: int) -> None:
    a, out = np.arange(256, dtype=np.float32), np.zeros(256, np.float32)
    _, made = run(read(TEXT), "kernel", target, 1, [a, out, extent, 7])
    np.testing.assert_array_equal(made, [*a[: 7 * 32], *np.zeros(32)])
