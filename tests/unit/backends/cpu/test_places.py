"""Places: instructions know the line they were made for, and nobody pays for it otherwise."""

from __future__ import annotations

import numpy as np

import tilewright.language as pl
from tilewright.backends.interface import find

ROWS = 16


@pl.jit
def softmax(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    for r in pl.parallel(0, x.shape[0], ROWS):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [r, 0], [ROWS, 64])
            e = pl.exp(t - pl.row_max(t))
            pl.store(e / pl.row_sum(e), [r, 0], out)
    return out


def line_of(text: str) -> int:
    with open(__file__, encoding="utf-8") as file:
        return next(number for number, line in enumerate(file, start=1) if text in line)


def test_llvm_and_assembly_say_which_line_each_instruction_was_made_for() -> None:
    found = find("cpu").anatomy(softmax.lower(np.ones((64, 64), np.float32)))
    for stage, instruction, text in (
        ("llvm", "@llvm.fma", "e = pl.exp"),
        ("llvm", "store <", "pl.store(e /"),
        ("llvm", "call void @fn", "with pl.at"),
        ("assembly", "\tvf", "e = pl.exp"),
    ):
        lines = {line.number for line in found.texts[stage] if instruction in line.text}
        assert line_of(text) in lines, (stage, instruction, lines)
    shown = "".join(line.text for text in found.texts.values() for line in text)
    assert "!dbg" not in shown and ".loc" not in shown
    assert {line.file for line in found.texts["llvm"]} == {"", __file__}


def test_memory_says_which_tile_holds_it() -> None:
    found = find("cpu").anatomy(softmax.lower(np.ones((64, 64), np.float32)))
    (kept,) = [held for memory in found.memory for held in memory.held if held.name == "e"]
    rows_at_a_time = 8
    assert (kept.offset, kept.size) == (0, 256 * rows_at_a_time)


def test_the_text_that_runs_carries_no_places() -> None:
    assert "!dbg" not in softmax.compile(np.ones((64, 64), np.float32)).stages["llvm"]
