"""Two tiles: rows with the element of each, sources that hold different parts, rows that become columns."""

from __future__ import annotations

from typing import Any

import pytest
from unit.pto.tiles.cases import ELEMENTS
from unit.pto.tiles.sketch import Sketch
from unit.pto.vectors.running import Array, integers, np, numbers

ROWS: dict[str, Any] = {
    "8x16xf32": None, "8x16xf32, valid=6x13": None, "8x16xf32, valid=?x?": (6, 13),
}  # fmt: skip


def expdif(each: Array, rows: Array) -> Array:
    return np.exp(each - rows)


MEETINGS = {"max": np.maximum, "min": np.minimum, "expdif": expdif}


@pytest.mark.parametrize("each", ["8x1xf32, valid={}x1, dn", "8x8xf32, valid={}x8"])
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("word", MEETINGS)
def test_the_element_of_each_row_may_come_first(word: str, rows: str, each: str, target: str) -> None:
    valid = (8, 16) if rows == "8x16xf32" else (6, 13)
    x, e = numbers(1, *valid), numbers(2, valid[0], 1 if "dn" in each else 8)
    sketch = Sketch()
    whole, first = sketch.given(x, rows, ROWS[rows]), sketch.given(e, each.format(valid[0]))
    out = sketch.tile(rows, ROWS[rows])
    sketch.op(f"trowexpand{word}", [first, whole], [out])
    at = sketch.left(out)
    np.testing.assert_allclose(sketch.run(target)[at], MEETINGS[word](e[:, :1], x), rtol=1e-5)


@pytest.mark.parametrize("part", ["valid=5x40", "valid=8x1", "valid=1x64", "valid=?x?"])
@pytest.mark.parametrize("element", ["f32", "i16"])
@pytest.mark.parametrize("word", ["max", "min"])
@pytest.mark.parametrize("is_first", [True, False])
def test_what_one_source_holds_alone_keeps_its_index(
    word: str, element: str, part: str, is_first: bool, target: str
) -> None:
    rows, cols = (3, 17) if "?" in part else map(int, part[6:].split("x"))
    open = (rows, cols) if "?" in part else None
    x, y = (integers(seed, 512, np.int16, -99, 99).astype(ELEMENTS[element]).reshape(8, 64) for seed in (1, 2))
    i, j = (integers(seed, 512, np.int32).reshape(8, 64) for seed in (3, 4))
    sketch = Sketch()
    whole, some = sketch.given(x, f"8x64x{element}"), sketch.given(y[:rows, :cols], f"8x64x{element}, {part}", open)
    places, few = sketch.given(i, "8x64xi32"), sketch.given(j[:rows, :cols], f"8x64xi32, {part}", open)
    out, at = sketch.tile(f"8x64x{element}"), sketch.tile("8x64xi32")
    order = [some, whole, few, places] if is_first else [whole, some, places, few]
    sketch.op(f"tpartarg{word}", order, [out, at])
    best, index = sketch.left(out), sketch.left(at)
    left = sketch.run(target)
    inside = np.zeros((8, 64), bool)
    inside[:rows, :cols] = True
    beats = {("max", False): np.greater, ("min", False): np.less}.get((word, is_first))
    beats = beats or {"max": np.greater_equal, "min": np.less_equal}[word]
    taken = inside & beats(y, x)
    np.testing.assert_array_equal(left[best], np.where(taken, y, x))
    np.testing.assert_array_equal(left[index], np.where(taken, j, i))


@pytest.mark.parametrize("arch", ["a3", "a5"])
def test_a5_turns_what_lies_behind_the_valid_part_too(arch: str, target: str) -> None:
    x, before = numbers(1, 8, 16), numbers(2, 16, 8)
    sketch = Sketch(arch)
    whole = sketch.given(x, "8x16xf32, valid=?x?", (8, 16))
    out = sketch.given(before, "16x8xf32")
    five, seven = sketch.index(5), sketch.index(7)
    sketch.lines.append(f"pto.set_validshape %{whole.name}, {five}, {seven} : {whole.type}")
    sketch.op("ttrans", [whole, sketch.tile("16x8xf32")], [out])
    at = sketch.left(out)
    wanted = x.T.copy()
    if arch == "a3":
        wanted = before.copy()
        wanted[:7, :5] = x[:5, :7].T
    np.testing.assert_array_equal(sketch.run(target)[at], wanted)
