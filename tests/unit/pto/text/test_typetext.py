"""Spelled types: what each spelling is, and that the canonical one is read back."""

from __future__ import annotations

import pytest

from tilewright.pto.text.typetext import brief_text, read_elided, read_type
from tilewright.pto.types import F32, SCALARS, Mask, Ptr, Space, TensorView, TileBuf, Type, VReg

SPELLINGS: dict[str, Type] = {
    "f32": F32,
    "!pto.hif8": SCALARS["hif8"],
    "!pto.ptr<f32>": Ptr(F32, Space.GM),
    "!pto.ptr<f32, vec>": Ptr(F32, Space.VEC),
    "!pto.ptr<f32,ub>": Ptr(F32, Space.VEC),
    "!pto.tensor_view<16x?xf32>": TensorView((16, None), F32),
    "!pto.partition_tensor_view<4xf32>": TensorView((4,), F32, partition=True),
    "!pto.vreg<64xf32>": VReg(64, F32),
    "!pto.mask<b16>": Mask(16),
    "!pto.tile_buf<vec, 16x64xf32>": TileBuf(Space.VEC, F32, 16, 64, 16, 64),
    "!pto.tile_buf<vec, 16x64xf32, valid=?x8, pad=2>": TileBuf(Space.VEC, F32, 16, 64, None, 8, pad=2),
    "!pto.tile_buf<cols=64, rows=16, dtype=f32, loc=ub>": TileBuf(Space.VEC, F32, 16, 64, 16, 64),
    "!pto.tile_buf<acc, 16x16xf32, blayout=col_major, slayout=row_major, fractal=1024, compact=1>": TileBuf(
        Space.ACC, F32, 16, 16, 16, 16, "col_major", "row_major", 1024, 0, 1
    ),
}


@pytest.mark.parametrize("text", SPELLINGS)
def test_a_spelling_is_its_type(text: str) -> None:
    assert read_type(text) == SPELLINGS[text]


@pytest.mark.parametrize("text", SPELLINGS)
def test_the_canonical_and_the_brief_text_are_read_back(text: str) -> None:
    assert read_type(str(read_type(text))) == read_type(text)
    assert read_type(brief_text(read_type(text))) == read_type(text)


def test_a_family_may_go_without_saying() -> None:
    assert read_elided("<f32, ub>", "ptr") == Ptr(F32, Space.VEC)
