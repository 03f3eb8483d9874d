"""Exports: a program that `as_pto` writes computes the same, bit by bit, when its text is read back."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from property.exported import extents_of, run_exported
from property.programs import inputs_for, program
from property.running import SEEDS, Outcome, assert_same, outcome, parsed

from tilewright import pto
from tilewright.programs.pto_text.export import as_pto

pytestmark = pytest.mark.filterwarnings("ignore::tilewright.errors.DependentTurnsWarning")  # chance writes such, too


def check_export(text: str) -> bool:
    """Fail unless the PTO text of a program leaves what the program does; return whether there is one."""
    made = parsed(text)
    try:
        exported = as_pto(made)
    except pto.NoPtoError as error:
        assert error.help, f"refused without a help: {error}"
        return False
    entry = made["main"]
    for seed in SEEDS:
        expected, given = outcome(made, seed), inputs_for(made, seed)
        run_exported(exported, entry.name, given, extents_of(entry, given))
        found = tuple(each for each in given if isinstance(each, np.ndarray))
        assert_same(expected, Outcome(found, expected.scalars), f"seed {seed} of\n{exported}")
    return True


@pytest.mark.parametrize("number", range(12))
def test_a_program_computes_the_same_when_it_is_read_back(number: int) -> None:
    check_export(program(Random(number).randint, 40))


def test_a_program_about_sums_of_rows_has_a_text() -> None:
    assert check_export(program(Random(5).randint, 40, about=["tile.row_sum"]))
