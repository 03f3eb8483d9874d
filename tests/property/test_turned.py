"""Parameters that lie otherwise: random programs that take their tensors on their side, or in steps, leave the same."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

import numpy as np
from hypothesis import given, note, settings
from hypothesis import strategies as st
from ops.launched import launched
from property.accuracy import assert_within_declared_accuracy
from property.guards import FencedArray, Place
from property.native import compiled_natively, lowered, quietly
from property.product_grids import Draw
from property.programs import inputs_for, program
from property.running import QUICK, SEEDS, Outcome, outcome, parsed

from tilewright.backends.host import HostProgram
from tilewright.core.program import Program
from tilewright.core.types import TensorType
from tilewright.frontend.turned_parameters import stepped, turned


def test_programs_leave_the_same_in_tensors_on_their_side() -> None:
    tried: list[bool] = []

    @settings(QUICK, max_examples=60)
    @given(st.integers(1, 1 << 64))
    def every(number: int) -> None:
        text = program(Random(f"turned {number}").randint, 14)
        note(text)
        tried.append(check(text))

    every()
    assert len(tried) == 60 and sum(tried) >= 20


def test_programs_leave_the_same_in_tensors_in_steps_and_touch_nothing_between() -> None:
    tried: list[bool] = []

    @settings(QUICK, max_examples=60)
    @given(st.integers(1, 1 << 64))
    def every(number: int) -> None:
        draw = Random(f"stepped {number}").randint
        text = program(draw, 14)
        note(text)
        tried.append(check_steps(text, draw))

    every()
    assert len(tried) == 60 and sum(tried) >= 20


def check_steps(text: str, draw: Draw) -> bool:
    """Fail unless a program whose tensors lie in steps leaves the same; return whether it has any that can be."""
    made = parsed(text)
    tensors = [param.name_hint for param in made["main"].params if isinstance(param.type, TensorType)]
    steps = {name: draw(2, 9) for name in tensors if draw(0, 2)}
    other = stepped(made, "main", steps)
    if other is made:
        return False
    with quietly():
        native = compiled_natively(lowered(other)[0], text, "a stepped program")
        for seed in SEEDS:
            expected = outcome(made, seed)
            found = run_in_steps(made, native, seed, steps)
            assert_within_declared_accuracy(made, seed, found, expected)
    return True


def run_in_steps(made: Program, native: HostProgram, seed: int, steps: Mapping[str, int]) -> Outcome:
    """Return what a program leaves in tensors in steps, of which the last element ends where a page traps."""
    names = [param.name_hint for param in made["main"].params]
    pairs = zip(names, inputs_for(made, seed), strict=True)
    given = [
        FencedArray(arg, Place.END, packed=True, step=steps.get(name, 1)) if isinstance(arg, np.ndarray) else arg
        for name, arg in pairs
    ]
    returned = launched(native, "main", [arg.array if isinstance(arg, FencedArray) else arg for arg in given])
    fenced = [arg for arg in given if isinstance(arg, FencedArray)]
    for arg in fenced:
        arg.assert_untouched_around()
    scalars = tuple(value for value in returned if not isinstance(value, np.ndarray))
    return Outcome(tuple(np.array(arg.array) for arg in fenced), scalars)


def check(text: str) -> bool:
    """Fail unless a program whose tensors are turned leaves the same; return whether it has any that can be."""
    made = parsed(text)
    main = made["main"]
    tensors = {p.name_hint: p.type for p in main.params if isinstance(p.type, TensorType)}
    other = turned(made, "main", [name for name, type_ in tensors.items() if len(type_.shape) > 1])
    if other is made:
        return False
    with quietly():
        native = compiled_natively(lowered(other)[0], text, "a turned program")
        for seed in SEEDS:
            expected = outcome(made, seed)
            assert_within_declared_accuracy(made, seed, run(made, other, native, seed), expected)
    return True


def run(made: Program, other: Program, native: HostProgram, seed: int) -> Outcome:
    """Return what a turned program leaves in tensors that lie so, shown as they were before."""
    names = [param.name_hint for param in made["main"].params]
    sides = [name in other["main"].turned for name in names]
    given = inputs_for(made, seed)
    lying = [
        np.ascontiguousarray(np.swapaxes(arg, -1, -2)) if is_turned else arg
        for arg, is_turned in zip(given, sides, strict=True)
    ]
    returned = launched(native, "main", lying)
    shown = [np.swapaxes(arg, -1, -2) if is_turned else arg for arg, is_turned in zip(lying, sides, strict=True)]
    scalars = tuple(value for value in returned if not isinstance(value, np.ndarray))
    return Outcome(tuple(np.array(arg) for arg in shown if isinstance(arg, np.ndarray)), scalars)
