"""Narrowing parameters: a kernel learns how far its scalar arguments reach from the calls that are made of it.

An offset that is a loop variable where the kernel is called is a bare number inside it. With its bounds known, loads
that always fit are known to fit, and their tiles to be wholly valid.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from tilewright.core.enums import FunctionType
from tilewright.core.expr import Expr, Var
from tilewright.core.extents import bounds
from tilewright.core.op import Interval
from tilewright.core.program import Function, Program
from tilewright.core.rewrite import Rewriter
from tilewright.core.types import ScalarType
from tilewright.core.visitor import invocations


def run(program: Program) -> Program:
    """Give scalar parameters the bounds that all their arguments share."""
    return told_by_callers(program, _narrowed)


Calls: TypeAlias = Sequence[tuple[Expr, ...]]
"""The arguments of each call of a function."""


def told_by_callers(program: Program, change: Callable[[Function, Calls], Function]) -> Program:
    """Return a program whose functions are changed by the calls made of them, callers before what they call."""
    known = {function.name: function for function in program.function_list}
    calls: dict[str, list[tuple[Expr, ...]]] = {}
    for name in _callers_first(known):
        function = known[name] = change(known[name], calls.get(name, ()))
        for call in invocations(function.body):
            calls.setdefault(call.op.name, []).append(call.args)
    return program.with_functions([known[function.name] for function in program.function_list])


def _callers_first(functions: Mapping[str, Function]) -> list[str]:
    """Return the names of functions so that each comes after everything that calls it."""
    order: list[str] = []

    def visit(name: str) -> None:
        if name in order:
            return
        for call in invocations(functions[name].body):
            visit(call.op.name)
        order.append(name)

    for name in functions:
        visit(name)
    return order[::-1]


def _narrowed(function: Function, calls: Calls) -> Function:
    """Return a function whose scalar parameters have the bounds of their arguments; one nobody calls stays."""
    if not calls or function.func_type is FunctionType.Orchestration:
        return function
    replaced: dict[Var, Expr] = {}
    for position, param in enumerate(function.params):
        reach = _union([bounds(args[position]) for args in calls])
        if isinstance(param.type, ScalarType) and param.bounds is None and reach is not None:
            replaced[param] = Var(param.name_hint, param.type, param.span, reach)
    return with_parameters(function, replaced) if replaced else function


def with_parameters(function: Function, replaced: Mapping[Var, Expr]) -> Function:
    """Return a function with others in place of some of its parameters."""
    params = tuple(new if isinstance(new := replaced.get(p, p), Var) else p for p in function.params)
    return replace(function, params=params, body=Rewriter(replaced).body(function.body))


def _union(intervals: Sequence[Interval | None]) -> Interval | None:
    known = [interval for interval in intervals if interval is not None]
    if len(known) != len(intervals):
        return None
    return min(low for low, _ in known), max(high for _, high in known)
