"""The control plane: an orchestration function allocates, loops and dispatches, but computes only inside kernels."""

from __future__ import annotations

from tilewright.core.enums import AtomicType, FunctionType
from tilewright.core.expr import Call
from tilewright.core.op import Kind
from tilewright.core.program import Program
from tilewright.core.stmt import InCoreScopeStmt, SeqStmts, SpmdScopeStmt
from tilewright.core.visitor import bodies, expressions
from tilewright.errors import ControlPlaneComputeError


def run(program: Program) -> Program:
    """Return the program unchanged; ControlPlaneComputeError where it computes outside a kernel."""
    for function in program.function_list:
        if function.func_type is FunctionType.Orchestration:
            _check(function.body, function.name)
    return program


def _computes(call: Call) -> bool:
    return not call.op.spec.control_plane or call.kwargs.get("atomic") is AtomicType.Add


def _check(body: SeqStmts, function: str) -> None:
    for stmt in body:
        for expr in expressions(stmt):
            if isinstance(expr, Call) and expr.op.kind in (Kind.TILE, Kind.TENSOR) and _computes(expr):
                error = ControlPlaneComputeError(
                    f"Misplaced {expr.op.kind.value} op `{expr.op.spec.name}`: it should be inside a kernel",
                    spans=[expr.span],
                )
                error.function = function
                raise error
        if not isinstance(stmt, (InCoreScopeStmt, SpmdScopeStmt)):
            for inner in bodies(stmt):
                _check(inner, function)
