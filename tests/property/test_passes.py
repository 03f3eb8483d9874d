"""Passes: each preserves what a program computes and the rules of the IR; a second run changes nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from property.programs import programs
from property.running import QUICK, SEEDS, assert_same, outcome, parsed

from tilewright.core.equality import assert_structural_equal
from tilewright.core.program import Program
from tilewright.core.verify import verify
from tilewright.interpret.machine import Machine
from tilewright.passes.pipeline import DEFAULT

pytestmark = pytest.mark.filterwarnings("ignore::tilewright.errors.DependentTurnsWarning")  # chance writes such, too


def check_meaning(text: str) -> None:
    """Fail unless every pass keeps the rules of the IR and what a program computes.

    Each is asked about the arguments of one seed, the last about all of them.
    """
    program = parsed(text)
    verify(program)
    expected = [outcome(program, seed) for seed in SEEDS]
    is_ssa = False
    for number, step in enumerate(DEFAULT):
        before, program = program, step.run(program)
        is_ssa = is_ssa or step.gives_ssa
        verify(program, ssa=is_ssa)
        if program is before and number < len(DEFAULT) - 1:
            continue
        for seed in SEEDS if number == len(DEFAULT) - 1 else [SEEDS[number % len(SEEDS)]]:
            assert_same(expected[seed], outcome(program, seed, Machine), f"after {step.name}, seed {seed}")


def lowered(program: Program) -> Program:
    for step in DEFAULT:
        program = step.run(program)
    return program


def check_idempotence(text: str) -> None:
    once = lowered(parsed(text))
    assert_structural_equal(lowered(once), once)


@QUICK
@given(programs())
def test_every_pass_preserves_what_a_program_computes(text: str) -> None:
    check_meaning(text)


@QUICK
@given(programs())
def test_passes_leave_their_own_result_alone(text: str) -> None:
    check_idempotence(text)
