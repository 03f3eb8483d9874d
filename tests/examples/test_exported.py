"""The examples as PTO text: what has one reads back without a remark, and computes what the reference does."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
from examples.loading import LOADED
from property.exported import extents_of, run_exported

from tilewright import pto
from tilewright.programs.pto_text.export import as_pto

CASES = [(name, kernel) for name, example in LOADED.items() for kernel in example.kernels]
WITHOUT = {
    ("spmd", "by_index"): "a loop that counts down, or may do so",
    ("task_graph", "Standardize"): "`pl.array.create`",
}
"""The kernels that PTO text, or this export, has no words for, and which those are."""


@pytest.mark.parametrize(("name", "kernel"), CASES)
def test_an_example_read_back_computes_the_same(name: str, kernel: str) -> None:
    example = LOADED[name]
    program = example.program(example.kernels[kernel])
    if (name, kernel) in WITHOUT:
        with pytest.raises(pto.NoPtoError, match=WITHOUT[name, kernel]):
            as_pto(program)
        return
    inputs = example.make_inputs(0)
    expected = example.expected(inputs)
    entry = program.entries[-1]
    given = [array_of(each.clone()) if isinstance(each, torch.Tensor) else each for each in inputs]
    made = len(entry.params) - len(given)
    arguments: list[Any] = [*given, *(np.zeros_like(array_of(each)) for each in expected[len(expected) - made :])]
    run_exported(as_pto(program), entry.name, arguments, extents_of(entry, arguments))
    for found, wanted in zip(arguments[-len(expected) :], expected, strict=True):
        near, far = (array.astype(np.float64) for array in (found, array_of(wanted)))
        np.testing.assert_allclose(near, far, rtol=2e-2, atol=2e-2)


def array_of(tensor: torch.Tensor) -> Any:
    """Return a tensor's elements as an array of the same type."""
    if tensor.dtype == torch.bfloat16:
        bits: Any = tensor.contiguous().view(torch.int16).numpy()
        return bits.view(ml_dtypes.bfloat16)
    return tensor.contiguous().numpy()
