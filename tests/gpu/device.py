"""Kernels on the GPU, held against the interpreter; memory around every tensor is loud, and looked at afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from ops.kernels import Array
from ops.native import MARGIN, Embedded, error_of, numbers_of

from tilewright import ir
from tilewright.call.argument import is_array
from tilewright.core.program import Function, Program
from tilewright.core.region import whole
from tilewright.dtypes import from_numpy, to_torch
from tilewright.errors import ExecutionError, UnsupportedFeatureError
from tilewright.frontend.programs import as_program
from tilewright.interpret import machine
from tilewright.programs.program import CompiledProgram


def on_device(array: Array) -> Any:
    """Return a copy of an array as a tensor of the GPU."""
    torch: Any = import_module("torch")
    if not array.size:
        return torch.empty(array.shape, dtype=to_torch(from_numpy(array.dtype)), device="cuda")
    data = torch.frombuffer(bytearray(np.ascontiguousarray(array).tobytes()), dtype=torch.uint8).cuda()
    return data.view(to_torch(from_numpy(array.dtype))).reshape(array.shape)


def from_device(tensor: Any, dtype: np.dtype[Any]) -> Array:
    """Return a copy of a tensor of the GPU as an array."""
    torch: Any = import_module("torch")
    if not tensor.numel():
        return np.empty(tuple(tensor.shape), dtype)
    data: Any = tensor.contiguous().reshape(-1).view(torch.uint8).cpu().numpy()
    return np.reshape(np.frombuffer(data.tobytes(), dtype), tuple(tensor.shape))


class Given:
    """An argument on the GPU: a window of a larger tensor, or all of one that is aligned; a number is itself."""

    def __init__(self, arg: Array | float, packed: bool) -> None:
        self.arg: Any = arg
        self.value: Any = arg
        self.outer: Any = None
        if isinstance(arg, np.ndarray):
            held = Embedded(arg)
            self.before: Any = arg if packed else held.outer
            self.outer = on_device(self.before)
            window = () if packed else tuple(slice(MARGIN, MARGIN + extent) for extent in arg.shape)
            self.value = self.outer[window] if window else self.outer
            self.window = window

    def after(self) -> Array:
        """Return what it holds now; fail where something around it was written."""
        now: Any = np.array(from_device(self.outer, self.arg.dtype))
        result: Any = np.array(now[self.window]) if self.window else now
        if self.window:
            now[self.window] = np.asarray(self.before)[self.window]
            assert now.tobytes() == np.ascontiguousarray(self.before).tobytes(), "something around a tensor was written"
        return result


def launch_on_device(function: Function, args: Sequence[Array | float]) -> None:
    """Run a kernel on the GPU on copies of arrays, and bring back what it left; skip a test of what is refused."""
    given = [Given(arg, packed=True) for arg in args]
    launched(as_program(function))(*(each.value for each in given))
    for arg, each in zip(args, given, strict=True):
        if isinstance(arg, np.ndarray):
            arg[...] = each.after()


def launched(program: Program) -> CompiledProgram:
    """Return a program for the GPU; skip the test of one that is refused by name."""
    try:
        return ir.compile(program, platform="cuda")
    except UnsupportedFeatureError as error:
        assert "no CUDA recipe for" in str(error)
        pytest.skip(str(error).splitlines()[0])


class OnDevice:
    """A kernel in both forms."""

    def __init__(self, function: Function) -> None:
        self.program, self.name = as_program(function), function.name
        self.compiled = launched(self.program)

    def run(
        self, args: Sequence[Any], *, packed: bool = False, left: Sequence[Any] | None = None
    ) -> list[tuple[Array, Array]]:
        """Return each array as the GPU and as the interpreter leave it, which is `left` where that is known."""
        plain = numbers_of(args)
        given = [Given(arg, packed) for arg in plain]
        theirs: list[Any] = [copy(arg) for arg in plain] if left is None else [*left]
        self.compiled(*(each.value for each in given))
        if left is None:
            machine.run(self.program, self.name, [whole(a) if is_array(a) else a for a in theirs])
        found = zip(given, theirs, strict=True)
        return [(_same_nan(each.after(), want), want) for each, want in found if is_array(want)]

    def errors(self, args: Sequence[Any]) -> list[ExecutionError | None]:
        """Return what the GPU and the interpreter object to; what nobody wrote is not followed on a GPU."""
        plain = numbers_of(args)
        given = [Given(arg, packed=False) for arg in plain]
        theirs: list[Any] = [whole(np.array(arg)) if is_array(arg) else arg for arg in plain]
        wanted = error_of(lambda: machine.run(self.program, self.name, theirs))
        if wanted is not None and "nobody wrote" in str(wanted):
            pytest.skip("what nobody wrote is not followed on a GPU")
        found = error_of(lambda: self.compiled(*(each.value for each in given)))
        for each in given:
            if each.outer is not None:
                each.after()
        return [found, wanted]


def _same_nan(got: Array, want: Array) -> Array:
    """Return an array with another's NaN where both have one: which one it is does not matter."""
    if got.dtype.kind != "f":
        return got
    return np.where(np.isnan(got) & np.isnan(want), want, got)
