"""Host functions: what runs once for all ranks, lays out windows and dispatches to ranks."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from tilewright.core.enums import Level
from tilewright.core.expr import Const, Invoke, MakeTuple
from tilewright.core.op import OPS, OpSpec
from tilewright.core.types import ScalarType
from tilewright.dtypes import UINT8
from tilewright.errors import AttributeValueError, DirectiveError, OperandError
from tilewright.frontend.arguments import Arguments
from tilewright.frontend.translator import Translator
from tilewright.frontend.walk.walker import Value

HOST_ONLY = ("alloc_window_buffer", "window", "world_size")
"""What only host functions do."""


def check_level(t: Translator, spec: OpSpec, node: ast.Call) -> None:
    """Raise where what a host function does stands elsewhere, or a buffer has no name of its own."""
    if OPS.get(f"distributed.{spec.name}") is None or OPS[f"distributed.{spec.name}"].spec is not spec:
        return
    if spec.name in HOST_ONLY and t.level is not Level.HOST:
        message = f"`{spec.name}` is for host functions, and this is `{t.captured.node.name}`"
        help = "call it in a function decorated with @pl.jit.host, or @pl.function(level=pl.Level.HOST)"
        raise t.error(DirectiveError, node, message, help=help)
    if spec.name == "alloc_window_buffer":
        _check_buffer(t, node)


def _check_buffer(t: Translator, node: ast.Call) -> None:
    keywords = {keyword.arg: keyword.value for keyword in node.keywords}
    if "name" in keywords:
        message = "a window buffer is called like the variable it is assigned to, and takes no name="
        raise t.error(DirectiveError, keywords["name"], message, help="buf = pld.alloc_window_buffer(size)")
    stmts = [s for s in ast.walk(t.captured.node) if isinstance(s, (ast.Assign, ast.AnnAssign)) and s.value is node]
    targets = [target for s in stmts for target in (s.targets if isinstance(s, ast.Assign) else [s.target])]
    if len(targets) != 1 or not isinstance(targets[0], ast.Name):
        help = "buf = pld.alloc_window_buffer(size), in a statement of its own"
        raise t.error(DirectiveError, node, "a window buffer is assigned to a name", help=help)


def completed(t: Translator, spec: OpSpec, given: Arguments, node: ast.Call) -> Arguments:
    """Return the arguments of an op; a buffer of so many bytes is one of elements of a byte."""
    if spec.name != "alloc_window_buffer":
        return given
    size = given.args[0] if given.args else given.kwargs.get("size", given.kwargs.get("shape"))
    is_shape = isinstance(size, (list, tuple, MakeTuple))
    if is_shape and "dtype" not in given.kwargs:
        message = "a window buffer with a shape needs a dtype"
        raise t.error(AttributeValueError, node, message, help="pld.alloc_window_buffer([rows, cols], dtype=pl.FP32)")
    if not is_shape and "dtype" in given.kwargs:
        message = "a number of bytes takes no dtype"
        raise t.error(AttributeValueError, node, message, help="give a shape with it, or the bytes alone")
    return given if is_shape else replace(given, kwargs={**given.kwargs, "dtype": UINT8})


def dispatched(t: Translator, value: Value, node: ast.Call) -> Value:
    """Return a call of a function as the host makes it: on the rank that `device=` says."""
    where: Sequence[ast.expr] = [keyword.value for keyword in node.keywords if keyword.arg == "device"]
    if not isinstance(value, Invoke) or not where or t.level is not Level.HOST:
        return value
    device = t.expr(t.operand(where[0]), where[0], "device=")
    if not isinstance(device.type, ScalarType) or not device.type.dtype.is_int():
        message = f"device= is a rank, an integer, got {device.type}"
        raise t.error(OperandError, where[0], message, help="for r in pl.range(pld.world_size()): chip(..., device=r)")
    if isinstance(device, Const) and device.value < 0:
        raise t.error(OperandError, where[0], f"device={device.value}, and ranks count from 0", help="device=0")
    return replace(value, device=device)
