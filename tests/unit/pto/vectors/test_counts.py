"""Counts that no memory has room for: refused where they are constants, an error at once where a launch gives them."""

from __future__ import annotations

import pytest
from unit.pto.vectors.running import built, np

from tilewright.errors import ExecutionError, OutOfBoundsError

FAR = (2**31, 2**63 - 1)
TEXT = """module {{
  func.func @k(%given: i64, %gm: !pto.ptr<f32, gm>) {{
    %c0 = arith.constant 0 : i64
    %c1 = arith.constant 1 : i64
    %c4 = arith.constant 4 : i64
    %c128 = arith.constant 128 : i64
    %c4096 = arith.constant 4096 : i64
    %all = arith.constant 3841 : i64
    {1}
    %n = arith.index_cast %count : i64 to index
    %u = pto.castptr %c0 : i64 -> !pto.ptr<f32, ub>
    %i = pto.castptr %c4096 : i64 -> !pto.ptr<ui32, ub>
    %t = pto.alloc_tile : !pto.tile_buf<vec, 1x256xf32>
    {0}
    return
  }}
}}"""
COPY = "pto.mte_gm_ub %gm, %u, %c0, {0} nburst({1}, {2}, {3}) : !pto.ptr<f32, gm>, !pto.ptr<f32, ub>, i64, i64, {4}"
TOO_MANY = {
    "sorted": (
        "pto.vbitsort %u, %u, %i, %n : !pto.ptr<f32, ub>, !pto.ptr<f32, ub>, !pto.ptr<ui32, ub>, index",
        "room for 0 to 992 sorted runs",
    ),
    "merged": (
        "pto.vmrgsort4 %u, %u, %u, %u, %u, %count, %all : " + "!pto.ptr<f32, ub>, " * 5 + "i64, i64",
        "room for 0 to 31744 records",
    ),
    "copied": (
        COPY.format("%c128", "%count", "%c0", "%c128", "i64, i64, i64"),
        "no room for more than 1985 bursts|do not lie inside",
    ),
}


@pytest.mark.parametrize("op", TOO_MANY)
@pytest.mark.parametrize("count", FAR)
def test_a_constant_that_no_memory_has_room_for_is_refused(target: str, op: str, count: int) -> None:
    text, message = TOO_MANY[op]
    with pytest.raises(OutOfBoundsError, match=message):
        built(TEXT.format(text, f"%count = arith.constant {count | 0xFFFF} : i64"), target)


@pytest.mark.parametrize("op", TOO_MANY)
@pytest.mark.parametrize("count", FAR)
def test_a_number_that_no_memory_has_room_for_is_an_error_at_once(target: str, op: str, count: int) -> None:
    text, message = TOO_MANY[op]
    kernel = built(TEXT.format(text, "%count = arith.addi %given, %c0 : i64"), target)
    with pytest.raises(ExecutionError, match=message):
        kernel(1, count | 0xFFFF, np.zeros(64, np.float32))


NOTHING_NEW = {
    "the same": COPY.format("%c4", "%count", "%c0", "%c0", "i64, i64, i64"),
    "nothing": COPY.format("%none", "%count", "%c0", "%c4", "i64, i64, i64"),
}


@pytest.mark.parametrize("op", NOTHING_NEW.values(), ids=NOTHING_NEW)
def test_a_copy_that_does_nothing_new_is_done_at_once(target: str, op: str) -> None:
    given = "%count = arith.addi %given, %c0 : i64\n    %none = arith.subi %given, %given : i64"
    built(TEXT.format(op, given), target)(1, 900, np.zeros(64, np.float32))
    if op == NOTHING_NEW["the same"]:
        built(TEXT.format(op, given), target)(1, 2**62, np.zeros(64, np.float32))


def test_a_merge_of_empty_blocks_is_an_error(target: str) -> None:
    tile = "!pto.tile_buf<vec, 1x256xf32>"
    merge = f"pto.tmrgsort ins(%t, %count : {tile}, i64) outs(%t : {tile})"
    kernel = built(TEXT.format(merge, "%count = arith.addi %given, %c0 : i64"), target)
    kernel(1, 64, np.zeros(64, np.float32))
    for count in (0, -64, 1 << 40):
        with pytest.raises(ExecutionError, match="a block has 1 to 128 records"):
            kernel(1, count, np.zeros(64, np.float32))


@pytest.mark.parametrize("text", ["%b = pto.alloc_tile : !pto.tile_buf<vec, 65536x65536xf32>"])
def test_a_tile_larger_than_its_memory_is_refused(target: str, text: str) -> None:
    with pytest.raises(OutOfBoundsError, match=r"17179869184 bytes is more than the 253952 of `vec`"):
        built(TEXT.format(text, "%count = arith.addi %given, %c0 : i64"), target)
