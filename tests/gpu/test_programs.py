"""Random programs three ways: the interpreter, native code and the GPU, which leaves the same bits each time."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from gpu.device import Given
from property.accuracy import assert_within_declared_accuracy
from property.native import PACKED, check, lowered, named, quietly
from property.programs import inputs_for, program
from property.running import SEEDS, Outcome, outcome, parsed
from property.ways import covered

from tilewright import ir
from tilewright.call.argument import is_array
from tilewright.core.program import Program
from tilewright.errors import UnsupportedFeatureError
from tilewright.programs.program import CompiledProgram

torch: Any = pytest.importorskip("torch")

TOGETHER, BUDGET = 8, 20
"""Programs of a test, each about one op, and about how many statements they have beside it."""
APART = -(-len(covered()) // TOGETHER)
GROUPS = [covered()[start::APART] for start in range(APART)]
REFUSED = ("no CUDA recipe for", "bytes of shared memory, and a block has at most")
OPEN = ("atomic", "rand")
"""In programs with such words, what threads do first may show in floats."""


@pytest.mark.parametrize("ops", GROUPS, ids=" ".join)
def test_random_programs_do_what_the_interpreter_does(ops: list[str]) -> None:
    refused = 0
    for op in ops:
        text = program(Random(op).randint, BUDGET, about=[op])
        try:
            check_on_device(text, f"program(Random({op!r}).randint, {BUDGET}, about=[{op!r}])")
        except UnsupportedFeatureError as error:
            assert any(words in str(error) for words in REFUSED), text
            refused += 1
    if refused == len(ops):
        pytest.skip("all of them are refused by name")


def check_on_device(text: str, origin: str) -> None:
    """Fail unless a program leaves on the GPU, twice, what the interpreter and native code leave."""
    read = parsed(text)
    compiled = ir.compile(read, platform="cuda")
    check(text, origin)
    is_packed = bool(lowered(read)[1] & PACKED)
    with quietly(), named(text, f"{origin}, on the GPU"):
        for seed in SEEDS:
            packed = is_packed or seed % 2 == 1
            first, second = (on_device(read, compiled, seed, packed) for _ in range(2))
            try:
                assert_within_declared_accuracy(read, seed, first, outcome(read, seed))
            except AssertionError as error:
                raise AssertionError(f"{origin}, seed {seed}:\n{text}") from error
            if not any(word in text for word in OPEN):
                assert [x.tobytes() for x in first.tensors] == [x.tobytes() for x in second.tensors], text


def on_device(read: Program, compiled: CompiledProgram, seed: int, packed: bool) -> Outcome:
    """Return what a program leaves on the GPU of the arguments that belong to a seed."""
    given = [Given(arg, packed) for arg in inputs_for(read, seed)]
    returned: Any = compiled(*(each.value for each in given))
    torch.cuda.synchronize()
    left = tuple(each.after() for each in given if is_array(each.arg))
    every: list[Any] = [*returned] if isinstance(returned, tuple) else [returned]
    scalars = tuple(each for each in every if each is not None and not isinstance(each, torch.Tensor))
    return Outcome(tuple(np.asarray(each) for each in left), scalars)
