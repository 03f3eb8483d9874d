"""Pipes: what the two ends of one say about it agrees."""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.core.build import arguments
from tilewright.core.expr import Call, Expr, Var
from tilewright.core.program import Function, Program
from tilewright.core.stmt import AssignStmt
from tilewright.core.visitor import statements, used
from tilewright.errors import AttributeValueError
from tilewright.ops.pipes import number_of

POPS = ("tpop_from_aic", "tpop_from_aiv")
FREES = ("tfree_to_aic", "tfree_to_aiv")


def run(program: Program) -> Program:
    """Return the program unchanged; AttributeValueError where a buffer or a tile is not the other end's."""
    for function in program.function_list:
        _check_buffers(program, function)
        _check_freed(function)
    return program


def _check_buffers(program: Program, function: Function) -> None:
    for call in _calls(function, ("import_peer_buffer",)):
        given = arguments(call)
        name, peer = given["name"], str(given["peer_func"])
        names = [each.name for each in program.function_list]
        if peer not in names:
            help = f"the functions are {', '.join(names)}"
            raise _mistake(function, call, f"there is no function {peer!r} in this program", help)
        if name not in [arguments(reserved)["name"] for reserved in _calls(program[peer], ("reserve_buffer",))]:
            help = f"write pl.reserve_buffer(name={name!r}, size=...) there"
            raise _mistake(function, call, f"{peer!r} reserves no buffer named {name!r}", help)


def _check_freed(function: Function) -> None:
    """Raise where a tile is given back to another pipe than it was taken from."""
    taken = {
        stmt.var: number_of(_id(stmt.value))
        for stmt in statements(function.body)
        if isinstance(stmt, AssignStmt) and isinstance(stmt.value, Call) and stmt.value.op.spec.name in POPS
    }
    for call in _calls(function, FREES):
        tile = arguments(call)["tile"]
        pipe = taken.get(tile) if isinstance(tile, Var) else None
        if pipe is not None and pipe != number_of(_id(call)):
            message = f"this tile was taken from pipe {pipe}, not from {number_of(_id(call))}"
            raise _mistake(function, call, message, f"write id={pipe}")


def _id(call: Expr) -> int | None:
    assert isinstance(call, Call)
    id = arguments(call)["id"]
    return id if isinstance(id, int) else None


def _calls(function: Function, names: tuple[str, ...]) -> Iterator[Call]:
    for stmt in statements(function.body):
        yield from (e for e in used(stmt) if isinstance(e, Call) and e.op.spec.name in names)


def _mistake(function: Function, call: Call, message: str, help: str) -> AttributeValueError:
    error = AttributeValueError(message, spans=[call.span], help=help)
    error.function = function.name
    return error
