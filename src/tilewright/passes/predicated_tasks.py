"""Predicated tasks: a task with a predicate may not run, so it can only give back tensors that were there before it."""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.core.expr import Submit
from tilewright.core.program import Program
from tilewright.core.visitor import evaluated, statements
from tilewright.errors import PredicateError
from tilewright.passes.identity import returned_parameters


def run(program: Program) -> Program:
    """Return the program unchanged; PredicateError where a task that may be skipped gives something it makes."""
    tasks = list(_predicated(program))
    if not tasks:
        return program
    returned = returned_parameters(program.function_list)
    for caller, task in tasks:
        if None in returned[task.op.name]:
            result = program[task.op.name].return_types[returned[task.op.name].index(None)]
            error = PredicateError(
                f"a task that may be skipped gives back what it was given, but `{task.op.name}` makes {result}",
                spans=[task.span],
            )
            error.function = caller
            raise error
    return program


def _predicated(program: Program) -> Iterator[tuple[str, Submit]]:
    """Yield each task that has a predicate, with the function it is in."""
    for function in program.function_list:
        for stmt in statements(function.body):
            value = evaluated(stmt)
            if isinstance(value, Submit) and value.predicate is not None:
                yield function.name, value
