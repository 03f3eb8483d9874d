"""Subjects: a kernel, a program and a PTO kernel with the same parameters, and the ways to write a call of them."""

# pyright: basic, reportInvalidTypeForm=false
from __future__ import annotations

import sys
import types
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import torch
from unit.pto.jit.kernels import ADD

import tilewright.language as pl
from tilewright import ir, pto
from tilewright.core.program import Program
from tilewright.native.machines import here
from tilewright.runtime import CompiledProgram

IS_NATIVE = sys.implementation.name == "cpython" and (machine := here()) is not None and machine.is_linux
"""Whether machine code dispatches calls here."""

SHAPE = (8, 16)
ROWS = 8

Style = Callable[[dict[str, Any]], tuple[list[Any], dict[str, Any]]]


def add(x: pl.Tensor, y: pl.Tensor, rows: pl.INDEX, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], [8, 16]) + pl.load(y, [0, 0], [8, 16]), [rows - 8, 0], out)
    return out


ADDING = """
import tilewright.language as pl
M = pl.dynamic("M")

@pl.program
class Adding:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[M, 16], pl.FP32], y: pl.Tensor[[M, 16], pl.FP32],
             rows: pl.Scalar[pl.INDEX], out: pl.Out[pl.Tensor[[M, 16], pl.FP32]]):
        for row in pl.parallel(0, M, 8):
            with pl.at(level=pl.Level.CORE_GROUP):
                sums = pl.add(pl.load(x, [row, 0], [8, 16]), pl.load(y, [row, 0], [8, 16]))
                out = pl.store(sums, [row + rows - 8, 0], out)
        return out
"""


def copied(function: Any, outside: dict[str, Any], **options: Any) -> Any:
    """Return a kernel of a function, with globals and a cache of its own."""
    made = types.FunctionType(function.__code__, outside, function.__name__, function.__defaults__)
    made.__annotations__ = dict(function.__annotations__)
    return pl.jit(**options)(made) if options else pl.jit(made)


def a_kernel() -> Any:
    return copied(add, globals())


def compiled_program() -> Any:
    program = pl.parse(ADDING)
    assert isinstance(program, Program)
    return ir.compile(program)


@cache
def _saved() -> Path:
    folder = Path(mkdtemp()) / "adding"
    compiled_program().save(folder)
    return folder


def a_program() -> Any:
    return CompiledProgram.load(_saved())


TEXT = ADD.replace("%out: !pto.ptr<f32>, %rows: index", "%rows: index, %out: !pto.ptr<f32>")


def a_pto_kernel() -> Any:
    @pto.jit(source=TEXT, name="add")
    def handle(x: pto.ptr(pto.f32, "gm"), y: pto.ptr(pto.f32, "gm"), rows: pto.index, out: pto.ptr(pto.f32, "gm")): ...

    return lambda *args, **named: handle[1, None](*args, **named)


SUBJECTS: dict[str, Callable[[], Any]] = {"kernel": a_kernel, "program": a_program, "PTO kernel": a_pto_kernel}
"""What adds `x` and `y` into `out`, made anew: nothing is known yet of any call."""


def _in(order: str, values: dict[str, Any]) -> dict[str, Any]:
    return {sys.intern(name): values[name] for name in order.split()}  # as names in source text are


STYLES: dict[str, Style] = {
    "in place": lambda v: ([*_in("x y rows out", v).values()], {}),
    "by name": lambda v: ([], _in("out rows y x", v)),
    "mixed": lambda v: ([v["x"], v["y"]], _in("out rows", v)),
    "returning": lambda v: ([*_in("x y rows", v).values()], {}),
    "returning, by name": lambda v: ([], _in("rows y x", v)),
    "None for the output": lambda v: ([v["x"], v["y"], v["rows"], None], {}),
}
"""Ways to write a call, from the values of all parameters."""


def outcome(call: Callable[..., Any], args: list[Any], named: dict[str, Any]) -> tuple[Any, ...]:
    """Return what a call gives or raises, and what it leaves in its arguments."""
    try:
        result = call(*args, **named)
        given = ("gives", type(result).__name__, contents(result))
    except Exception as error:
        given = ("raises", type(error).__name__, str(error))
    return (*given, *(contents(value) for value in (*args, *named.values())))


def contents(value: Any) -> Any:
    """Return what can be compared of an argument or a result."""
    if isinstance(value, tuple):
        return tuple(map(contents, value))
    if isinstance(value, torch.Tensor):
        value = value.detach()
        if value.device.type != "cpu" or value.layout is not torch.strided or value.is_neg() or value.is_quantized:
            return str(value.device), str(value.layout)
        if value.numel() and value.untyped_storage().nbytes() < value.numel() * value.element_size():
            return "freed"
        value = value.contiguous().clone().numpy()
    if isinstance(value, np.ndarray) and value.dtype != object:
        return value.shape, value.dtype.str, np.ascontiguousarray(value).tobytes()
    return type(value).__name__ if hasattr(value, "__dlpack__") or hasattr(value, "data_ptr") else repr(value)


def frames(call: Callable[..., Any], *args: Any, **named: Any) -> int:
    """Return how many functions of Python a call runs: none where machine code takes it, hundreds where it is bound."""
    seen = 0

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal seen
        seen += event == "call"

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        call(*args, **named)
    finally:
        sys.setprofile(before)
    return seen
