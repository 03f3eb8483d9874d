"""The generator itself: its programs parse, run, and depend on nothing unspecified."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from property.programs import programs
from property.running import QUICK, SEEDS, assert_same, outcome, parsed

from tilewright.core import region
from tilewright.core.op import Kind, specs
from tilewright.core.region import Array
from tilewright.dtypes import DataType
from tilewright.ops import memory


def other_blank(shape: Sequence[int], dtype: DataType) -> Array:
    """Return storage that holds something other than what the interpreter puts into unwritten elements."""
    return np.full(tuple(shape), 3, dtype.numpy)


@QUICK
@given(text=programs())
def test_programs_give_the_same_whatever_unwritten_memory_holds(text: str) -> None:
    program = parsed(text)
    for seed in SEEDS:
        expected = outcome(program, seed)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(region, "blank", other_blank)
            patch.setattr(memory, "blank", other_blank)
            assert_same(expected, outcome(program, seed))


def test_every_op_of_a_family_takes_part() -> None:
    from property.kernels import FAMILIES, callable_specs

    found: set[Any] = {s for kind in (Kind.TILE, Kind.TENSOR) for s in callable_specs(kind)}
    assert {s for s in specs() if s.family in FAMILIES} <= found
