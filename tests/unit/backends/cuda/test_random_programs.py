"""Random programs for a GPU that is not here: each is written, or refused by name, runs, and is taken by Triton."""

from __future__ import annotations

from random import Random

import pytest
from property.accuracy import assert_within_declared_accuracy
from property.native import quietly
from property.programs import inputs_for, program
from property.running import Outcome, outcome, parsed
from property.ways import covered
from unit.backends.cuda.emulated_device import left
from unit.backends.cuda.written import written

from tilewright.backends.cuda.engine import Job, compiled
from tilewright.backends.cuda.host.kernels import KernelText
from tilewright.backends.cuda.target import triton_objection
from tilewright.errors import UnsupportedFeatureError

PROGRAMS, BUDGET, FEW = 24, 20, 3
"""Programs, about how many statements each has, and how many of them may be refused."""
COMPILED, RUN = 6, 16


def kernels_of(op: str) -> list[KernelText] | None:
    """Return the kernels of a random program about an op, None for one that is refused."""
    try:
        return written(parsed(program(Random(op).randint, BUDGET, about=[op]))).kernels
    except UnsupportedFeatureError as error:
        assert "no CUDA recipe for" in str(error)
        return None


def some(count: int) -> list[str]:
    """Return ops from all over the registry."""
    return covered()[:: len(covered()) // count][:count]


def test_random_programs_are_written_or_refused_by_name() -> None:
    assert sum(kernels_of(op) is None for op in some(PROGRAMS)) <= FEW


@pytest.mark.parametrize("op", some(RUN))
def test_random_programs_leave_what_the_interpreter_does(op: str, monkeypatch: pytest.MonkeyPatch) -> None:
    read = parsed(program(Random(op).randint, BUDGET, about=[op]))
    with quietly():
        try:
            found = left(monkeypatch, read, inputs_for(read, 0))
        except UnsupportedFeatureError:
            pytest.skip("refused by name")
        wanted = outcome(read)
        assert_within_declared_accuracy(read, 0, Outcome(tuple(found), wanted.scalars), wanted)


@pytest.mark.skipif(bool(triton_objection()), reason="needs Triton")
@pytest.mark.parametrize("op", some(COMPILED))
def test_triton_takes_the_kernels_of_random_programs(op: str) -> None:
    jobs = [Job(90, each.tries(90, is_aligned=aligned)) for each in kernels_of(op) or () for aligned in (True, False)]
    assert all(binary.cubin for binary in compiled(jobs))
