"""Every op as PTO text: its example exports and gives the same bits when it is read back, or is one that PTO lacks."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ops.kernels import launch
from ops.test_every_op import every_example, example
from property.exported import run_exported

from tilewright import pto
from tilewright.core.op import OPS, Kind, OpSpec, specs
from tilewright.frontend.programs import as_program
from tilewright.programs.pto_text.body import WRITERS
from tilewright.programs.pto_text.export import as_pto
from tilewright.programs.pto_text.unsaid import UNSAID, unsaid
from tilewright.programs.pto_text.words import ALONE
from tilewright.programs.pto_text.words import OPS as SAID

SPECIAL = [0.0, -0.0, 0.3, -0.3, 0.5, -0.5, 1.5, -1.5, np.inf, -np.inf, np.nan]


def ordinary() -> Any:
    """Return numbers that every function takes."""
    return np.random.default_rng(1).uniform(0.5, 2.0, (3, 16, 32)).astype(np.float32)


def special() -> Any:
    """Return numbers of both signs, among them zeros, halves, infinities and what is none."""
    rng = np.random.default_rng(7)
    made = rng.uniform(-2, 2, (3, 16, 32)).astype(np.float32)
    return np.where(rng.random(made.shape) < 0.3, rng.choice(np.array(SPECIAL, np.float32), made.shape), made)


@every_example
def test_an_example_gives_the_same_bits_when_it_is_read_back(spec: OpSpec) -> None:
    function = example(spec)
    program = as_program(function)
    if spec.name in UNSAID:
        with pytest.raises(pto.NoPtoError, match=UNSAID[spec.name].why):
            as_pto(program)
        return
    text = as_pto(program)
    for draw in (ordinary, special):
        wanted: list[Any] = [*draw(), np.ones((16, 16), np.float32)]
        found = [array.copy() for array in wanted]
        with np.errstate(all="ignore"):
            launch(function, *wanted)
            run_exported(text, program.entries[-1].name, found, {})
        for got, want in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(*map(_bits, (got, want)), err_msg=text)


def _bits(array: Any) -> Any:
    """Return the bits of floats; those of what is no number say nothing."""
    made: Any = np.where(np.isnan(array), np.float32(np.nan), array)
    return made.view(np.uint32)


def test_every_op_of_tiles_is_said_or_has_a_reason() -> None:
    data = [op for op in OPS.values() if op.kind is not Kind.SCALAR and op.kind is not Kind.TENSOR]
    silent = [op.name for op in data if not op.spec.expand and op.name not in {**SAID, **ALONE} and unsaid(op) is None]
    assert WRITERS and not silent


def test_nothing_is_refused_that_does_not_exist() -> None:
    assert {spec.name for spec in specs()} >= {*UNSAID}


def test_the_page_names_the_functions_that_are_refused() -> None:
    page = (Path(__file__).parents[2] / "docs" / "pto.md").read_text()
    listed = page.partition("the functions that PTO has no op for, which")[2]
    assert re.findall(r"`(\w+)`", listed.partition("The export adds")[0]) == [*UNSAID]
