"""Comparisons with a number: where the bits of partly valid tiles go, natively and on the interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from unit.pto.vectors.running import built

Array = Any
TEXT = """module {
  func.func @k(%x: !pto.ptr<T>, %o: !pto.ptr<ui8>, %r: index, %c: index) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %c64 = arith.constant 64 : index
    %c160 = arith.constant 160 : index
    %two = arith.constant TWO : T
    %vx = pto.make_tensor_view %x, shape = [%c8, %c160], strides = [%c160, %c1] : !pto.tensor_view<?x?xT>
    %px = pto.partition_view %vx, offsets = [%c0, %c0], sizes = [%r, %c] : !pto.tensor_view<?x?xT> -> !pto.partition_tensor_view<?x?xT>
    %vo = pto.make_tensor_view %o, shape = [%c8, %c64], strides = [%c64, %c1] : !pto.tensor_view<?x?xui8>
    %po = pto.partition_view %vo, offsets = [%c0, %c0], sizes = [%c8, %c64] : !pto.tensor_view<?x?xui8> -> !pto.partition_tensor_view<8x64xui8>
    %t = pto.alloc_tile valid_row = %r valid_col = %c : !pto.tile_buf<vec, 8x160xT, valid=?x?>
    %b = pto.alloc_tile : !pto.tile_buf<vec, 8x64xui8>
    pto.tload ins(%px : !pto.partition_tensor_view<?x?xT>) outs(%t : !pto.tile_buf<vec, 8x160xT, valid=?x?>)
    pto.tload ins(%po : !pto.partition_tensor_view<8x64xui8>) outs(%b : !pto.tile_buf<vec, 8x64xui8>)
    pto.tcmps ins(%t, %two : !pto.tile_buf<vec, 8x160xT, valid=?x?>, T) outs(%b : !pto.tile_buf<vec, 8x64xui8>) {cmpMode = #pto<cmp ge>}
    pto.tstore ins(%b : !pto.tile_buf<vec, 8x64xui8>) outs(%po : !pto.partition_tensor_view<8x64xui8>)
    return
  }
}
"""  # noqa: E501
ELEMENTS = {"f32": np.float32, "i16": np.int16, "i8": np.int8}


def expected(flags: Array, nbytes: int) -> Array:
    """Return 512 bytes of ones over which the flags were packed."""
    lanes = 256 if nbytes == 1 else 128
    rows = flags.reshape(1, -1) if nbytes == 4 else flags
    width = -(-rows.shape[1] // lanes) * lanes
    packed = np.packbits(np.pad(rows, ((0, 0), (0, width - rows.shape[1]))), bitorder="little")
    return np.concatenate([packed, np.full(512 - packed.size, 255, np.uint8)])


@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize("platform", ["cpu", "interpret"])
def test_bits_lie_behind_one_another(element: str, platform: str) -> None:
    text = TEXT.replace("TWO", "2.0" if element == "f32" else "2").replace("xT", f"x{element}")
    text = text.replace("<T>", f"<{element}>").replace(": T", f": {element}").replace(", T)", f", {element})")
    kernel = built(text, platform)
    x = np.random.default_rng(3).integers(0, 5, (8, 160)).astype(ELEMENTS[element])
    for rows, cols in ((5, 27), (8, 160), (3, 129), (1, 1)):
        out = np.full(512, 255, np.uint8)
        kernel(1, np.ravel(x), out, rows, cols)
        np.testing.assert_array_equal(out, expected(x[:rows, :cols] >= 2, x.itemsize))
    ragged = text.replace(" valid_row = %r valid_col = %c", "").replace("valid=?x?", "valid=5x27")
    out = np.full(512, 255, np.uint8)
    built(ragged, platform)(1, np.ravel(x), out, 5, 27)
    np.testing.assert_array_equal(out, expected(x[:5, :27] >= 2, x.itemsize))
