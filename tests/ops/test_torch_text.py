"""Torch text: every use of every op that torch can say computes what the interpreter does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from zlib import crc32

import pytest
from ops.kernels import launch
from ops.native import assert_converted
from ops.sampling import Use
from ops.test_uses import SHAPED, TOGETHER, Kernel, found

from tilewright.call.argument import is_array
from tilewright.call.frameworks import TORCH, array_of
from tilewright.core.op import Op
from tilewright.dtypes import INDEX, TORCH_NAMES, UINT64, DataType
from tilewright.errors import NoTorchError
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
    uses = [use for use in found(op, crc32(op.name.encode()), 2, 1) if can_be_said(use)]
    for first in range(0, len(uses), TOGETHER):
        try:
            check(op, uses[first : first + TOGETHER])
        except NoTorchError as error:
            assert op.name in str(error)
            pytest.skip(str(error))


def check(op: Op, uses: Sequence[Use]) -> None:
    together = Kernel(op, uses)
    wanted, text = together.arguments, torch_codegen(together.function, check_shapes=True)
    launch(together.function, *wanted)
    given = [TORCH.wrap(value) if is_array(value) else value for value in together.arguments]
    scope: dict[str, Any] = {}
    exec(text, scope)
    try:
        scope[together.function.name](*given)
    except RuntimeError as error:
        if "storage_offset() must be divisible" not in str(error):  # torch looks at memory in whole elements
            raise
        return
    for name, want, got in zip(together.values, wanted, given, strict=True):
        if is_array(want):
            try:
                assert_converted(array_of(got), want, max(op.spec.ulp, 1))
            except AssertionError as error:
                raise AssertionError(f"{name} of\n{together.function}\n{error}") from None
