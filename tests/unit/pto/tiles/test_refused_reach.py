"""Refused reach: ops whose text already says that they leave a tile are refused where they stand."""

from __future__ import annotations

import pytest
from unit.pto.tiles.running import read

from tilewright.errors import AttributeValueError, OutOfBoundsError, UnsupportedFeatureError
from tilewright.pto.lower import lower

WHOLE, PART = "!pto.tile_buf<vec, 16x32xf32>", "!pto.tile_buf<vec, 8x16xf32>"
HALVES, MASK = "!pto.tile_buf<vec, 16x32xf16>", "!pto.tile_buf<vec, 16x2xui8>"
PADDED = "!pto.tile_buf<vec, 8x16xf32, pad=1>"

PLACES, PAIRS = "!pto.tile_buf<vec, 8x32xi32>", "!pto.tile_buf<vec, 16x64xf32>"

HEAD = f"""module {{
  func.func @kernel() {{
    %c0 = arith.constant 0 : index
    %c10 = arith.constant 10 : index
    %c20 = arith.constant 20 : index
    %c999 = arith.constant 999 : index
    %far = arith.constant 253000 : i64
    %before = arith.constant -32 : i64
    %whole = pto.alloc_tile : {WHOLE}
    %part = pto.alloc_tile : {PART}
    %halves = pto.alloc_tile : {HALVES}
    %mask = pto.alloc_tile : {MASK}
    %padded = pto.alloc_tile : {PADDED}
    %places = pto.alloc_tile : {PLACES}
    %pairs = pto.alloc_tile : {PAIRS}
"""
LEAVING = {
    "extract_across": f"pto.textract ins(%whole, %c0, %c20 : {WHOLE}, index, index) outs(%part : {PART})",
    "extract_down": f"pto.textract ins(%whole, %c10, %c0 : {WHOLE}, index, index) outs(%part : {PART})",
    "insert_across": f"pto.tinsert ins(%part, %c0, %c20 : {PART}, index, index) outs(%whole : {WHOLE})",
    "insert_down": f"pto.tinsert ins(%part, %c10, %c0 : {PART}, index, index) outs(%whole : {WHOLE})",
    "window": f"%w = pto.subview %whole[%c0, %c20] sizes [8, 16] : {WHOLE} -> {PART}",
    "element": f"%e = pto.tgetval ins(%whole, %c999 : {WHOLE}, index) outs : f32",
    "address": f"%t = pto.alloc_tile addr = %far : {WHOLE}",
    "negative_address": f"%t = pto.alloc_tile addr = %before : {WHOLE}",
    "join": f"pto.tconcat ins(%whole, %whole : {WHOLE}, {WHOLE}) outs(%whole : {WHOLE})",
    "turn": f"pto.ttrans ins(%whole : {WHOLE}) outs(%whole : {WHOLE})",
    "fold": f"pto.trowsum ins(%whole : {WHOLE}) outs(%part : {PART})",
    "expand_rows": f"pto.tcolexpand ins(%part : {PART}) outs(%whole : {WHOLE})",
    "meet_column": f"pto.trowexpandadd ins(%whole, %part : {WHOLE}, {PART}) outs(%whole : {WHOLE})",
    "cast": f"pto.tcvt ins(%part : {PART}) outs(%halves : {HALVES})",
    "compare": f"pto.tcmp ins(%whole, %whole {{cmpMode = #pto<cmp lt>}} : {WHOLE}, {WHOLE}) outs(%mask : {MASK})",
    "select": f"pto.tsel ins(%mask, %whole, %whole : {MASK}, {WHOLE}, {WHOLE}) outs(%whole : {WHOLE})",
    "gather": f"pto.tgather ins(%whole, %places : {WHOLE}, {PLACES}) outs(%whole : {WHOLE})",
    "scatter": f"pto.tscatter ins(%whole, %places : {WHOLE}, {PLACES}) outs(%whole : {WHOLE})",
    "pattern": f"pto.tgather ins(%whole, {{maskPattern = #pto.mask_pattern<P0001>}} : {WHOLE}) outs(%part : {PART})",
    "indices": f"pto.tsort32 ins(%whole, %places : {WHOLE}, {PLACES}) outs(%pairs : {PAIRS})",
    "pad": f"pto.tfillpad ins(%whole : {WHOLE}) outs(%padded : {PADDED})",
}


@pytest.mark.parametrize("name", LEAVING)
def test_an_op_that_certainly_leaves_its_tile_is_refused_where_it_stands(name: str) -> None:
    module = read(HEAD + f"    {LEAVING[name]}\n    return\n  }}\n}}\n")
    line = HEAD.count("\n") + 1 + LEAVING[name].count("\n")
    with pytest.raises(OutOfBoundsError, match=rf"kernel\.pto:{line}:"):
        lower(module, next(module.funcs()), target="a5")


@pytest.mark.parametrize(("target", "element"), [("a3", "i32"), ("a3", "ui8"), ("a5", "i64")])
@pytest.mark.parametrize("axis", ["row", "col"])
def test_integers_that_a_target_does_not_divide_are_refused_where_they_stand(
    target: str, element: str, axis: str
) -> None:
    tile = f"!pto.tile_buf<vec, 8x32x{element}>"
    op = f"pto.t{axis}expanddiv ins(%t, %t : {tile}, {tile}) outs(%t : {tile})"
    module = read(f"module {{\n func.func @k() {{\n %t = pto.alloc_tile : {tile}\n {op}\n return\n }}\n}}")
    with pytest.raises(UnsupportedFeatureError, match=rf"kernel\.pto:4:.* on {target.upper()}"):
        lower(module, next(module.funcs()), target=target)


def test_groups_that_do_not_divide_the_columns_are_refused_where_they_stand() -> None:
    op = f"pto.trowexpandadd ins(%whole, %whole {{src1Col = 3 : i32}} : {WHOLE}, {WHOLE}) outs(%whole : {WHOLE})"
    module = read(HEAD + f"    {op}\n    return\n  }}\n}}\n")
    with pytest.raises(AttributeValueError, match=r"`src1Col` is 3, which does not divide 32 columns"):
        lower(module, next(module.funcs()), target="a5")


@pytest.mark.parametrize(("strides", "meets"), [((32, 1), False), ((2, 3), True), ((0, 1), True), ((1, 16), False)])
def test_a_store_whose_elements_lie_on_each_other_is_refused_where_it_stands(
    strides: tuple[int, int], meets: bool
) -> None:
    tile, view = "!pto.tile_buf<vec, 16x8xf32>", "!pto.partition_tensor_view<16x8xf32>"
    text = f"""module {{
      func.func @k(%p: !pto.ptr<f32>) {{
        %c0 = arith.constant 0 : index
        %c16 = arith.constant 16 : index
        %c8 = arith.constant 8 : index
        %down = arith.constant {strides[0]} : index
        %across = arith.constant {strides[1]} : index
        %t = pto.alloc_tile : {tile}
        %v = pto.make_tensor_view %p, shape = [%c16, %c8], strides = [%down, %across] : !pto.tensor_view<16x8xf32>
        %w = pto.partition_view %v, offsets = [%c0, %c0], sizes = [%c16, %c8] : !pto.tensor_view<16x8xf32> -> {view}
        pto.tstore ins(%t : {tile}) outs(%w : {view})
        return
      }}
    }}"""
    module = read(text)
    if not meets:
        lower(module, next(module.funcs()), target="a5")
        return
    with pytest.raises(UnsupportedFeatureError, match=r"kernel\.pto:11:.* lie on each other"):
        lower(module, next(module.funcs()), target="a5")
