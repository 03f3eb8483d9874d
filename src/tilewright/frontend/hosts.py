"""Host functions: what runs once for all ranks, lays out windows and dispatches to ranks."""

from __future__ import annotations

import ast
from dataclasses import replace

from tilewright.core.enums import Level
from tilewright.core.expr import Const, Invoke, MakeTuple
from tilewright.core.op import OpSpec
from tilewright.core.program import Function
from tilewright.core.types import ScalarType
from tilewright.dtypes import UINT8
from tilewright.errors import AttributeValueError, DirectiveError, OperandError, UncallableError
from tilewright.frontend.arguments import Arguments
from tilewright.frontend.deferred import check_deferred
from tilewright.frontend.translator import Translator
from tilewright.frontend.walk.walker import Value
from tilewright.ops.collectives import MEANINGS

HOST_ONLY = ("alloc_window_buffer", "window", "world_size")
"""What only host functions do."""
BOTH = ("get_comm_ctx", *MEANINGS)
"""What host functions do as well as those that they dispatch."""


def check_level(t: Translator, spec: OpSpec, node: ast.Call) -> None:
    """Raise where what a host function does stands elsewhere, or a buffer has no name of its own."""
    if spec.name in HOST_ONLY and t.level is not Level.HOST:
        message = f"`{spec.name}` is for host functions, and this is `{t.captured.node.name}`"
        help = "call it in a function decorated with @pl.jit.host, or @pl.function(level=pl.Level.HOST)"
        raise t.error(DirectiveError, node, message, help=help)
    if t.level is Level.HOST and spec.name not in (*HOST_ONLY, *BOTH):
        message = f"`{spec.name}` is for what runs on a rank, and `{t.captured.node.name}` is a host function"
        raise t.error(DirectiveError, node, message, help="dispatch a function that does it: chip(w, device=r)")
    if spec.name == "alloc_window_buffer":
        _check_buffer(t, node)
    if spec.name == "defer_wait":
        check_deferred(t, node)


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
    name = targets[0].id
    same = [s for s in ast.walk(t.captured.node) if isinstance(s, ast.Name) and s.id == name and _is_stored(s)]
    if len(same) > 1:
        message = f"the name of a window buffer is its own: `{name}` is assigned {len(same)} times"
        raise t.error(DirectiveError, targets[0], message, help="give each buffer a name of its own")
    loops = [s for s in ast.walk(t.captured.node) if isinstance(s, (ast.For, ast.While))]
    if any(node is inner for loop in loops for inner in ast.walk(loop)):
        message = f"each turn of this loop would have another buffer `{name}`, and the ranks no memory in common"
        help = f"allocate `{name}` before the loop; its windows may be taken inside"
        raise t.error(DirectiveError, node, message, help=help)


def _is_stored(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Store)


def completed(t: Translator, given: Arguments, node: ast.Call) -> Arguments:
    """Return the arguments of a buffer; one of so many bytes is one of elements of a byte."""
    size = given.args[0] if given.args else given.kwargs.get("size", given.kwargs.get("shape"))
    is_shape = isinstance(size, (list, tuple, MakeTuple))
    if is_shape and "dtype" not in given.kwargs:
        message = "a window buffer with a shape needs a dtype"
        raise t.error(AttributeValueError, node, message, help="pld.alloc_window_buffer([rows, cols], dtype=pl.FP32)")
    if not is_shape and "dtype" in given.kwargs:
        message = "a number of bytes takes no dtype"
        raise t.error(AttributeValueError, node, message, help="give a shape with it, or the bytes alone")
    return given if is_shape else replace(given, kwargs={**given.kwargs, "dtype": UINT8})


def dispatched(t: Translator, value: Value, node: ast.Call, function: Function | None = None) -> Value:
    """Return a call of a function as the host makes it: on the rank that `device=` says, or else on the only one."""
    if not isinstance(value, Invoke) or t.level is not Level.HOST:
        return value
    if function is not None and function.is_sub_worker:
        return value
    if function is not None and function.func_type.is_incore:
        message = f"`{function.name}` is a kernel, and a host function dispatches to chips alone"
        raise t.error(UncallableError, node.func, message, help="call it from an orchestration function, dispatch that")
    where = next((keyword.value for keyword in node.keywords if keyword.arg == "device"), None)
    if where is None:
        return value
    device = t.expr(t.operand(where), where, "device=")
    if not isinstance(device.type, ScalarType) or not device.type.dtype.is_int():
        message = f"device= is a rank, an integer, got {device.type}"
        raise t.error(OperandError, where, message, help="for r in pl.range(pld.world_size()): chip(..., device=r)")
    if isinstance(device, Const) and device.value < 0:
        raise t.error(OperandError, where, f"device={device.value}, and ranks count from 0", help="device=0")
    return replace(value, device=device)
