"""Steps: whatever a program computes, it computes line by line, its parallel turns in any order."""

from __future__ import annotations

from functools import partial
from random import Random

import pytest
from property.programs import program
from property.running import assert_same, outcome, parsed

from tilewright.frontend.steps import stepwise
from tilewright.interpret.machine import Machine
from tilewright.interpret.stepper import SteppingMachine

pytestmark = pytest.mark.filterwarnings("ignore::tilewright.errors.DependentTurnsWarning")  # chance writes such, too


def check_steps(text: str) -> None:
    """Fail unless a program computes the same by its lines as by its statements."""
    expected = outcome(parsed(text), machine=Machine)
    with stepwise():
        lines = parsed(text)
    for seed in (None, 1):
        assert_same(expected, outcome(lines, machine=partial(SteppingMachine, seed=seed)), f"with seed {seed}")


@pytest.mark.parametrize("number", range(12))
def test_a_program_computes_the_same_line_by_line(number: int) -> None:
    check_steps(program(Random(number).randint, 60))
