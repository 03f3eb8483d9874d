"""Indexed kernels: each run natively on windows of larger arrays and by the interpreter, which have to agree."""

from __future__ import annotations

from typing import Any

import numpy as np
from ops.kernels import Array, inout, kernel, scalar, tensor
from ops.native import Native

import tilewright.language as pl
from tilewright.dtypes import DataType, from_numpy
from tilewright.errors import ExecutionError


def _annotated(name: str, value: Array | int) -> str:
    if isinstance(value, int):
        return scalar(pl.INDEX)
    dtype = from_numpy(value.dtype)
    return (inout if name.startswith("out") else tensor)(dtype, *value.shape)


def compiled(body: str, **given: Array | int) -> Native:
    """Return a kernel over arrays and indices, natively and as the interpreter runs it; `out...` are written."""
    return Native(kernel(body, **{name: _annotated(name, value) for name, value in given.items()}))


def computed(body: str, **given: Array | int) -> Any:
    """Return what a kernel leaves in `out`, or in all that are called so; both ways to run it agree."""
    found = compiled(body, **given).run(list(given.values()))
    arrays = [name for name, value in given.items() if not isinstance(value, int)]
    for name, (got, want) in zip(arrays, found, strict=True):
        assert got.tobytes() == want.tobytes(), f"{name}: {got} differs from {want}"
    outputs = [np.array(got) for name, (got, _) in zip(arrays, found, strict=True) if name.startswith("out")]
    return outputs[0] if len(outputs) == 1 else outputs


def refused(body: str, **given: Array | int) -> list[str]:
    """Return what both ways to run a kernel object to."""
    native = compiled(body, **given)
    errors = native.errors(list(given.values()))
    assert all(isinstance(error, ExecutionError) for error in errors), errors
    return [str(error) for error in errors]


def sample(rng: np.random.Generator, dtype: DataType, *shape: int) -> Any:
    """Return elements of a type, NaN and zeros of both signs among the floats."""
    raw: Any = rng.integers(0, 256, (*shape, dtype.get_byte()), dtype=np.uint8)
    if not dtype.is_float():
        return raw.view(dtype.numpy)[..., 0]
    values: Any = rng.normal(0, 3, shape)
    values.flat[0], values.flat[-1] = np.nan, -0.0
    return values.astype(dtype.numpy)
