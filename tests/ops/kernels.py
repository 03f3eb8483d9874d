"""Kernels from a few lines of text, run on a target."""

from __future__ import annotations

import textwrap
from functools import lru_cache
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

import tilewright.language as pl
from tilewright import ir
from tilewright.core.enums import ParamDirection
from tilewright.core.program import Function
from tilewright.core.region import whole
from tilewright.core.stmt import AssignStmt
from tilewright.core.types import TensorType, Type, static_shape
from tilewright.dtypes import DataType
from tilewright.frontend.programs import as_program
from tilewright.interpret import machine
from tilewright.programs.program import CompiledProgram

Array: TypeAlias = NDArray[Any]

INTERPRETER = "interpret"
TARGET = INTERPRETER
"""Where kernels run: on the interpreter, unless a test says that it runs on every target."""

on_the_interpreter = pytest.mark.parametrize("target", [INTERPRETER], indirect=True)
"""Marks tests of what only the interpreter holds: it rounds a sum once, and looks at what nobody uses, too."""

_formats: Any = ml_dtypes  # its stubs leave `finfo` half typed
bfloat16 = np.dtype(ml_dtypes.bfloat16)


def tensor(dtype: DataType, *shape: int | str) -> str:
    """Return the annotation of a tensor parameter; a name among the extents is a dynamic one."""
    return f"pl.Tensor[[{', '.join(map(str, shape))}], pl.{dtype.symbol}]"


def out(dtype: DataType, *shape: int | str) -> str:
    """Return the annotation of a tensor the kernel writes."""
    return f"pl.Out[{tensor(dtype, *shape)}]"


def inout(dtype: DataType, *shape: int | str) -> str:
    """Return the annotation of a tensor the kernel reads and writes."""
    return f"pl.InOut[{tensor(dtype, *shape)}]"


def scalar(dtype: DataType) -> str:
    """Return the annotation of a scalar parameter."""
    return f"pl.Scalar[pl.{dtype.symbol}]"


def kernel(body: str, **parameters: str) -> Function:
    """Return the InCore function with these statements and annotated parameters."""
    signature = ", ".join(f"{name}: {annotation}" for name, annotation in parameters.items())
    statements = textwrap.indent(textwrap.dedent(body).strip(), "    ")
    return parsed(f"@pl.function(type=pl.FunctionType.InCore)\ndef kernel({signature}):\n{statements}\n")


@lru_cache(maxsize=64)
def parsed(text: str) -> Function:
    """Return the function that a text declares, the same one for tests that differ in what they run it on."""
    function = pl.parse(text)
    assert isinstance(function, Function)
    return function


def type_of(function: Function, name: str) -> Type:
    """Return the type of the local that a statement of the function's body binds to `name`."""
    found = [s.var.type for s in function.body if isinstance(s, AssignStmt) and s.var.name_hint == name]
    return found[-1]


def launch(function: Function, *args: Array | float) -> None:
    """Run a kernel on all of its arguments, where the `on_target` fixture says; tensors are written in place."""
    if TARGET == INTERPRETER:
        machine.run(as_program(function), function.name, [whole(a) if isinstance(a, np.ndarray) else a for a in args])
    elif TARGET == "cuda":
        from gpu.device import launch_on_device

        launch_on_device(function, args)
    else:
        compiled(function, TARGET)(*args)


@lru_cache(maxsize=64)
def compiled(function: Function, platform: str) -> CompiledProgram:
    """Return a kernel compiled, once for all the runs that tests make of it."""
    return ir.compile(as_program(function), platform=platform)


def run(function: Function, *inputs: Array | float, fill: float = 0) -> Array:
    """Return what a kernel leaves in its only output tensor, which held `fill` before."""
    (result,) = run_all(function, *inputs, fill=fill)
    return result


def run_all(function: Function, *inputs: Array | float, fill: float = 0) -> list[Array]:
    """Return what a kernel leaves in each of its output tensors, which held `fill` before."""
    remaining, outputs, args = list(inputs), list[Array](), list[Array | float]()
    for param, direction in zip(function.params, function.param_directions, strict=True):
        if direction is ParamDirection.Out:
            assert isinstance(param.type, TensorType)
            outputs.append(np.full(static_shape(param.type.shape), fill, param.type.dtype.numpy))
        args.append(outputs[-1] if direction is ParamDirection.Out else remaining.pop(0))
    assert not remaining
    launch(function, *args)
    return outputs


def counting(*shape: int, dtype: DataType = pl.FP32) -> Array:
    """Return an array whose elements are 0, 1, 2 and so on."""
    return np.reshape(np.arange(int(np.prod(shape))), shape).astype(dtype.numpy)


def floating(dtype: np.dtype[Any]) -> Any:
    """Return the limits of a floating-point format, as `np.finfo` does for the few it knows."""
    return _formats.finfo(dtype)
