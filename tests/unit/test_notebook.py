"""Notebooks: what a cell shows of kernels, programs and errors."""

from __future__ import annotations

import html
import re
from typing import Any

import numpy as np
import pytest

import tilewright.language as pl
from tilewright.core.region import Region
from tilewright.core.types import TileType
from tilewright.errors import ShapeMismatchError
from tilewright.explore.writer import unpacked
from tilewright.interpret.held_values import Held
from tilewright.runtime import benchmark


@pl.jit
def double(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], [8, 8]) * 2.0, [0, 0], out)
    return out


@pl.jit
def wrong(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], [8, 8]) * pl.load(x, [0, 0], [4, 8]), [0, 0], out)
    return out


X: Any = np.ones((8, 8), np.float32)


def shown(thing: object) -> str:
    return getattr(thing, "_repr_html_")()  # noqa: B009


def test_a_kernel_shows_its_text() -> None:
    assert "pl.store(pl.load(x, [0, 0], [8, 8]) * 2.0, [0, 0], out)" in shown(double)


def test_a_program_shows_its_page_in_a_frame_of_its_own() -> None:
    text = shown(double.compile(X))
    assert text.startswith("<iframe sandbox=") and text.count("<") == 2
    assert unpacked(html.unescape(text))["title"] == "double"


def test_an_error_shows_the_line_and_what_to_try() -> None:
    with pytest.raises(ShapeMismatchError) as caught:
        wrong(X)
    text = shown(caught.value)
    assert "<strong>ShapeMismatchError</strong>" in text and "help:" in text and "^" in text


def test_lines_of_code_and_their_carets_are_never_wrapped_and_sentences_are() -> None:
    with pytest.raises(ShapeMismatchError) as caught:
        wrong(X)
    blocks = re.findall(r'<pre style="[^"]*white-space:(pre|pre-wrap);[^"]*">(.*?)</pre>', shown(caught.value), re.S)
    assert [kind for kind, _ in blocks] == ["pre", "pre-wrap"]
    assert "pl.store(" in blocks[0][1] and "^^^" in blocks[0][1] and "help:" in blocks[1][1]
    assert "white-space:pre;" in shown(double)


def test_a_large_tile_says_how_much_of_it_is_shown() -> None:
    data: Any = np.zeros((20, 24), np.float32)
    text = shown(Held(TileType((20, 24), pl.FP32, (20, 24)), Region(data, (20, 24))))
    assert "tile[20, 24] of fp32: 16 of 20 rows and 16 of 24 columns" in text and text.count("<tr>") == 16


def test_a_tile_shows_its_elements_and_leaves_out_those_that_nobody_wrote() -> None:
    data: Any = np.array([[0, 1], [2, 3]], np.float32)
    text = shown(Held(TileType((2, 2), pl.FP32, (2, 1)), Region(data, (2, 1))))
    assert "tile[2, 2] of fp32, valid [2, 1]" in text
    assert re.findall(r"<td[^>]*>([^<]*)</td>", text) == ["0", "", "2", ""]


def test_measurements_show_their_text() -> None:
    program = double.compile(X)
    for found in (program.explain(X), benchmark(program, [X], rounds=2)):
        (first, *_) = str(found).splitlines()
        assert html.escape(first) in shown(found)
    assert repr(program.explain(X)).startswith("double on cpu: ")
