"""Views of tiles and memory: each has valid extents of its own, and what has no address has none to take."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from unit.pto.tiles.running import read, run

from tilewright.errors import KernelError, OutOfBoundsError, UnsupportedFeatureError
from tilewright.pto.lower import lower

FULL, OPEN = "!pto.tile_buf<vec, 4x8xf32>", "!pto.tile_buf<vec, 4x8xf32, valid=?x?>"
START = """%c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c4 = arith.constant 4 : index
    %c8 = arith.constant 8 : index
    %one = arith.constant 1.0 : f32
    %two = arith.constant 2.0 : f32
    %v = pto.make_tensor_view %x, shape = [%c4, %c8], strides = [%c8, %c1] : !pto.tensor_view<?x?xf32>
    %w = pto.partition_view %v, offsets = [%c0, %c0], sizes = [%c4, %c8]
      : !pto.tensor_view<?x?xf32> -> !pto.partition_tensor_view<4x8xf32>"""


def text(*body: str, parameters: str = "%x: !pto.ptr<f32>") -> str:
    return f"module {{ func.func @k({parameters}) {{\n    " + "\n    ".join((START, *body, "return")) + "\n} }\n"


def out(tile: str, type_: str = FULL) -> str:
    return f"pto.tstore ins(%{tile} : {type_}) outs(%w : !pto.partition_tensor_view<4x8xf32>)"


def rows_of(array: Any) -> list[float]:
    """Return the first element of each row."""
    return array.reshape(4, 8)[:, 0].tolist()


def test_resizing_a_window_leaves_the_numbers_it_was_made_from(target: str) -> None:
    module = read(
        text(
            f"%t = pto.alloc_tile : {FULL}",
            f"pto.texpands ins(%one : f32) outs(%t : {FULL})",
            f"%s = pto.subview %t[%c0, %c0] sizes [4, 8] valid [%rows, %c8] : {FULL} -> {OPEN}",
            f"pto.set_validshape %s, %c1, %c8 : {OPEN}",
            f"pto.texpands ins(%two : f32) outs(%s : {OPEN})",
            out("t"),
            "%n = arith.index_cast %rows : index to i64",
            "pto.store %n, %y[%c0] : !pto.ptr<i64>, i64",
            parameters="%x: !pto.ptr<f32>, %y: !pto.ptr<i64>, %rows: index",
        )
    )
    x, y = run(module, "k", target, 1, [np.zeros(32, np.float32), np.zeros(1, np.int64), 3])
    assert (rows_of(x), y[0]) == ([2, 1, 1, 1], 3)


def test_a_reshaped_tile_keeps_its_valid_extents_when_the_first_changes(target: str) -> None:
    module = read(
        text(
            f"%t = pto.alloc_tile valid_row = %rows valid_col = %c8 : {OPEN}",
            f"%s = pto.treshape %t : {OPEN} -> {OPEN}",
            f"pto.set_validshape %t, %c1, %c8 : {OPEN}",
            f"pto.texpands ins(%two : f32) outs(%s : {OPEN})",
            f"pto.texpands ins(%one : f32) outs(%t : {OPEN})",
            f"%all = pto.treshape %t : {OPEN} -> {FULL}",
            out("all"),
            parameters="%x: !pto.ptr<f32>, %rows: index",
        )
    )
    assert rows_of(run(module, "k", target, 1, [np.zeros(32, np.float32), 3])[0]) == [1, 2, 2, 0]


def refusal(*body: str) -> KernelError:
    module = read(text(*body))
    with pytest.raises(KernelError) as caught:
        lower(module, next(module.funcs()), target="a5")
    assert caught.value.place.is_known
    return caught.value


def test_a_tile_without_an_address_has_none_to_take() -> None:
    error = refusal(
        f"%t = pto.alloc_tile : {FULL}",
        f"%p = pto.tile_buf_addr %t : {FULL} -> !pto.ptr<f32, ub>",
        "%n = pto.castptr %p : !pto.ptr<f32, ub> -> i64",
    )
    assert isinstance(error, UnsupportedFeatureError) and "a tile without `addr`" in str(error)


def test_a_window_with_gaps_has_no_other_shape() -> None:
    window, row = "!pto.tile_buf<vec, 2x4xf32>", "!pto.tile_buf<vec, 1x8xf32>"
    error = refusal(
        f"%t = pto.alloc_tile : {FULL}",
        f"%s = pto.subview %t[%c1, %c2] sizes [2, 4] : {FULL} -> {window}",
        f"%r = pto.treshape %s : {window} -> {row}",
    )
    assert isinstance(error, UnsupportedFeatureError) and "gaps between its rows" in str(error)


def test_a_window_of_whole_rows_has_other_shapes(target: str) -> None:
    window, row = "!pto.tile_buf<vec, 2x8xf32>", "!pto.tile_buf<vec, 1x16xf32>"
    module = read(
        text(
            f"%t = pto.alloc_tile : {FULL}",
            f"pto.texpands ins(%one : f32) outs(%t : {FULL})",
            f"%s = pto.subview %t[%c1, %c0] sizes [2, 8] : {FULL} -> {window}",
            f"%r = pto.treshape %s : {window} -> {row}",
            f"pto.texpands ins(%two : f32) outs(%r : {row})",
            out("t"),
        )
    )
    assert rows_of(run(module, "k", target, 1, [np.zeros(32, np.float32)])[0]) == [1, 2, 2, 1]


@pytest.mark.parametrize("offset", [1 << 62, (1 << 62) + 1, -(1 << 62), (1 << 63) - 1])
def test_an_offset_that_wraps_around_is_refused(offset: int) -> None:
    error = refusal(f"%n = arith.constant {offset} : index", "pto.store %one, %x[%n] : !pto.ptr<f32>, f32")
    assert isinstance(error, OutOfBoundsError) and re.search(rf"element {offset} of f32", str(error))
