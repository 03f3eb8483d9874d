"""Polls: a program that failed ends soon, wherever it is."""

from __future__ import annotations

import time
import warnings

import numpy as np
import pytest
from unit.backends.cpu.running import Native, kernel, native

from tilewright.backends.cpu.backend import CPU
from tilewright.backends.cpu.emit.work import SMALL, Estimate
from tilewright.backends.cpu.host.options import Options
from tilewright.backends.host import HostProgram
from tilewright.core.stmt import ForStmt
from tilewright.core.visitor import statements
from tilewright.errors import DependentTurnsWarning, ExecutionError
from tilewright.passes.manager import PassManager

MANY = 10**9
SOON = 1.0  # seconds of processors; all the turns take 20 times as long, and those up to the error a microsecond
X = "x: pl.Tensor[[8], pl.INT64]"
TURNS = "turns: pl.Scalar[pl.INDEX]"
OUT = "out: pl.Out[pl.Tensor[[8], pl.INT64]]"

COUNTED = kernel(f"{X}, {TURNS}, {OUT}", "for i in pl.range(turns):", "    pl.write(out, [0], pl.read(x, [4 + i]))")
ENDLESS = kernel(
    f"{X}, {TURNS}, {OUT}",
    "i = pl.const(0, pl.INDEX)",
    "while i < turns:",
    "    pl.write(out, [0], pl.read(x, [4 + i]))",
    "    i = i + 1",
)
NESTED = kernel(
    f"{X}, {TURNS}, {OUT}",
    "for i in pl.range(turns):",
    "    for j in pl.range(3):",
    "        for k in pl.range(turns):",
    "            pl.write(out, [0], pl.read(x, [4 + i * j + k]))",
)
AROUND = kernel(
    f"{X}, {TURNS}, {OUT}",
    "for i in pl.range(turns):",
    "    for j in pl.range(2):",
    "        pl.write(out, [j], pl.read(x, [4 + i]))",
)
TILES = kernel(
    f"{X}, {TURNS}, {OUT}",
    "for i in pl.range(turns):",
    "    out = pl.store(pl.load(x, [4 + i], [2]), [0], out)",
)
with warnings.catch_warnings():  # turns from the eighth on write to one place: none of them comes that far
    warnings.simplefilter("ignore", DependentTurnsWarning)
    BESIDE = native(f"""
@pl.program
class P:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, {X}, {TURNS}, {OUT}):
        for i in pl.parallel(turns):
            with pl.at(level=pl.Level.CORE_GROUP):
                pl.write(out, [pl.min(i, 7)], pl.read(x, [4 + i]))
""")
CALLED = native(f"""
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def copy(self, {X}, {TURNS}, {OUT}):
        for i in pl.range(turns):
            pl.write(out, [0], pl.read(x, [4 + i]))
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, {X}, {TURNS}, {OUT}):
        for i in pl.range(turns):
            out = self.copy(x, turns, out)
        return out
""")
BLOCKS = native(f"""
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def copy(self, {X}, {TURNS}, {OUT}):
        for i in pl.range(turns):
            pl.write(out, [0], pl.read(x, [4 + i]))
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, {X}, {TURNS}, {OUT}):
        with pl.spmd(turns):
            out = self.copy(x, turns, out)
        return out
""")
PROGRAMS = {
    "range": COUNTED, "while": ENDLESS, "nested": NESTED, "around a short loop": AROUND, "tiles": TILES,
    "parallel": BESIDE, "called": CALLED, "blocks": BLOCKS,
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_error_at_turn_4_of_a_billion_ends_the_loop(name: str) -> None:
    start = time.process_time()
    PROGRAMS[name].fails("outside", np.zeros(8, np.int64), MANY, np.zeros(8, np.int64))
    assert time.process_time() - start < SOON


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_loop_that_does_not_fail_makes_all_its_turns(name: str) -> None:
    PROGRAMS[name].check(np.arange(8), 2, np.zeros(8, np.int64))


def test_the_first_error_in_program_order_is_the_one_reported() -> None:
    failing = kernel(
        f"{X}, {TURNS}, {OUT}",
        "for i in pl.range(turns):",
        "    pl.write(out, [0], pl.read(x, [4 + i]))",
        "    pl.write(out, [1], 8 // (i - 5))",
        "pl.write(out, [turns], 1)",
    )
    assert failing.fails("outside", np.zeros(8, np.int64), MANY, np.zeros(8, np.int64)).spans[0].line == 10


def test_nothing_behind_a_long_loop_that_failed_is_done() -> None:
    failing = kernel(
        f"{X}, {TURNS}, {OUT}",
        "for i in pl.range(turns):",
        "    pl.write(out, [0], pl.read(x, [4 + i]))",
        "pl.write(out, [1], 1)",
    )
    out = np.zeros(8, np.int64)
    with pytest.raises(ExecutionError):
        failing.run([np.zeros(8, np.int64), MANY, out])
    assert out[1] == 0


def test_a_branch_that_is_seldom_taken_does_not_make_its_loop_look_more_often() -> None:
    rare = kernel(
        "x: pl.Tensor[[64, 1024], pl.FP32], out: pl.Out[pl.Tensor[[64, 1024], pl.FP32]]",
        "for i in pl.range(4000000):",
        "    if i == 7:",
        "        out = pl.store(pl.exp(pl.load(x, [0, 0], [64, 1024])), [0, 0], out)",
    )
    program = rare.native.program
    (loop,) = (s for f in program.function_list for s in statements(f.body) if isinstance(s, ForStmt))
    assert Estimate(program).body(loop.body).units < SMALL


def test_short_loops_do_not_look() -> None:
    short = kernel(f"{X}, {OUT}", "for i in pl.range(8):", "    pl.write(out, [i], pl.read(x, [i]))")
    assert "@poll" not in short.native.code.texts["llvm"]()
    assert "@poll" in COUNTED.native.code.texts["llvm"]()


def test_loops_that_threads_share_together_are_polled_around_a_short_one() -> None:
    program = native(f"""
@pl.program
class P:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, {X}, {TURNS}, {OUT}):
        for i in pl.parallel(turns):
            for j in pl.parallel(2):
                with pl.at(level=pl.Level.CORE_GROUP):
                    pl.write(out, [j], pl.read(x, [j]) + i)
""")
    assert "@poll(" in program.native.code.texts["llvm"]()


def test_polls_can_be_left_out_to_measure_them() -> None:
    assert "@poll" not in _without_polls(COUNTED).code.texts["llvm"]()


def _without_polls(program: Native) -> HostProgram:
    lowered = PassManager.get_strategy().run_passes(program.program)
    return CPU().load(lowered, CPU().compile(lowered, options=Options(polled=False)))
