"""Overwritten outputs: which of them a program surely fills."""

from __future__ import annotations

import numpy as np
import pytest
from unit.frontend.texts import in_core
from unit.passes.texts import main

import tilewright.language as pl
from tilewright.core.program import Program
from tilewright.passes.manager import PassManager
from tilewright.passes.overwritten import overwritten_outputs

PARAMS = (
    "x: pl.Tensor[[M, 8], pl.FP32], y: pl.Out[pl.Tensor[[M, 8], pl.FP32]], "
    "z: pl.Out[pl.Tensor[[24, 8], pl.FP32]], n: pl.Scalar[pl.INDEX]"
)


def filled(body: str) -> list[str]:
    program: Program = PassManager.get_strategy().run_passes(main(body, params=PARAMS))
    (entry,) = program.entries
    return [entry.params[position].name_hint for position in overwritten_outputs(program, entry)]


def kernel(*lines: str, around: str = "") -> str:
    text = in_core(*lines)
    return f"{around}\n" + "\n".join(f"    {line}" for line in text.splitlines()) if around else text


ONE = "pl.store(pl.tile.full([1, 8], dtype=pl.FP32, value=1.0), [i, 0], {0})"
LOADED = "pl.store(pl.load(x, [i, 0], [16, 8]), [i, 0], y)"

FILLED = {
    "a tile as large as its tensor": kernel("pl.store(pl.tile.full([24, 8], dtype=pl.FP32, value=1.0), [0, 0], z)"),
    "rows one by one": kernel(ONE.format("z"), around="for i in pl.parallel(24):"),
    "as many rows as there are": kernel(ONE.format("y"), around="for i in pl.range(M):"),
    "what was loaded from as far": kernel(LOADED, around="for i in pl.parallel(0, M, 16):"),
    "blocks counted by pl.cdiv": kernel(
        LOADED.replace("[i,", "[i * 16,"), around="for i in pl.parallel(pl.cdiv(M, 16)):"
    ),
    "blocks counted by hand": kernel(LOADED.replace("[i,", "[i * 16,"), around="for i in pl.parallel((M + 15) // 16):"),
    "rows of blocks": kernel(
        "for i in pl.range(b * 16, pl.min(b * 16 + 16, M)):\n    " + ONE.format("y"),
        around="for b in pl.parallel(pl.cdiv(M, 16)):",
    ),
    "more than once": kernel(ONE.format("z"), around="for k in pl.range(2):\n  for i in pl.range(24):"),
}

OPEN = {
    "rows that may not be there": kernel("for i in pl.range(n):\n    " + ONE.format("z")),
    "turns that may not be": kernel(ONE.format("z"), around="for k in pl.range(n):\n  for i in pl.range(24):"),
    "all rows but the last": kernel(ONE.format("z"), around="for i in pl.range(23):"),
    "every other row": kernel(ONE.format("z"), around="for i in pl.range(0, 24, 2):"),
    "all rows but the first": kernel(ONE.format("z"), around="for i in pl.range(1, 24):"),
    "rows where a branch is taken": kernel(ONE.format("z"), around="for i in pl.range(24):\n  if i < n:"),
    "a diagonal": kernel(
        "pl.store(pl.tile.full([1, 1], dtype=pl.FP32, value=1.0), [i, i], z)", around="for i in pl.range(8):"
    ),
    "sums": kernel(ONE.format("z").replace(", z)", ", z, atomic=pl.AtomicType.Add)"), around="for i in pl.range(24):"),
    "rows that a mask admits": kernel(
        ONE.format("z").replace(", z)", ", z, mask=pl.iota([1, 8], axis=1) < 7)"), around="for i in pl.range(24):"
    ),
    "too few blocks": kernel(LOADED.replace("[i,", "[i * 16,"), around="for i in pl.parallel(M // 16):"),
    "what is read first": kernel("pl.store(pl.load(z, [0, 0], [24, 8]) + 1.0, [0, 0], z)"),
}


@pytest.mark.parametrize("body", FILLED.values(), ids=FILLED)
def test_an_output_is_filled_by(body: str) -> None:
    assert len(filled(body)) == 1


@pytest.mark.parametrize("body", OPEN.values(), ids=OPEN)
def test_no_output_is_surely_filled_by(body: str) -> None:
    assert filled(body) == []


def test_what_a_program_may_leave_open_is_zero_however_often_it_is_called() -> None:
    @pl.jit
    def halves(x: pl.Tensor, whole: pl.Out[pl.Tensor], part: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [0, 0], [64, 64])
            pl.store(t, [0, 0], whole)
            pl.store(t[:32], [0, 0], part)
        return whole, part

    x = np.full((64, 64), 7.0, np.float32)
    for _ in range(8):
        whole, part = halves(x)
        assert (whole == 7).all() and (part[:32] == 7).all() and (part[32:] == 0).all()
        whole[:] = part[:] = np.nan  # what the next ones may be made of
        del whole, part


def test_a_new_tensor_that_its_own_loop_reads_first_is_zeros() -> None:
    @pl.jit
    def running(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        held = pl.create_tensor([64, 64], dtype=pl.FP32)
        for i in pl.range(0, 64, 8):
            with pl.at(level=pl.Level.CORE_GROUP):
                before = pl.load(held, [56 - i, 0], [8, 64])
                pl.store(pl.load(x, [i, 0], [8, 64]) + before, [i, 0], held)
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(held, [0, 0], [64, 64]), [0, 0], out)
        return out

    x = np.ones((64, 64), np.float32)
    for _ in range(3):
        assert running(x).sum() == 32 * 64 + 32 * 64 * 2


def test_a_new_tensor_that_a_function_fills_may_hold_anything_and_one_that_it_adds_to_holds_zeros() -> None:
    @pl.jit.incore
    def copied(x: pl.Tensor, i: pl.Scalar[pl.INDEX], y: pl.Out[pl.Tensor]):
        pl.store(pl.load(x, [i, 0], [8, 64]), [i, 0], y)
        return y

    @pl.jit.incore
    def added(x: pl.Tensor, i: pl.Scalar[pl.INDEX], y: pl.InOut[pl.Tensor]):
        pl.store(pl.load(x, [i, 0], [8, 64]) + pl.load(y, [i, 0], [8, 64]), [i, 0], y)
        return y

    @pl.jit
    def both(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        a = pl.create_tensor([64, 64], dtype=pl.FP32)
        b = pl.create_tensor([64, 64], dtype=pl.FP32)
        for i in pl.range(0, 64, 8):
            a = copied(x, i, a)
        for i in pl.range(0, 64, 8):
            b = added(a, i, b)
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(b, [0, 0], [64, 64]), [0, 0], out)
        return out

    x = np.full((64, 64), 3.0, np.float32)
    for _ in range(3):
        assert (both(x) == 3).all()
