"""Torch text: every use of every op that torch can say computes what the interpreter does."""

from __future__ import annotations

from contextlib import suppress
from random import Random
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from ops.kernels import launch
from ops.native import assert_converted
from ops.sampling import Sampler, Use
from ops.test_every_op import every_example, example
from ops.test_uses import SHAPED, TOGETHER, Kernel, can_be_kept, is_determined, runnable

from tilewright.call.argument import is_array
from tilewright.call.frameworks import TORCH, array_of
from tilewright.core.op import OPS, Op, OpSpec
from tilewright.core.program import Function
from tilewright.dtypes import FP64, INDEX, TORCH_NAMES, UINT64, DataType
from tilewright.errors import ExecutionError, NoTorchError
from tilewright.programs.torch_text.codegen import torch_codegen

pytest.importorskip("torch")
KNOWN = {INDEX, *TORCH_NAMES.values()} - {UINT64}
"""The element types that torch computes with."""


def can_be_said(use: Use) -> bool:
    """Return whether torch has all the element types of a use."""
    types = [use.type, *(given.tensor.type for _, given in use.given if given.tensor is not None)]
    named = {given.value for _, given in use.given if isinstance(given.value, DataType)}
    return named | {getattr(type_, "dtype", INDEX) for type_ in types} <= KNOWN


@pytest.mark.parametrize("op", SHAPED, ids=lambda op: op.name)
def test_torch_text_computes_what_the_interpreter_does(op: Op) -> None:
    rng = Random(crc32(op.name.encode()))
    uses = Sampler(op, rng).uses(1, 1)
    said = [use for use in uses if can_be_kept(use) and is_determined(use) and can_be_said(use)]
    said = rng.sample(said, min(len(said), 2 * TOGETHER))
    for first in range(0, len(said), TOGETHER):
        group = runnable(op, said[first : first + TOGETHER])
        try:
            check_uses(op, group)
        except ExecutionError:  # together they get other numbers, which as indices the interpreter may refuse
            for use in group:
                with suppress(ExecutionError):
                    check_uses(op, [use])


def check_uses(op: Op, uses: list[Use]) -> None:
    if not uses:
        return
    together = Kernel(op, uses)
    check(together.function, together.arguments, max(op.spec.accuracy(FP64), 1), op.name)


@every_example
def test_the_example_of_an_op_is_written_down_or_refused_by_name(spec: OpSpec) -> None:
    rng = np.random.default_rng(1)
    arrays = [rng.uniform(0.5, 2.0, (16, 32)).astype(np.float32) for _ in range(3)]
    names = [f"{kind.value}.{spec.name}" for kind in spec.kinds]
    check(example(spec), [*arrays, np.ones((16, 16), np.float32)], max(spec.ulp, 1), *names)


def check(function: Function, arguments: list[Any], ulp: float, *names: str) -> None:
    """Fail unless the text of a function leaves what the interpreter does; what it refuses, it names."""
    try:
        text = torch_codegen(function, check_shapes=True)
    except NoTorchError as error:
        assert any(f"`{name}`" in str(error) for name in OPS), f"{names}: {error}"
        pytest.skip(str(error))
    wanted = [np.array(value) if is_array(value) else value for value in arguments]
    launch(function, *wanted)
    given = [TORCH.wrap(value) if is_array(value) else value for value in arguments]
    scope: dict[str, Any] = {}
    exec(text, scope)
    try:
        scope[function.name](*given)
    except RuntimeError as error:
        if "storage_offset() must be divisible" in str(error):  # torch looks at memory in whole elements
            return
        raise
    for param, want, got in zip(function.params, wanted, given, strict=True):
        if is_array(want):
            try:
                assert_converted(array_of(got), want, ulp)
            except AssertionError as error:
                raise AssertionError(f"{param.name_hint} of\n{function}\n{error}") from None
