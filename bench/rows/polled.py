"""polled: what it costs that loops end once their program has failed or was interrupted.

The sums read one number a turn, in a cycle or two: there is no work that a poll could weigh more beside. Rows of 64
elements are about the smallest that a turn of a tile loop does.
"""

from collections.abc import Callable
from functools import partial

import torch
from contest import Contest, Field, Run, Work

import tilewright.language as pl
from tilewright.backends.cpu.backend import CPU
from tilewright.backends.cpu.host.options import Options
from tilewright.call.binding import bind
from tilewright.call.launch import prepared
from tilewright.core.program import Program
from tilewright.passes.manager import PassManager

NUMBERS, SUMS, COLUMNS = 4096, 4096, 64
Numbers = pl.Tensor[[NUMBERS], pl.INT64]
Sums = pl.Tensor[[SUMS], pl.INT64]
Matrix = pl.Tensor[[NUMBERS, COLUMNS], pl.FP32]


def counted() -> Program:
    """Return sums of numbers that a counted loop reads one by one."""

    @pl.program
    class Counted:
        @pl.function(type=pl.FunctionType.Orchestration)
        def main(self, x: Numbers, count: pl.Scalar[pl.INDEX], out: pl.Out[Sums]) -> Sums:
            with pl.at(level=pl.Level.CORE_GROUP):
                for i in pl.range(SUMS):
                    total = pl.read(x, [0])
                    for j in pl.range(1, count):
                        total = total + pl.read(x, [j])
                    pl.write(out, [i], total)
            return out

    return Counted


def waited() -> Program:
    """Return the same sums, of a loop that goes on while a condition holds."""

    @pl.program
    class Waited:
        @pl.function(type=pl.FunctionType.Orchestration)
        def main(self, x: Numbers, count: pl.Scalar[pl.INDEX], out: pl.Out[Sums]) -> Sums:
            with pl.at(level=pl.Level.CORE_GROUP):
                for i in pl.range(SUMS):
                    total = pl.read(x, [0])
                    j = count - 1
                    while j > 0:
                        total = total + pl.read(x, [j])
                        j = j - 1
                    pl.write(out, [i], total)
            return out

    return Waited


def doubled() -> Program:
    """Return a matrix twice, a row a turn."""

    @pl.program
    class Doubled:
        @pl.function(type=pl.FunctionType.Orchestration)
        def main(self, x: Matrix, count: pl.Scalar[pl.INDEX], out: pl.Out[Matrix]) -> Matrix:
            with pl.at(level=pl.Level.CORE_GROUP):
                for i in pl.range(count):
                    out = pl.store(pl.mul(pl.load(x, [i, 0], [1, COLUMNS]), 2.0), [i, 0], out)
            return out

    return Doubled


def compiled_with(polled: bool, program: Program, *inputs: torch.Tensor | int, out: torch.Tensor) -> Run:
    """Return a run of `program`, with or without polls, that writes `out`."""
    lowered = PassManager.get_strategy().run_passes(program)
    native = CPU().load(lowered, CPU().compile(lowered, options=Options(polled=polled)))
    entry = lowered["main"]
    call = prepared(native, bind(entry, entry.param_directions, (*inputs, out)))

    def run() -> torch.Tensor:
        call()
        return out

    return run


def enter(program: Callable[[], Program], x: torch.Tensor, expected: torch.Tensor) -> Field:
    out = torch.zeros_like(expected)  # the same for both: where memory lies is worth some percent
    runs = {
        who: compiled_with(polled, program(), x, NUMBERS, out=out)
        for who, polled in (("polled", True), ("unpolled", False))
    }
    return Field(expected, runs, rtol=0, atol=0)


def summing(program: Callable[[], Program]) -> Field:
    return enter(program, torch.ones(NUMBERS, dtype=torch.int64), torch.full((SUMS,), NUMBERS))


def doubling() -> Field:
    x = torch.randn(NUMBERS, COLUMNS)
    return enter(doubled, x, 2 * x)


row = partial(Contest, group="What polls cost", subject="polled", against="unpolled")
ROWS = (
    row(
        f"{SUMS} sums, for", partial(summing, counted), Work(bytes=8 * NUMBERS * SUMS),
        note="one program, compiled with and without polls; each turn reads a number.",
    ),
    row(f"{SUMS} sums, while", partial(summing, waited), Work(bytes=8 * NUMBERS * SUMS)),
    row(f"{NUMBERS} rows of {COLUMNS}", doubling, Work(bytes=2 * 4 * NUMBERS * COLUMNS), target=0.97, calls=32),
)  # fmt: skip
