"""The control plane: an orchestration function allocates, loops and dispatches, but computes only inside kernels.

A host function writes no tensor, either: it runs before anything that it dispatches.
"""

from __future__ import annotations

from tilewright.core.enums import AtomicType, FunctionType, Level
from tilewright.core.expr import Call
from tilewright.core.op import Kind
from tilewright.core.program import Function, Program
from tilewright.core.stmt import HierarchyScopeStmt, InCoreScopeStmt, SeqStmts, SpmdScopeStmt
from tilewright.core.types import TensorType
from tilewright.core.visitor import bodies, expressions
from tilewright.errors import ControlPlaneComputeError

NARROW = "tensor.set_validshape"
ELSEWHERE = "it should be inside a kernel"
WRITTEN = "dispatch a function that writes it; pl.create_tensor(..., init_value=0.0) is a tensor of numbers"


def run(program: Program) -> Program:
    """Return the program unchanged; ControlPlaneComputeError where it computes outside a kernel."""
    for function in program.function_list:
        if function.func_type is FunctionType.Orchestration:
            _check(function.body, function, is_host=function.level is Level.HOST)
    return program


def _computes(call: Call) -> bool:
    return not call.op.spec.control_plane or call.kwargs.get("atomic") is AtomicType.Add


def _narrows_window(call: Call) -> bool:
    """Return whether a call says how much of a window is valid, which collectives look at."""
    type_ = call.args[0].type if call.op.name == NARROW else None
    return isinstance(type_, TensorType) and type_.is_window


def _check(body: SeqStmts, function: Function, *, is_host: bool) -> None:
    for stmt in body:
        for expr in expressions(stmt):
            if isinstance(expr, Call) and expr.op.kind in (Kind.TILE, Kind.TENSOR):
                _check_call(expr, function, is_host=is_host)
        if not isinstance(stmt, (InCoreScopeStmt, SpmdScopeStmt)):
            is_chip = isinstance(stmt, HierarchyScopeStmt) and stmt.level is Level.CHIP
            for inner in bodies(stmt):
                _check(inner, function, is_host=is_host and not is_chip)


def _check_call(call: Call, function: Function, *, is_host: bool) -> None:
    writes = is_host and call.op.spec.writes is not None
    if not writes and (not _computes(call) or (is_host and _narrows_window(call))):
        return
    why = "a host function writes no tensor: it runs before all that it dispatches" if writes else ELSEWHERE
    message = f"Misplaced {call.op.kind.value} op `{call.op.spec.name}`: {why}"
    error = ControlPlaneComputeError(message, spans=[call.span], help=WRITTEN if writes else "")
    error.function = function.name
    raise error
