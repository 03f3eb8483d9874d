"""Torch text: random programs, before and after all passes, compute in torch what the interpreter does."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from property.programs import inputs_for, program
from property.running import outcome, parsed

from tilewright.call.argument import is_array
from tilewright.call.frameworks import TORCH, array_of
from tilewright.core.program import Program
from tilewright.errors import ExecutionError, NoTorchError
from tilewright.passes.manager import PassManager
from tilewright.programs.torch_text.codegen import torch_codegen

pytest.importorskip("torch")


@pytest.mark.parametrize("number", range(24))
def test_a_random_program_computes_the_same_in_torch(number: int) -> None:
    check(program(Random(number).randint))


@pytest.mark.parametrize("number", range(4))
def test_windows_that_overlap_are_read_before_they_are_written_in_torch(number: int) -> None:
    check(in_place(Random(number)))


def in_place(random: Random) -> str:
    """Return a program that writes windows of a tensor, turned, shifted and changed, over each other."""
    lines: list[str] = []
    for _ in range(12):
        size = random.randint(2, 7)
        into, out_of = (
            ", ".join(f"{at}:{at + size}" for at in (random.randint(0, 8 - size), random.randint(0, 8 - size)))
            for _ in range(2)
        )
        form = random.choice(["{}", "pl.transpose({}, 0, 1)", "pl.add({}, 1.0)", "pl.transpose({}, 0, 1)"])
        lines.append(f"            x[{into}] = {form.format(f'x[{out_of}]')}")
    return "\n".join([*IN_PLACE, *lines])


IN_PLACE = (
    "import tilewright.language as pl", "", "",
    "@pl.program",
    "class P:",
    "    @pl.function(type=pl.FunctionType.Orchestration)",
    "    def main(self, x: pl.InOut[pl.Tensor[[8, 8], pl.FP32]]):",
    "        with pl.at(level=pl.Level.CORE_GROUP):",
)  # fmt: skip


def check(text: str) -> None:
    """Fail where torch does not compute what the interpreter does, before or after all passes."""
    source = parsed(text)
    try:
        expected = outcome(source, 1).tensors
    except ExecutionError:
        return
    for stage in (source, PassManager.get_strategy().run_passes(source)):
        try:
            found = tensors_of(stage, inputs_for(source, 1))
        except NoTorchError:
            continue
        for got, want in zip(found, expected, strict=True):
            near, far = (array.astype(np.float64) for array in (got, want))
            np.testing.assert_allclose(near, far, rtol=2e-2, atol=1e-3)  # rounding is followed, sums are not


def tensors_of(stage: Program, arguments: list[Any]) -> list[Any]:
    given = [TORCH.wrap(value) if is_array(value) else value for value in arguments]
    scope: dict[str, Any] = {}
    exec(torch_codegen(stage, check_shapes=True), scope)
    scope["main"](*given)
    return [array_of(value) for before, value in zip(arguments, given, strict=True) if is_array(before)]
