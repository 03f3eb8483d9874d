"""Running generated programs: parsed quietly, interpreted on copies of their arguments, compared bit by bit."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import HealthCheck, Phase, settings
from numpy.typing import NDArray
from property.programs import inputs_for

import tilewright.language as pl
from tilewright.core.program import Program
from tilewright.core.region import Region, whole
from tilewright.errors import DroppedWriteWarning
from tilewright.interpret.checked import CheckedMachine
from tilewright.interpret.machine import Machine

HEALTH = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example)
"""Programs are large, and checking one takes a while."""

QUICK = settings(
    deadline=None,
    suppress_health_check=HEALTH,
    max_examples=100,
    derandomize=True,
    phases=(Phase.explicit, Phase.generate),
)
"""What every run of the tests does: the same programs each time, and no minutes spent on making one smaller."""


@dataclass(frozen=True)
class Outcome:
    """What a program left in its tensors, and the scalars it returned."""

    tensors: tuple[NDArray[Any], ...]
    scalars: tuple[Any, ...]


def parsed(text: str) -> Program:
    """Return the program a text says."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DroppedWriteWarning)
        program = pl.parse(text)
    assert isinstance(program, Program)
    return program


def outcome(program: Program, seed: int = 0, machine: Callable[[Program], Machine] = CheckedMachine) -> Outcome:
    """Return what a program computes from the arguments that belong to `seed`; RaceError where its turns meet."""
    given = inputs_for(program, seed)
    args = [whole(a) if isinstance(a, np.ndarray) else a for a in given]
    returned = machine(program).run("main", args)
    return Outcome(
        tuple(a for a in given if isinstance(a, np.ndarray)), tuple(r for r in returned if not isinstance(r, Region))
    )


def assert_same(expected: Outcome, actual: Outcome, where: str = "") -> None:
    """Fail unless two outcomes are equal to the bit; any NaN equals any other."""
    assert expected.scalars == actual.scalars, where
    for position, (a, b) in enumerate(zip(expected.tensors, actual.tensors, strict=True)):
        assert _bits(a) == _bits(b), f"{where}: tensor {position} differs:\n{a}\n{b}"


def _bits(array: NDArray[Any]) -> bytes:
    if array.dtype.kind in "iub":
        return array.tobytes()
    return np.where(np.isnan(array), np.asarray(0.5, array.dtype), array).tobytes() + np.isnan(array).tobytes()


SEEDS: Sequence[int] = (0, 1)
"""The arguments each program is run with."""
