"""What sub-kernels may hold: none holds another, and a tile op no more than what computes on one core."""
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnusedExpression=false
# pyright: reportUnknownParameterType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any

import pytest

from tilewright import pto
from tilewright.errors import OperandError, UnsupportedFeatureError

Gm = pto.ptr(pto.f32, "gm")


@pto.simd
def doubled(tile: pto.Tile):
    on = pto.make_mask(pto.f32, pto.MaskPattern.ALL)
    vector = pto.vlds(tile[0, 0:])
    pto.vsts(pto.vadd(vector, vector, on), tile[0, 0:], on)


@pto.simd
def twice(tile: pto.Tile):
    doubled(tile)


@pto.cube
def on_the_cube(tile: pto.Tile):
    doubled(tile)


@pto.tileop
def inner(tile: pto.Tile):
    on = pto.make_mask(pto.f32, pto.MaskPattern.ALL)
    pto.vsts(pto.vlds(tile[0, 0:]), tile[0, 0:], on)


@pto.tileop
def outer(tile: pto.Tile):
    inner(tile)


@pto.tileop
def opened(tile: pto.Tile):
    with pto.simd():
        pass


@pto.tileop
def allocated(tile: pto.Tile):
    pto.alloc_tile(shape=[8, 64], dtype=pto.f32)


@pto.tileop
def added(tile: pto.Tile):
    pto.tile.add(tile, tile, tile)


@pto.tileop
def flagged(tile: pto.Tile):
    pto.set_flag("MTE2", "V", event_id=0)


@pto.tileop
def by_item(tile: pto.Tile):
    pto.get_tid_x()


@pto.tileop
def on_both(tile: pto.Tile):
    on = pto.make_mask(pto.f32, pto.MaskPattern.ALL)
    pto.vsts(pto.vlds(tile[0, 0:]), tile[0, 0:], on)
    left, right = pto.castptr(0, pto.ptr(pto.f16, "l0a")), pto.castptr(0, pto.ptr(pto.f16, "l0b"))
    pto.mad(left, right, pto.castptr(0, pto.ptr(pto.f32, "l0c")), 16, 16, 16)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (twice, "a pto.simd stands inside of a pto.simd"),
        (on_the_cube, "a pto.simd stands inside of a pto.cube"),
        (outer, "a pto.tileop stands inside of a pto.tileop"),
        (opened, "a pto.simd stands inside of a pto.tileop"),
        (allocated, "a pto.tileop has no `pto.alloc_tile`"),
        (added, "a pto.tileop holds no other one, such as `pto.tadd`"),
        (flagged, "a pto.tileop has no `pto.set_flag`"),
        (by_item, "a pto.tileop has no `pto.get_tid_x`"),
        (on_both, "runs on one core: `pto.mad` is the cube's, `pto.pset_b32` the vector core's"),
    ],
)
def test_what_a_sub_kernel_does_not_hold_is_refused_where_it_stands(body: Any, why: str) -> None:
    @pto.jit()
    def kernel(x: Gm):
        tile = pto.alloc_tile(shape=[8, 64], dtype=pto.f32)
        body(tile)

    with pytest.raises(UnsupportedFeatureError, match=why) as caught:
        kernel.compile()
    assert "help: " in str(caught.value)


def test_sub_kernels_stand_side_by_side() -> None:
    @pto.jit()
    def kernel(x: Gm):
        tile = pto.alloc_tile(shape=[8, 64], dtype=pto.f32)
        doubled(tile)
        inner(tile)
        with pto.simd():
            on = pto.make_mask(pto.f32, pto.MaskPattern.ALL)
            pto.vsts(pto.vlds(tile[0, 0:]), tile[0, 0:], on)

    assert kernel.compile().mlir_text().count("pto.vecscope {") == 3


def test_a_condition_is_no_number() -> None:
    @pto.jit()
    def kernel(x: Gm, n: pto.i32):
        n + True

    with pytest.raises(OperandError, match="i32 meets True, which is no number"):
        kernel.compile()
