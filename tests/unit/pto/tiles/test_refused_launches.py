"""Refused launches: numbers that would take a kernel out of its tiles or buffers stop it, with the op named."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from unit.pto.tiles.running import KERNELS, np, read, run
from unit.pto.tiles.test_kernels import CASES

from tilewright.errors import ExecutionError

BEYOND: list[tuple[str, dict[str, Any]]] = [
    ("runtime_valid", {"r": 17}),
    ("runtime_valid", {"c": 33}),
    ("runtime_valid", {"r": -1}),
    ("padding_in_place", {"c": 33}),
    ("resized", {"r": 17}),
    ("extracting", {"i": 30}),
    ("extracting", {"i": -1}),
    ("inserting", {"i": 30}),
    ("windows", {"i": 15}),
    ("elements", {"i": 128}),
    ("elements", {"i": -1}),
    ("carried_numbers", {"n": 17}),
    ("blocks", {"n": 65}),
    ("ping_pong", {"n": 9}),
    ("product_ragged", {"m": 17}),
    ("product_ragged", {"d": 33}),
    ("shared_indices", {"n": 3}),
]


@pytest.mark.parametrize(("kernel", "numbers"), BEYOND, ids=lambda value: str(value))
def test_a_number_too_large_or_small_names_the_op(kernel: str, numbers: dict[str, Any], target: str) -> None:
    case = next(c for c in CASES if c.kernel == kernel)
    case = replace(case, arguments={**case.arguments, **numbers})
    path = KERNELS / f"{kernel}.pto"
    module = read(case.text(path.read_text()), path.name)
    with pytest.raises(ExecutionError, match=rf"{kernel}\.pto:\d+"):
        run(module, kernel, target, case.grid, list(case.given().values()))


OPEN, SMALL = "!pto.tile_buf<vec, 16x32xf32, valid=?x32>", "!pto.tile_buf<vec, 8x32xf32>"
PLACES, BLOCKS = "!pto.tile_buf<vec, 8x32xi32>", "!pto.tile_buf<vec, 1x8xi32>"
BITS, HALVES, PAIRS = (
    "!pto.tile_buf<vec, 8x32xui8>", "!pto.tile_buf<vec, 8x32xf16>", "!pto.tile_buf<vec, 16x64xf32>",
)  # fmt: skip
HEAD = f"""module {{
  func.func @kernel(%n: index, %i: i32) {{
    %open = pto.alloc_tile valid_row = %n : {OPEN}
    %small = pto.alloc_tile : {SMALL}
    %places = pto.alloc_tile : {PLACES}
    %blocks = pto.alloc_tile : {BLOCKS}
    %bits = pto.alloc_tile : {BITS}
    %halves = pto.alloc_tile : {HALVES}
    %pairs = pto.alloc_tile : {PAIRS}
    pto.texpands ins(%i : i32) outs(%places : {PLACES})
    pto.texpands ins(%i : i32) outs(%blocks : {BLOCKS})
"""
SMALLER = {
    "add": f"pto.tadd ins(%open, %small : {OPEN}, {SMALL}) outs(%open : {OPEN})",
    "negate": f"pto.tneg ins(%small : {SMALL}) outs(%open : {OPEN})",
    "convert": f"pto.tcvt ins(%halves : {HALVES}) outs(%open : {OPEN})",
    "compare": f"pto.tcmp ins(%open, %open {{cmpMode = #pto<cmp lt>}} : {OPEN}, {OPEN}) outs(%bits : {BITS})",
    "select": f"pto.tsel ins(%bits, %open, %open : {BITS}, {OPEN}, {OPEN}) outs(%open : {OPEN})",
    "expand": f"pto.trowexpand ins(%small : {SMALL}) outs(%open : {OPEN})",
    "meet": f"pto.trowexpandadd ins(%open, %small : {OPEN}, {SMALL}) outs(%open : {OPEN})",
    "gather": f"pto.tgather ins(%open, %places : {OPEN}, {PLACES}) outs(%open : {OPEN})",
    "scatter": f"pto.tscatter ins(%open, %places : {OPEN}, {PLACES}) outs(%open : {OPEN})",
}


def _launch(op: str, target: str, n: int, i: int = 0) -> None:
    module = read(HEAD + f"    {op}\n    return\n  }}\n}}\n")
    run(module, "kernel", target, 1, [n, np.int32(i)])


@pytest.mark.parametrize("op", SMALLER.values(), ids=SMALLER)
def test_an_op_stops_where_a_smaller_tile_has_no_more_rows(op: str, target: str) -> None:
    _launch(op, target, 8)
    with pytest.raises(ExecutionError, match=rf"kernel\.pto:{HEAD.count(chr(10)) + 1}"):
        _launch(op, target, 9)


def test_a_gathered_block_lies_inside_its_source(target: str) -> None:
    op = f"pto.tgatherb ins(%small, %blocks : {SMALL}, {BLOCKS}) outs(%small : {SMALL})"
    _launch(op, target, 8, 8 * 32 * 4 - 32)
    with pytest.raises(ExecutionError, match=rf"kernel\.pto:{HEAD.count(chr(10)) + 1}"):
        _launch(op, target, 8, 8 * 32 * 4 - 31)
