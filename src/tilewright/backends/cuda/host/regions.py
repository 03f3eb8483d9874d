"""Regions: which statements of the host's functions become kernels, and over which grid.

A parallel loop is a grid of its turns, and so is one directly inside another. A kernel that is called or dispatched is
a grid of its blocks. What is inside is written into the kernel.
"""

from __future__ import annotations

from math import prod

from tilewright.core.expr import Call, Invoke, Submit
from tilewright.core.op import Effect, Kind
from tilewright.core.program import Function, Program
from tilewright.core.stmt import (
    AssignStmt,
    BreakStmt,
    ContinueStmt,
    EvalStmt,
    ForStmt,
    IfStmt,
    ReturnStmt,
    SeqStmts,
    Stmt,
    WhileStmt,
    YieldStmt,
)  # fmt: skip
from tilewright.core.types import TensorType, TileType, is_static, static_shape
from tilewright.core.visitor import bodies, defined, expressions, statements, used, variables
from tilewright.passes.launches import runs_side_by_side

TINY = 128
"""Elements of the tiles of a turn of which a block makes several."""
SMALL = 1 << 20
"""Bytes of a tensor that each block of a grid makes for itself, at most."""


def is_kernel(function: Function) -> bool:
    """Return whether a function computes, and so runs on the GPU as a whole."""
    if function.func_type.is_incore:
        return True
    types = (param.type for param in function.params)
    found = (expr for stmt in statements(function.body) for expr in expressions(stmt))
    computes = any(isinstance(expr, Call) and expr.op.kind is Kind.TILE for expr in found)
    return computes or any(isinstance(type_, TileType) for type_ in types)


def is_grid(program: Program, function: Function) -> bool:
    """Return whether a function can be the blocks of one kernel: one that computes, or calls what does."""
    if is_kernel(function):
        return True
    body = [stmt for stmt in function.body if not isinstance(stmt, ReturnStmt)]
    return _fits_a_kernel(program, SeqStmts(tuple(body)))


def is_launched(program: Program, loop: ForStmt) -> bool:
    """Return whether the turns of a loop can be the blocks of one kernel."""
    return runs_side_by_side(loop) and _fits_a_kernel(program, loop.body)


_IN_KERNELS = (AssignStmt, EvalStmt, ForStmt, IfStmt, WhileStmt, YieldStmt, BreakStmt, ContinueStmt)


def _fits_a_kernel(program: Program, body: SeqStmts) -> bool:
    return all(
        isinstance(stmt, _IN_KERNELS)
        and all(_fits(program, expr) for expr in expressions(stmt))
        and all(_fits_a_kernel(program, inner) for inner in bodies(stmt))
        for stmt in body
    )


def _fits(program: Program, expr: object) -> bool:
    if isinstance(expr, Submit):
        return expr.core_num is None and expr.predicate is None and is_kernel(program[expr.op.name])
    if isinstance(expr, Invoke):
        return is_kernel(program[expr.op.name])
    return not isinstance(expr, Call) or expr.op.spec.effect is not Effect.ALLOCATE or _is_small(expr)


def _is_small(call: Call) -> bool:
    """Return whether each block of a grid can have a tensor of its own that a call makes."""
    if not isinstance(call.type, TensorType) or not is_static(call.type.shape):
        return False
    return prod(static_shape(call.type.shape)) * call.type.dtype.get_byte() <= SMALL


def nest(program: Program, loop: ForStmt) -> list[ForStmt]:
    """Return a loop and those that are all of its body, as far as their turns are one grid."""
    found = [loop]
    own = set(defined(loop))
    while len(found[-1].body) == 1:
        inner: Stmt = next(iter(found[-1].body))
        if not isinstance(inner, ForStmt) or not is_launched(program, inner):
            break
        if own & set(variables(used(inner))):
            break
        found.append(inner)
        own |= set(defined(inner))
    return found


def is_tiny(program: Program, body: SeqStmts) -> bool:
    """Return whether statements compute few elements once, so that a block would be more work to start than to run."""
    for stmt in statements(body):
        if isinstance(stmt, (ForStmt, WhileStmt)):
            return False
        for expr in expressions(stmt):
            if isinstance(expr, (Invoke, Submit)) and not is_tiny(program, program[expr.op.name].body):
                return False
            if isinstance(expr, Call) and not _is_tiny(expr):
                return False
    return True


def _is_tiny(call: Call) -> bool:
    if isinstance(call.type, TileType):
        return prod(call.type.shape) <= TINY
    return call.op.spec.effect is not Effect.ALLOCATE


def name_of(program: Program, body: SeqStmts) -> str:
    """Return what a kernel is called: as the first function that it calls."""
    for stmt in statements(body):
        for expr in expressions(stmt):
            if isinstance(expr, (Invoke, Submit)):
                return program[expr.op.name].name
    return ""
