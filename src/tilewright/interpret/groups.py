"""Groups as the interpreter runs them: calls that meet in pipes take turns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

from tilewright.core.expr import Expr
from tilewright.core.pipes import run_sides
from tilewright.core.stmt import AssignStmt
from tilewright.errors import ExecutionError
from tilewright.interpret.skipped import NOTHING
from tilewright.passes.groups import Side, Sides

BESIDE = "this is made by a function that runs beside the one it is passed to"


class Runs(Protocol):
    """Who runs a function of the program."""

    def __call__(self, name: str, args: Sequence[Any]) -> tuple[Any, ...]:
        """Return what a function returns."""
        ...


def run_together(
    sides: Sides,
    run: Runs,
    value: Callable[[Expr], Any],
    bind: Callable[[AssignStmt, Any], None],
    returned: Callable[[str], Sequence[int | None]],
) -> None:
    """Run the calls of a group in turns, and bind what they give.

    A result that is one of the arguments is there before the call has run, for the other calls to take.
    """
    bodies: list[tuple[int, partial[tuple[Any, ...]]]] = []
    for side in sides.sides:
        args = [_argument(value(arg), arg) for arg in side.call.args]
        bodies.append((side.lane, partial(run, side.call.op.name, args)))
        _bind(bind, side, [NOTHING if p is None else args[p] for p in returned(side.call.op.name)])
    for side, results in zip(sides.sides, run_sides(sides.lanes, bodies), strict=True):
        _bind(bind, side, results)


def _bind(bind: Callable[[AssignStmt, Any], None], side: Side, results: Sequence[Any]) -> None:
    if isinstance(side.stmt, AssignStmt) and side.lane == 0:
        bind(side.stmt, results[0] if len(results) == 1 else tuple(results))


def _argument(value: Any, arg: Expr) -> Any:
    if value is NOTHING:
        raise ExecutionError(BESIDE, spans=[arg.span])
    return value
