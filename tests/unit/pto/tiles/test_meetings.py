"""Meetings: rows and the element of each, whichever of them is named first."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from unit.pto.rules.audit import text_of
from unit.pto.vectors.running import built, numbers

from tilewright.pto.text.parser import parse
from tilewright.pto.verify import verify

MEETINGS: dict[str, Any] = {"max": np.maximum, "min": np.minimum, "expdif": lambda a, b: np.exp(a - b)}
ROWS = {"whole": "8x16xf32", "parts": "8x16xf32, valid=6x13", "open": "8x16xf32, valid=?x?"}
EACH = {"column": "8x1xf32, valid={}x1, dn", "block": "8x8xf32, valid={}x8"}
LINES = (
    "%x = pto.alloc_tile {dims}: T<vec, {rows}>",
    "%out = pto.alloc_tile {dims}: T<vec, {rows}>",
    "%e = pto.alloc_tile : T<vec, {each}>",
    "pto.tload ins(%p : w{x}) outs(%x : T<vec, {rows}>)",
    "pto.tload ins(%q : w{e}) outs(%e : T<vec, {each}>)",
    "pto.trowexpand{word} ins(%e, %x : T<vec, {each}>, T<vec, {rows}>) outs(%out : T<vec, {rows}>)",
    "pto.tstore ins(%out : T<vec, {rows}>) outs(%o : w{x})",
)
HEAD = (
    "(%pg: !pto.ptr<f32>, %qg: !pto.ptr<f32>, %og: !pto.ptr<f32>)",
    *(
        line
        for name, cols in (("p", "x"), ("q", "e"), ("o", "x"))
        for line in (
            f"%{name}v = pto.make_tensor_view %{name}g, shape = [%cROWS, %c{cols}], strides = [%c{cols}, %c1]"
            " : !pto.tensor_view<?x?xf32>",
            f"%{name} = pto.partition_view %{name}v, offsets = [%c0, %c0], sizes = [%cROWS, %c{cols}]"
            f" : !pto.tensor_view<?x?xf32> -> w{{{cols}}}",
        )
    ),
)


def text(word: str, rows: str, each: str) -> tuple[str, tuple[int, int], int]:
    """Return a kernel, how much is valid of its rows, and how wide what meets them is."""
    valid = (6, 13) if rows != "whole" else (8, 16)
    width = 1 if each == "column" else 8
    words = {
        "x": f"{valid[0]}x{valid[1]}xf32", "e": f"{valid[0]}x{width}xf32", "rows": ROWS[rows], "word": word,
        "each": EACH[each].format(valid[0]),
        "dims": f"valid_row = %c{valid[0]} valid_col = %c{valid[1]} " if rows == "open" else "",
    }  # fmt: skip
    lines = "; ".join((*HEAD, *LINES))
    lines = lines.replace("%cROWS", f"%c{valid[0]}").replace("%cx", f"%c{valid[1]}").replace("%ce", f"%c{width}")
    for key, value in words.items():
        lines = lines.replace(f"{{{key}}}", value)
    return text_of(lines, "a5"), valid, width


@pytest.mark.parametrize("each", EACH)
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("word", MEETINGS)
def test_the_element_of_each_row_may_come_first(word: str, rows: str, each: str, target: str) -> None:
    made, valid, width = text(word, rows, each)
    verify(parse(made))
    x, e, out = numbers(1, *valid), numbers(2, valid[0], width), np.zeros(valid, np.float32)
    built(made, target)(1, x.ravel(), e.ravel(), out.reshape(-1))
    np.testing.assert_allclose(out, MEETINGS[word](e[:, :1], x), rtol=1e-5)
