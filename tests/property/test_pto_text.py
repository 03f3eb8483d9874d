"""PTO text: random programs that have one compute the same when it is read back."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from property.programs import inputs_for, program
from property.running import outcome, parsed

from tilewright import ir, pto
from tilewright.call.argument import is_array
from tilewright.core.expr import Symbol
from tilewright.core.program import Program
from tilewright.core.types import TensorType
from tilewright.errors import ExecutionError
from tilewright.programs.pto_text.export import as_pto
from tilewright.pto.lower import lower
from tilewright.pto.verify import verify


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_random_programs_read_back_compute_the_same(first: int) -> None:
    ran = sum(_is_same(parsed(program(Random(number).randint, 10))) for number in range(first, first + 10))
    assert ran


def _is_same(source: Program) -> bool:
    """Return whether a program has a text, which must compute the same."""
    try:
        text = as_pto(source)
        expected = outcome(source, 1).tensors
    except (pto.NoPtoError, ExecutionError):
        return False
    module = pto.parse(text)
    verify(module)
    (func,) = module.funcs()
    arguments: list[Any] = inputs_for(source, 1)
    extents = _extents(source, arguments)
    more = [extents[argument.name] for argument in func.arguments[len(arguments) :]]
    flat = [_flat(value) for value in arguments]
    ir.compile(lower(module, func, target="a5"), platform="interpret")(1, *flat, *more)
    for got, want in zip((value for value in arguments if is_array(value)), expected, strict=True):
        near, far = (array.astype(np.float64) for array in (got, want))
        np.testing.assert_allclose(near, far, rtol=2e-2, atol=1e-3, err_msg=text)
    return True


def _flat(value: Any) -> Any:
    return value.reshape(-1) if hasattr(value, "reshape") else value


def _extents(source: Program, arguments: list[Any]) -> dict[str, int]:
    """Return the extents that only a call knows, by name."""
    (entry,) = source.entries
    pairs = zip(entry.params, arguments, strict=True)
    tensors = [(p.type, a.shape) for p, a in pairs if isinstance(p.type, TensorType) and is_array(a)]
    both = [pair for type_, shape in tensors for pair in zip(type_.shape, shape, strict=True)]
    return {extent.name: size for extent, size in both if isinstance(extent, Symbol)}
