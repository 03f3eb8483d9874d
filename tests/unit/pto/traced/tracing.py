"""Tracing in tests: a function as text, which must read back as the module it was printed from."""

from __future__ import annotations

from types import FunctionType
from typing import Any

from unit.pto.equality import same

from tilewright import pto
from tilewright.pto.module import Module
from tilewright.pto.text.parser import parse
from tilewright.pto.text.printer import print_module
from tilewright.pto.traced.trace import Traced, trace
from tilewright.pto.types import Type
from tilewright.pto.verify import verify

TYPES: dict[str, Type] = {
    "p": pto.ptr(pto.f32, "gm"),
    "q": pto.ptr(pto.f32, "gm"),
    "u": pto.ptr(pto.f32, "ub"),
    "w": pto.ptr(pto.i32, "ub"),
    "n": pto.index,
    "j": pto.index,
    "m": pto.i32,
    "k": pto.i64,
    "h": pto.ui32,
    "x": pto.f32,
    "flag": pto.i1,
}
"""The types of parameters that tests call by these names."""


def traced(function: Any, **constants: object) -> Traced:
    """Return a traced function, verified; its positional parameters have the types of their names."""
    found = unverified(function, **constants)
    verify(found.module)
    return found


def unverified(function: Any, **constants: object) -> Traced:
    """Return a traced function."""
    assert isinstance(function, FunctionType)
    code = function.__code__
    parameters = [(name, TYPES[name]) for name in code.co_varnames[: code.co_argcount]]
    found = trace(function, parameters, constants)
    check(found.module)
    return found


def check(module: Module) -> None:
    """Fail unless a module's text reads back as the module."""
    text = print_module(module)
    read = parse(text)
    assert same(read, module), text
    assert print_module(read) == text


def lines(function: Any, **constants: object) -> list[str]:
    """Return the text of a function's body, without constants, indented lines indented, and without the return."""
    text = print_module(traced(function, **constants).module)
    body = [line.removeprefix("    ") for line in text.splitlines()[2:-2]]
    return [line for line in body if "arith.constant" not in line and line.strip() != "return"]
