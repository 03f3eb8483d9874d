"""checked: what it costs to check offsets that are only known when they are read.

Rows are gathered by a list of numbers, so each is checked against the matrix it is looked up in, and 64 elements are
all the work there is to a check. TILEWRIGHT_CHECKED decides while a program is compiled whether it makes checks.
"""

import os
from collections.abc import Generator
from contextlib import contextmanager

import torch
from contenders import ours
from contest import EAGER, Contest, Field, Run, Work
from memory import output

import tilewright.language as pl
from tilewright.core.program import Program

ROW_COUNT, COLUMNS, BAND = 65536, 64, 64
SETTING = "TILEWRIGHT_CHECKED"


def program(count: int = ROW_COUNT, columns: int = COLUMNS, band: int = BAND) -> Program:
    Matrix = pl.Tensor[[count, columns], pl.FP32]

    @pl.program
    class Gather:
        @pl.function(type=pl.FunctionType.Orchestration)
        def main(self, x: Matrix, numbers: pl.Tensor[[count], pl.INT32], out: pl.Out[Matrix]) -> Matrix:
            for first in pl.parallel(0, count, band):
                with pl.at(level=pl.Level.CORE_GROUP):
                    for i in pl.range(first, first + band):
                        row = pl.load(x, [pl.read(numbers, [i]), 0], [1, columns])
                        out = pl.store(row, [i, 0], out)
            return out

    return Gather


@contextmanager
def setting(value: str) -> Generator[None, None, None]:
    """Have programs compiled with or without checks."""
    before = os.environ.get(SETTING)
    os.environ[SETTING] = value
    try:
        yield
    finally:
        os.environ.pop(SETTING)
        os.environ.update({SETTING: before} if before is not None else {})


def compiled_with(value: str, x: torch.Tensor, numbers: torch.Tensor) -> Run:
    with setting(value):
        return ours(program(), x, numbers, out=output(ROW_COUNT, COLUMNS))


def enter() -> Field:
    x = torch.randn(ROW_COUNT, COLUMNS)
    numbers = torch.randint(ROW_COUNT, (ROW_COUNT,), dtype=torch.int32)
    eager = output(ROW_COUNT, COLUMNS)
    return Field(
        x[numbers],
        {
            "checked": compiled_with("1", x, numbers),
            "unchecked": compiled_with("0", x, numbers),
            EAGER: lambda: torch.index_select(x, 0, numbers, out=eager),
        },
        rtol=0,
        atol=0,
    )


ROWS = (
    Contest(
        f"gather {ROW_COUNT}x{COLUMNS}",
        enter,
        Work(bytes=2 * 4 * ROW_COUNT * COLUMNS),
        note=f"one program, compiled with {SETTING}=1 and =0; eager is `index_select(out=)`.",
        group="What checks cost",
        subject="checked",
        against="unchecked",
        calls=4,
    ),
)
