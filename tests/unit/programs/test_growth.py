"""Growth: a process that calls a program again and again stays as large as it was."""

from __future__ import annotations

import gc
from collections.abc import Callable
from itertools import count, islice
from pathlib import Path
from resource import getpagesize
from typing import Any

import numpy as np
import pytest
import torch
from unit.programs.programs import HALVES, SEVERAL, program_of, rows

from tilewright import ir
from tilewright.errors import ExecutionError

X = rows(8)
TENSOR = torch.as_tensor(X)
SLACK = 1 << 19
"""Bytes that an allocator may come to hold meanwhile."""

PROGRAM, ENTRIES = ir.compile(program_of(HALVES)), ir.compile(program_of(SEVERAL))
OUT, INTO, ONES = np.zeros_like(X), torch.zeros(8, 64), np.ones(4, np.int32)


def failing(number: int) -> None:
    with pytest.raises(ExecutionError):
        PROGRAM(X, 1 + number % 3, OUT)


CALLS: dict[str, tuple[int, Callable[[int], Any]]] = {
    "NumPy, in place": (500_000, lambda _: PROGRAM(X, 0, OUT)),
    "torch, in place": (500_000, lambda _: PROGRAM(TENSOR, 0, INTO)),
    "NumPy, returning": (10_000, lambda _: PROGRAM(X, 0)),
    "torch, returning": (10_000, lambda _: PROGRAM(TENSOR, 0)),
    "in place through Python": (10_000, lambda _: PROGRAM(X, 0, out=OUT)),
    "with gaps": (10_000, lambda _: PROGRAM(X[::-1], 0, OUT[:, ::-1])),
    "extents that change": (20_000, lambda n: PROGRAM(X[: 1 + n % 8], 0, OUT[: 1 + n % 8])),
    "numbers that change": (5_000, lambda n: ENTRIES.double(ONES, n % 10)),
    "numbers that fail": (5_000, failing),
}


def resident() -> int:
    """Return how many bytes of memory the process has."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * getpagesize()


def growth(calls: Callable[[], None]) -> int:
    """Return by how much calls make the process grow each time: the least of a few, since allocators have their own."""
    found: list[int] = []
    while len(found) < 4 and (not found or min(found) >= SLACK):
        before = resident()
        calls()
        found.append(resident() - before)
    return min(found)


@pytest.mark.parametrize("way", CALLS)
def test_calls_do_not_grow_the_process(way: str) -> None:
    often, call = CALLS[way]

    def calls() -> None:
        for number in range(often):
            call(number)

    calls()
    assert growth(calls) < SLACK


def test_numbers_beyond_counting_do_not_grow_the_process() -> None:
    program = ir.compile(program_of(MANY))
    out = np.zeros(1, np.float32)
    numbers = count()

    def calls() -> None:
        for number in islice(numbers, 10_000):
            program(float(number), out)

    calls()
    assert growth(calls) < SLACK
    assert out[0] == next(numbers) - 1


MANY = """
import tilewright.language as pl

@pl.program
class Many:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, s: pl.Scalar[pl.FP32], out: pl.Out[pl.Tensor[[1], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.write(out, [0], s)
        return out
"""


def test_programs_that_come_and_go_do_not_grow_the_process() -> None:
    artifact = PROGRAM.artifact
    assert artifact is not None
    data = artifact.to_bytes()

    def come_and_go() -> None:
        program = ir.CompiledProgram.of(type(artifact).from_bytes(data))
        for _ in range(4):
            program(X, 0, OUT)

    def calls() -> None:
        for _ in range(150):
            come_and_go()

    calls()
    assert growth(calls) < SLACK
