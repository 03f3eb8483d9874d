"""The examples as PTO text: what has one reads back without a remark, and computes what the reference does."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
from examples.loading import LOADED, several
from examples.test_debug import FILES, INPUTS, copied, gallery_inputs
from property.exported import extents_of, run_exported

import tilewright.language as pl
from tilewright import pto
from tilewright.frontend.kernels import KernelKind
from tilewright.programs.pto_text.export import as_pto
from tilewright.runtime import RunConfig

INTERPRETED = RunConfig(platform="interpret")
CASES = [(name, kernel) for name, example in LOADED.items() for kernel in example.kernels]
SILENT = {
    "w8a32": r"quantized\.py:24:.*more than the 65536 of `left`",
}
"""The kernels of the gallery and the models that PTO has no memory for: at which line, and why."""
ROUNDED = {"flash_attention"}
"""The kernels that change a sum between its products, which then are added outside of the cube, rounded once more."""


@pytest.mark.parametrize(("name", "kernel"), CASES)
def test_an_example_read_back_computes_the_same(name: str, kernel: str) -> None:
    example = LOADED[name]
    program = example.program(example.kernels[kernel])
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


def kernels_of(path: Path) -> dict[str, tuple[Any, pl.JITFunction]]:
    """Return the kernels of a file by name, each with its module."""
    module = importlib.import_module(path.stem)
    found = [(name, value) for name, value in vars(module).items() if isinstance(value, pl.JITFunction)]
    return {name: (module, value) for name, value in found if value.kind is KernelKind.ENTRY}


@pytest.mark.parametrize("path", [p for p in FILES if p.stem not in ("timing", "paging")], ids=lambda p: p.stem)
def test_the_gallery_and_the_models_read_back_compute_the_same(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(path.parent), *sys.path])
    for name, (module, kernel) in kernels_of(path).items():
        inputs = INPUTS[name](module) if name in INPUTS else gallery_inputs(module, name)
        program = kernel.specialize(*inputs).program
        if name in SILENT:
            with pytest.raises(pto.NoPtoError, match=SILENT[name]):
                as_pto(program)
            continue
        theirs = copied(inputs)
        returned = [each for each in several(kernel(*theirs, config=INTERPRETED)) if each is not None]
        arguments: list[Any] = [array_of(each) if isinstance(each, torch.Tensor) else each for each in copied(inputs)]
        entry = program.entries[-1]
        made = len(entry.params) - len(arguments)
        wanted = [*theirs, *returned[len(returned) - made :]]
        arguments += [np.zeros_like(array_of(each)) for each in wanted[len(theirs) :]]
        run_exported(as_pto(program), entry.name, arguments, extents_of(entry, arguments))
        pairs = [(found, each) for found, each in zip(arguments, wanted, strict=True) if isinstance(each, torch.Tensor)]
        for found, each in pairs:
            if name in ROUNDED:
                np.testing.assert_allclose(found, array_of(each), rtol=1e-5, atol=1e-6, err_msg=name)
            else:
                np.testing.assert_array_equal(found, array_of(each), err_msg=name)


def array_of(tensor: torch.Tensor) -> Any:
    """Return a tensor's elements as an array of the same type."""
    if tensor.dtype == torch.bfloat16:
        bits: Any = tensor.contiguous().view(torch.int16).numpy()
        return bits.view(ml_dtypes.bfloat16)
    return tensor.contiguous().numpy()
