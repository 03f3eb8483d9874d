"""Pages: what the explorer shows, read back from the file it wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright.language as pl
from tilewright import ir
from tilewright.explore.notes import LARGEST
from tilewright.explore.page import FILE
from tilewright.explore.writer import unpacked

SCALE = 0.5


@pl.jit.inline
def half(t: pl.Tile) -> pl.Tile:
    return t * SCALE


@pl.jit
def blur(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    for r in pl.parallel(0, 30, 4):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [r, 0], [6, 32])
            pl.store(half(t), [r, 0], out)
    return out


X: Any = np.ones((40, 32), np.float32)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    path = blur.compile(X, X).explore(X, X.copy(), output=tmp_path_factory.mktemp("explore") / "page.html")
    return unpacked(path.read_text(encoding="utf-8"))


def line_of(text: str) -> int:
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    return next(number for number, line in enumerate(lines, start=1) if text in line)


def lines(page: dict[str, Any], text: dict[str, Any]) -> list[tuple[str, int]]:
    return [(page["strings"][string], place) for string, place in zip(text["lines"], text["places"], strict=True)]


def test_every_stage_says_which_line_it_came_from(page: dict[str, Any]) -> None:
    last = [each for each in page["passes"] if each["text"]][-1]
    texts = [last["text"], *(text for text in page["code"] if text["name"] in ("llvm", "assembly"))]
    for text, wanted in zip(texts, ("pl.tile.mul", "fmul", "mul"), strict=True):
        places = {place % FILE for line, place in lines(page, text) if wanted in line}
        assert line_of("return t * SCALE") in places, (text["name"], places)


def test_the_source_shows_what_it_was_made_from(page: dict[str, Any]) -> None:
    (source,) = page["sources"]
    shown = {source["first"] + index: page["strings"][string] for index, string in enumerate(source["lines"])}
    assert shown[line_of("pl.store(half(t)")] == "            pl.store(half(t), [r, 0], out)"


def test_differences_rebuild_the_text_before(page: dict[str, Any]) -> None:
    changed = [each for each in page["passes"] if each["text"]]
    for before, after in zip(changed, changed[1:], strict=False):
        old, new = before["text"]["lines"], after["text"]["lines"]
        for start, stop, first, last in reversed(after["changes"]):
            new = [*new[:first], *old[start:stop], *new[last:]]
        assert new == old


def test_the_key_and_the_guards_are_there(page: dict[str, Any]) -> None:
    facts = {(fact["group"], fact["name"]): fact["value"] for fact in page["facts"]}
    assert facts["found by", "x"] == "a tensor of fp32 with 2 axes of [40, 32]"
    assert facts["looked at before each call", "SCALE"].startswith("0.5, ")


def test_access_names_races_gaps_and_repeated_reads(page: dict[str, Any]) -> None:
    access = page["access"]
    assert [turn["name"] for turn in access["turns"]][:2] == ["r = 0", "r = 4"]
    assert access["turns"][1]["touches"][0]["runs"] == [[4 * 32, 10 * 32]]
    found = {(finding["kind"], finding["argument"]): finding["text"] for finding in access["findings"]}
    assert "turn r = 4 writes out[4, 0], which turn r = 0 writes" in found["race", ""]
    assert found["gap", "out"] == "192 of 1280 elements are never written, out[34, 0] first"
    assert ("overlap", "out") in found and ("repeated", "x") in found


@pl.jit
def smooth(x: pl.InOut[pl.Tensor]):
    for r in pl.parallel(x.shape[0] - 1):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [r, 0], [1, 32]) + pl.load(x, [r + 1, 0], [1, 32])
            pl.store(t * 0.5, [r, 8], x)
    return x


def test_the_elements_that_turns_race_for_are_those_that_two_of_them_touch() -> None:
    x: Any = np.ones((4, 64), np.float32)
    access = smooth.compile(x).page(x).access
    assert access is not None
    assert access.racing == [[(64 * r + 8, 64 * r + 32) for r in (1, 2)]]


def test_a_call_that_no_picture_shows_is_measured_all_the_same() -> None:
    big: Any = np.ones((LARGEST // 32 + 1, 32), np.float32)
    page = blur.compile(big, big).page(big, big.copy())
    assert page.access is None
    assert page.speed is not None and page.speed.roofline is not None and page.speed.seconds > 0
    assert line_of("pl.store(half(t)") in {remark.place % FILE for remark in page.remarks}


@pl.jit
def counted(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    for block in pl.spmd(2):
        with pl.at(level=pl.Level.CORE_GROUP):
            for k in pl.range(0, 4):
                if k == 1:
                    break
                pl.store(pl.load(x, [block * 4 + k, 0], [1, 8]), [block * 4 + 1, 0], out)
            pl.store(pl.load(x, [block * 4 + 3, 0], [1, 8]), [block * 4, 0], out)
    return out


def test_turns_are_named_by_the_blocks_and_loops_around_them() -> None:
    x: Any = np.ones((8, 8), np.float32)
    access = counted.compile(x, x).page(x, x.copy()).access
    assert access is not None
    assert [turn.name for turn in access.turns] == ["block 0, k = 0", "block 0", "block 1, k = 0", "block 1"]


FUNCTION = """
@pl.function
def f(x: pl.Tensor[[8, 8], pl.FP32]):
    t = pl.load(x, [0, 0], [8, 8])"""


def test_no_text_of_a_program_becomes_part_of_the_page(tmp_path: Path) -> None:
    name = "</script><script>alert(1)</script>"
    text = f"import tilewright.language as pl\n{FUNCTION}  # {name}\n"
    page = ir.compile(pl.parse(text)).explore(output=tmp_path / "page.html").read_text(encoding="utf-8")
    assert "alert(1)" not in page
    assert any(name in string for string in unpacked(page)["strings"])
