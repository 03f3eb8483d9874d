"""PTO text: random programs that have one compute the same when it is read back."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from property.exported import extents_of, run_exported
from property.programs import inputs_for, program
from property.running import outcome, parsed
from property.ways import covered

from tilewright import pto
from tilewright.call.argument import is_array
from tilewright.core.program import Program
from tilewright.errors import ExecutionError
from tilewright.programs.pto_text.export import as_pto


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_random_programs_read_back_compute_the_same(first: int) -> None:
    ran = sum(_is_same(parsed(program(Random(number).randint, 10))) for number in range(first, first + 10))
    assert ran > 3  # about three of four have a text, and most others a function that PTO lacks


SLICES = 8


@pytest.mark.parametrize("first", range(SLICES))
def test_programs_about_each_op_read_back_compute_the_same_or_name_what_has_no_words(first: int) -> None:
    for number, name in [*enumerate(covered())][first::SLICES]:
        _is_same(parsed(program(Random(number).randint, 6, about=[name])))


def _is_same(source: Program) -> bool:
    """Return whether a program has a text, which must compute the same; what has none is shown with its line."""
    try:
        text = as_pto(source)
        expected = outcome(source, 1).tensors
    except pto.NoPtoError as error:
        assert error.place.is_known and "^" in str(error) and "help: " in str(error), error
        return False
    except ExecutionError:
        return False
    arguments: list[Any] = inputs_for(source, 1)
    run_exported(text, "main", arguments, extents_of(source["main"], arguments))
    for got, want in zip((value for value in arguments if is_array(value)), expected, strict=True):
        exact = (array if array.dtype.kind in "iub" else array.astype(np.float64) for array in (got, want))
        np.testing.assert_array_equal(*exact, err_msg=text)
    return True
