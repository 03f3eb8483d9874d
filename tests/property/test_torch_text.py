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
    source = parsed(program(Random(number).randint))
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
