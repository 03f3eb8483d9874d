"""Torch texts: kernels written down for torch, held against what the interpreter leaves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from ops.native import assert_converted
from ops.sampling import Use

from tilewright.call.argument import is_array
from tilewright.call.frameworks import TORCH, array_of
from tilewright.core.op import OPS
from tilewright.core.program import Function
from tilewright.dtypes import INDEX, TORCH_NAMES, UINT64, DataType
from tilewright.errors import NoTorchError
from tilewright.programs.torch_text.codegen import torch_codegen

KNOWN = {INDEX, *TORCH_NAMES.values()} - {UINT64}
"""The element types that torch computes with."""


def can_be_said(use: Use) -> bool:
    """Return whether torch has all the element types of a use."""
    types = [use.type, *(given.tensor.type for _, given in use.given if given.tensor is not None)]
    named = {given.value for _, given in use.given if isinstance(given.value, DataType)}
    return named | {getattr(type_, "dtype", INDEX) for type_ in types} <= KNOWN


def check_torch(function: Function, arguments: Sequence[Any], left: Sequence[Any], ulp: float) -> None:
    """Fail unless the text of a function leaves what the interpreter left; what it refuses, it names."""
    try:
        text = torch_codegen(function, check_shapes=True)
    except NoTorchError as error:
        assert any(f"`{name}`" in str(error) for name in OPS), str(error)
        pytest.skip(str(error))
    given = [TORCH.wrap(value) if is_array(value) else value for value in arguments]
    scope: dict[str, Any] = {}
    exec(text, scope)
    try:
        scope[function.name](*given)
    except RuntimeError as error:
        if "storage_offset() must be divisible" in str(error):  # torch looks at memory in whole elements
            return
        raise
    for param, want, got in zip(function.params, left, given, strict=True):
        if is_array(want):
            try:
                assert_converted(array_of(got), want, ulp)
            except AssertionError as error:
                raise AssertionError(f"{param.name_hint} of\n{function}\n{error}") from None
