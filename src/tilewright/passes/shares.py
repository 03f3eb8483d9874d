"""Shares: parallel loops that only update one tensor where indices say, divided by its places instead of their turns.

Turns that update the same elements at the same time would have to wait for each other at every one of them. Where a
loop does nothing else, each thread makes all of its turns, and of each only what falls to its own part of the tensor:
nobody meets anybody, and sums have the order of the turns. What every thread repeats is the reading of indices.

Integers that are added to a few elements are counted in private copies instead, each turn by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from typing import TypeAlias

from tilewright.core.build import arguments
from tilewright.core.enums import ForKind
from tilewright.core.expr import Call, Expr, Invoke, Var
from tilewright.core.op import Kind
from tilewright.core.program import Program
from tilewright.core.stmt import AssignStmt, ForStmt, ReturnStmt, SeqStmts, Stmt
from tilewright.core.types import TileType, is_static, static_shape
from tilewright.core.visitor import defined, evaluated, statements, used, variables
from tilewright.named_tuples import NamedTuple
from tilewright.ops.families import shaped
from tilewright.ops.places import takes_rows

Names: TypeAlias = "Mapping[Var, Expr | None]"
"""What the parameters of a function stand for in the loop that calls it."""
LOADS = ("tile.load", "tensor.read")
READS = (*LOADS, "tensor.dim")
"""What turns may do besides, however often."""
COMPUTED = ("elementwise", "cast")
"""What they may compute, by family or name, as long as it is no more than the indices."""
COPIES = 4
"""How many private copies integers are counted in."""
NEAR = 16384
"""How many bytes the copies may take."""
WORTH = 4
"""How many indices there are at least for each element of a private copy."""


class Step(NamedTuple):
    """An op that a turn makes: whether anybody reads what it gives, and the names of its function's tensors."""

    call: Call
    is_read: bool
    names: Names | None
    bases: Names | None
    """What the parameters stand for, and what views are views of."""


def shared_out(program: Program, loop: ForStmt, roots: Mapping[Var, Var]) -> Var | None:
    """Return the tensor that a parallel loop updates, if it does nothing else; None for any other loop.

    `roots` has the same for tensors that may share memory: what turns read is no part of what they change.
    """
    steps = list(_steps(program, loop.body, None, None))
    updates = [step for step in steps if step is not None and step.call.op.spec.is_atomic]
    targets = {_target(step) for step in updates}
    most = max((prod(static_shape(_indices(step.call).shape)) for step in updates), default=0)
    if len(targets) != 1 or not all(step is not None and _may_repeat(step.call, most) for step in steps):
        return None
    (target,) = targets
    if target is None or target in {var for stmt in statements(loop.body) for var in defined(stmt)}:
        return None
    read = [_seen(step.call.args[0], step.bases) for step in steps if step is not None and step.call.op.name in LOADS]
    apart = [isinstance(var, Var) and roots.get(var, var) is not roots.get(target, target) for var in read]
    return target if all(apart) else None


def is_counting(call: Call) -> bool:
    """Return whether an update adds integers to so few elements that private copies of them pay."""
    given = arguments(call)
    x, index = given["x"], _indices(call)
    assert isinstance(x, Expr)
    type_ = shaped(x)
    if call.op.spec.combine != "add" or type_.dtype.is_float() or _by_row(call) or not is_static(type_.shape):
        return False
    size = prod(static_shape(type_.shape))
    return COPIES * size * type_.dtype.get_byte() <= NEAR and prod(index.shape) >= WORTH * size


def _indices(call: Call) -> TileType:
    index = arguments(call)["indices"]
    assert isinstance(index, Expr) and isinstance(index.type, TileType)
    return index.type


def _by_row(call: Call) -> bool:
    given = arguments(call)
    x, axis = given["x"], given["axis"]
    assert isinstance(x, Expr) and (axis is None or isinstance(axis, int))
    return takes_rows(shaped(x), axis)


def _steps(program: Program, body: SeqStmts, names: Names | None, bases: Names | None) -> Iterator[Step | None]:
    """Yield the ops of statements, and of functions that they call; None for anything else that they do."""
    stmts = list(body)
    read = frozenset(variables(expr for stmt in stmts for expr in used(stmt)))
    for stmt in stmts:
        if isinstance(stmt, ForStmt) and stmt.kind is not ForKind.Parallel and not stmt.iter_args:
            yield from _steps(program, stmt.body, names, bases)
        elif not isinstance(stmt, ReturnStmt):
            yield from _steps_of(program, stmt, read, names, bases)
            bases = _with_view(stmt, bases)


def _steps_of(
    program: Program, stmt: Stmt, read: frozenset[Var], names: Names | None, bases: Names | None
) -> Iterator[Step | None]:
    value = evaluated(stmt)
    if isinstance(value, Invoke):
        callee = program[value.op.name]
        pairs = list(zip(callee.params, value.args, strict=True))
        given, below = ({p: _seen(a, known) for p, a in pairs} for known in (names, bases))
        yield from _steps(program, callee.body, given, below)
    elif isinstance(value, Call):
        yield Step(value, isinstance(stmt, AssignStmt) and stmt.var in read, names, bases)
    else:
        yield None


def _with_view(stmt: Stmt, bases: Names | None) -> Names | None:
    """Return bases with a view that a statement of a called function makes."""
    value = evaluated(stmt)
    if bases is None or not isinstance(stmt, AssignStmt) or not isinstance(value, Call) or not value.op.spec.is_view:
        return bases
    given = arguments(value)[value.op.spec.alias or ""]
    return {**bases, stmt.var: _seen(given, bases)} if isinstance(given, Expr) else bases


def _may_repeat(call: Call, most: int) -> bool:
    """Return whether every thread may do what an op does, which computes no more than so many elements."""
    spec, type_ = call.op.spec, call.type
    if spec.is_atomic or call.op.kind is Kind.SCALAR or spec.is_view or call.op.name in READS:
        return True
    is_plain = spec.family in COMPUTED or spec.name in COMPUTED
    return spec.computes and is_plain and isinstance(type_, TileType) and prod(type_.shape) <= most


def _target(step: Step) -> Var | None:
    """Return the tensor that an update changes, as the loop knows it; None where what it gives is read."""
    x = _seen(step.call.args[0], step.names)
    return x if isinstance(x, Var) and not step.is_read and not is_counting(step.call) else None


def _seen(value: Expr, names: Names | None) -> Expr | None:
    """Return what a value is called in the loop: of what a called function makes, nothing is known there."""
    return value if names is None else names.get(value) if isinstance(value, Var) else None
