"""Barriers: which functions have blocks of a launch wait for each other, and that all of those blocks run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from tilewright.core.expr import Call, ConstInt, Expr, Invoke, Submit
from tilewright.core.program import Function, Program
from tilewright.core.stmt import SeqStmts, SpmdScopeStmt
from tilewright.core.visitor import expressions, invocations, statements
from tilewright.errors import AttributeValueError

Functions: TypeAlias = Mapping[str, Function] | Program

CORES = {"aiv_only": 48, "aic_only": 24, "mix": 24}
"""How many blocks a barrier between the cores themselves waits for."""


def run(program: Program) -> Program:
    """Return the program unchanged; AttributeValueError where a barrier waits for blocks that are not launched."""
    for function in program.function_list:
        for stmt in statements(function.body):
            if isinstance(stmt, SpmdScopeStmt):
                _check(program, stmt.body, stmt.core_num, function.name)
        for call in invocations(function.body):
            if isinstance(call, Submit) and call.core_num is not None:
                _check(program, program[call.op.name].body, call.core_num, function.name)
    return program


def _check(program: Program, body: SeqStmts, count: Expr | None, function: str) -> None:
    """Raise where a launch of a known size has a hard barrier for more blocks."""
    for barrier in barriers(program, body) if isinstance(count, ConstInt) else ():
        needed = CORES[str(barrier.kwargs["core_type"])]
        if isinstance(count, ConstInt) and barrier.kwargs["mode"] == "hard" and count.value < needed:
            message = f"a hard barrier waits for {needed} blocks, and {count.value} are launched"
            help = f'launch {needed}, or use pl.system.syncall(mode="soft", gm_workspace=w, used_cores={count.value})'
            error = AttributeValueError(message, spans=[barrier.span], help=help)
            error.function = function
            raise error


def has_barrier(functions: Functions, body: SeqStmts) -> bool:
    """Return whether statements, or the functions that they call, have a barrier."""
    return next(barriers(functions, body), None) is not None


def barriers(functions: Functions, body: SeqStmts) -> Iterator[Call]:
    """Yield the barriers of statements and of the functions that they call."""
    found = [expr for stmt in statements(body) for expr in expressions(stmt)]
    yield from (expr for expr in found if isinstance(expr, Call) and expr.op.spec.is_barrier)
    for name in {expr.op.name for expr in found if isinstance(expr, (Invoke, Submit))}:
        yield from barriers(functions, functions[name].body)
