"""Native code: random programs leave what the interpreter leaves, within what their element types can hold."""

from __future__ import annotations

import warnings
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from numpy.typing import NDArray
from property.programs import inputs_for, programs
from property.running import QUICK, SEEDS, THOROUGH, Outcome, outcome, parsed

from tilewright.backends.cpu.native import NativeProgram, compile_native
from tilewright.core.program import Program
from tilewright.core.region import Region, whole
from tilewright.passes.manager import PassManager

TOLERANCE = {np.dtype(np.float32): 1e-4, np.dtype(np.float16): 4e-3, np.dtype(ml_dtypes.bfloat16): 3e-2}


def native(program: Program) -> NativeProgram:
    lowered = PassManager.get_strategy().run_passes(program)
    return NativeProgram(lowered, compile_native(lowered))


def native_outcome(program: Program, native: NativeProgram, seed: int) -> Outcome:
    """Return what native code computes from the arguments that belong to `seed`."""
    args = inputs_for(program, seed)
    returned = native.run(program.entries[0].name, [whole(a) if isinstance(a, np.ndarray) else a for a in args])
    return Outcome(
        tuple(a for a in args if isinstance(a, np.ndarray)), tuple(r for r in returned if not isinstance(r, Region))
    )


def assert_close(ours: NDArray[Any], theirs: NDArray[Any]) -> None:
    if ours.dtype.kind in "iub":
        np.testing.assert_array_equal(ours, theirs)
        return
    tolerance = TOLERANCE[ours.dtype]
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(ours.astype(np.float64), theirs.astype(np.float64), rtol=tolerance, atol=tolerance)


def check(text: str) -> None:
    program = parsed(text)
    compiled = native(program)
    for seed in SEEDS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            expected = outcome(program, seed)
        ours = native_outcome(program, compiled, seed)
        np.testing.assert_allclose(ours.scalars, expected.scalars, rtol=1e-4)
        for a, b in zip(ours.tensors, expected.tensors, strict=True):
            assert_close(a, b)


@settings(QUICK, max_examples=200)
@given(text=programs())
def test_native_code_gives_what_the_interpreter_gives(text: str) -> None:
    check(text)


@pytest.mark.long
@settings(THOROUGH)
@given(text=programs())
def test_native_code_gives_what_the_interpreter_gives_thoroughly(text: str) -> None:
    check(text)
