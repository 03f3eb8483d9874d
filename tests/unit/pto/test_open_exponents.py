"""Exponents of open extents: conversions from and to them, as far as the run says."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tilewright import ir, pto
from tilewright.pto.lower import lower
from tilewright.pto.verify import verify

TEXT = """
module attributes {pto.target_arch = "a5"} {
  func.func @main(%x: !pto.ptr<f8E8M0FNU, gm>, %out: !pto.ptr<f32, gm>, %n: index) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    %xs = pto.make_tensor_view %x, shape = [%c32, %c32], strides = [%c32, %c1] : !pto.tensor_view<?x?xf8E8M0FNU>
    %outs = pto.make_tensor_view %out, shape = [%c32, %c32], strides = [%c32, %c1] : !pto.tensor_view<?x?xf32>
    %come = pto.partition_view %xs, offsets = [%c0, %c0], sizes = [%n, %c32] : !pto.tensor_view<?x?xf8E8M0FNU> -> !pto.partition_tensor_view<?x32xf8E8M0FNU>
    %go = pto.partition_view %outs, offsets = [%c0, %c0], sizes = [%n, %c32] : !pto.tensor_view<?x?xf32> -> !pto.partition_tensor_view<?x32xf32>
    %a = pto.alloc_tile valid_row = %n : !pto.tile_buf<vec, 32x32xf8E8M0FNU, valid=?x32>
    %b = pto.alloc_tile valid_row = %n : !pto.tile_buf<vec, 32x32xf32, valid=?x32>
    pto.tload ins(%come : !pto.partition_tensor_view<?x32xf8E8M0FNU>) outs(%a : !pto.tile_buf<vec, 32x32xf8E8M0FNU, valid=?x32>)
    pto.tcvt ins(%a : !pto.tile_buf<vec, 32x32xf8E8M0FNU, valid=?x32>) outs(%b : !pto.tile_buf<vec, 32x32xf32, valid=?x32>)
    pto.tstore ins(%b : !pto.tile_buf<vec, 32x32xf32, valid=?x32>) outs(%go : !pto.partition_tensor_view<?x32xf32>)
    return
  }
}
"""  # noqa: E501


@pytest.mark.parametrize("platform", ["interpret", "cpu"])
def test_exponents_become_floats_as_far_as_the_run_says(platform: str) -> None:
    module = pto.parse(TEXT)
    verify(module)
    func = next(iter(module.funcs()))
    x = np.exp2(np.random.default_rng(0).integers(-9, 9, 1024)).astype(ml_dtypes.float8_e8m0fnu)
    for rows in (0, 5, 32):
        out = np.full(1024, -1, np.float32)
        ir.compile(lower(module, func, target="a5"), platform=platform)(1, x, out, rows)
        wanted = np.where(np.arange(1024) < rows * 32, x.astype(np.float32), -1)
        np.testing.assert_array_equal(out, wanted)


def test_exponents_that_nothing_wrote_have_a_text_that_lowers() -> None:
    loads = [line for line in TEXT.splitlines() if "pto.tload" in line]
    module = pto.parse(TEXT.replace(loads[0], ""))
    verify(module)
    assert lower(module, next(iter(module.funcs())), target="a5")
