"""Pruning exported text: what is left is read by something else."""

from __future__ import annotations

from tilewright.programs.pto_text.pruning import wanted

TILE = "!pto.tile_buf<vec, 8x8xf32>"


def kept_of(lines: list[str]) -> list[str]:
    return [lines[number] for number in wanted(lines, [*range(len(lines))])[0]]


def test_a_tile_that_only_itself_reads_is_dropped() -> None:
    lines = [
        f"%a = pto.alloc_tile : {TILE}",
        f"pto.tload ins(%w : !pto.partition_tensor_view<8x8xf32>) outs(%a : {TILE})",
        f"%seen = pto.treshape %a : {TILE} -> {TILE}",
        f"pto.texp ins(%seen : {TILE}) outs(%a : {TILE})",
    ]
    assert kept_of(lines) == []


def test_a_tile_that_changes_in_place_before_it_is_stored_stays() -> None:
    lines = [
        f"%a = pto.alloc_tile : {TILE}",
        f"pto.tload ins(%w : !pto.partition_tensor_view<8x8xf32>) outs(%a : {TILE})",
        f"pto.texp ins(%a : {TILE}) outs(%a : {TILE})",
        f"pto.tstore ins(%a : {TILE}) outs(%v : !pto.partition_tensor_view<8x8xf32>)",
    ]
    assert kept_of(lines) == lines
