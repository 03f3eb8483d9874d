"""Tiles that leave an accumulator: plain, scaled by one word, or by one for each column, held to NumPy."""

from __future__ import annotations

from typing import Any, cast

import numpy
from unit.pto.cube.test_leaving import M, N, data, whole, words
from unit.pto.cube.writing import run

np = cast("Any", numpy)
ACC = "!pto.tile_buf<acc, 16x32xf32, blayout=col_major, slayout=row_major, fractal=1024>"
FP = "!pto.tile_buf<scaling, 1x32xui64>"
MAT = "!pto.tile_buf<mat, 16x32xi8, blayout=col_major, slayout=row_major>"
HALF = "!pto.tile_buf<mat, 16x16xf16, blayout=col_major, slayout=row_major>"
SMALL = "!pto.tile_buf<acc, 16x16xf32, blayout=col_major, slayout=row_major, fractal=1024>"
TEXT = f"""
module attributes {{pto.target_arch = "a5"}} {{
  func.func @scaled(%x: !pto.ptr<f32>, %w: !pto.ptr<ui64>, %o: !pto.ptr<i8>, %p: !pto.ptr<i8>, %q: !pto.ptr<f16>,
      %r: !pto.ptr<f16>, %s: !pto.ptr<f16>, %plain: !pto.ptr<f16>, %word: i64, %rows: index) {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %c32 = arith.constant 32 : index
    %vx = pto.make_tensor_view %x, shape = [%c16, %c32], strides = [%c32, %c1] : !pto.tensor_view<16x32xf32>
    %vw = pto.make_tensor_view %w, shape = [%c1, %c32], strides = [%c32, %c1] : !pto.tensor_view<1x32xui64>
    %vo = pto.make_tensor_view %o, shape = [%c16, %c32], strides = [%c32, %c1] : !pto.tensor_view<16x32xi8>
    %vp = pto.make_tensor_view %p, shape = [%c16, %c32], strides = [%c32, %c1] : !pto.tensor_view<16x32xi8>
    %vq = pto.make_tensor_view %q, shape = [%rows, %c32], strides = [%c32, %c1] : !pto.tensor_view<?x32xf16>
    %vr = pto.make_tensor_view %r, shape = [%c16, %c16], strides = [%c16, %c1] : !pto.tensor_view<16x16xf16>
    %vs = pto.make_tensor_view %s, shape = [%c16, %c16], strides = [%c16, %c1] : !pto.tensor_view<16x16xf16>
    %vplain = pto.make_tensor_view %plain, shape = [%c16, %c32], strides = [%c32, %c1] : !pto.tensor_view<16x32xf16>
    %acc = pto.alloc_tile : {ACC}
    %fp = pto.alloc_tile : {FP}
    %mat = pto.alloc_tile : {MAT}
    %half = pto.alloc_tile : {HALF}
    %other = pto.alloc_tile : {HALF}
    %small = pto.alloc_tile : {SMALL}
    pto.tload ins(%vx : !pto.tensor_view<16x32xf32>) outs(%acc : {ACC})
    pto.tload ins(%vw : !pto.tensor_view<1x32xui64>) outs(%fp : {FP})
    pto.tstore_fp ins(%acc, %fp : {ACC}, {FP}) outs(%vo : !pto.tensor_view<16x32xi8>)
      {{reluPreMode = #pto<relu_pre_mode normal_relu>}}
    pto.tmov.fp ins(%acc, %fp : {ACC}, {FP}) outs(%mat : {MAT})
    pto.tstore ins(%mat : {MAT}) outs(%vp : !pto.tensor_view<16x32xi8>)
    pto.tstore ins(%acc : {ACC}, %word : i64) outs(%vq : !pto.tensor_view<?x32xf16>)
    pto.tstore ins(%acc : {ACC}) outs(%vplain : !pto.tensor_view<16x32xf16>)
    pto.textract_fp ins(%acc, %fp, %c0, %c16 : {ACC}, {FP}, index, index) outs(%half : {HALF})
    pto.tstore ins(%half : {HALF}) outs(%vr : !pto.tensor_view<16x16xf16>)
    pto.textract ins(%acc, %c0, %c16 : {ACC}, index, index) outs(%small : {SMALL})
    pto.tinsert_fp ins(%small, %fp, %c0, %c0 : {SMALL}, {FP}, index, index) outs(%other : {HALF})
    pto.tstore ins(%other : {HALF}) outs(%vs : !pto.tensor_view<16x16xf16>)
    return
  }}
}}
"""


def half(x: Any) -> Any:
    return np.where(np.isnan(x), 0, np.clip(x, -65504, 65504)).astype(np.float16)


def test_by_a_word_and_by_words(target: str) -> None:
    x, w = data(), words()
    o, p = np.zeros((2, M, N), np.int8)
    q, (r, s) = np.full((M, N), 7, np.float16), np.zeros((2, M, M), np.float16)
    plain = np.zeros((M, N), np.float16)
    run(TEXT, target, x, w, o, p, q, r, s, plain, int(w[2]), 9)
    scales = (w.astype(np.uint32) & 0xFFFFE000).view(np.float32)
    offsets = np.arange(N) - 16
    with np.errstate(all="ignore"):
        scaled = x * scales
        np.testing.assert_array_equal(o, whole(np.maximum(scaled, 0), -128, 127, offsets))
        np.testing.assert_array_equal(p, whole(scaled, -128, 127, offsets))
        np.testing.assert_array_equal(q[:9], half(x * 0.5)[:9])
        assert (q[9:] == 7).all()
        np.testing.assert_array_equal(plain, half(x))
        np.testing.assert_array_equal(r, half(scaled)[:, 16:])
        np.testing.assert_array_equal(s, half(x[:, 16:] * scales[:16]))
