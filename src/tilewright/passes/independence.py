"""Independence: the promise of parallel loops and grids that no turn needs another, held where it can be seen.

A value that blocks of a grid would hand on has no meaning, and is refused. A parallel loop whose turns hand one on runs
them one after the other, and one whose turns all write the same place leaves open which of them is last: both give a
warning. What only the running program shows is for the interpreter to find.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator
from typing import TypeGuard

from tilewright.core.build import arguments
from tilewright.core.enums import AtomicType, ForKind
from tilewright.core.expr import Call, Expr, Var
from tilewright.core.op import Role
from tilewright.core.program import Function, Program
from tilewright.core.rewrite import loop_reach
from tilewright.core.stmt import SCOPES, AssignStmt, ForStmt, IfStmt, SeqStmts, SpmdScopeStmt, Stmt, WhileStmt
from tilewright.core.types import ScalarType, TensorType
from tilewright.core.visitor import bodies, defined, statements, used, variables
from tilewright.dtypes import TASK_ID
from tilewright.errors import DependentBlocksError, DependentTurnsWarning, KernelError


def run(program: Program) -> Program:
    """Return the program unchanged; DependentBlocksError where a block needs what another one computes."""
    for function in program.function_list:
        found = [stmt for stmt in statements(function.body) if isinstance(stmt, (ForStmt, SpmdScopeStmt))]
        everywhere = _bindings(function) if found else Counter[Var]()
        for stmt in found:
            if isinstance(stmt, SpmdScopeStmt):
                _check_grid(stmt, function, everywhere)
            elif stmt.kind is ForKind.Parallel:
                _check_loop(stmt, function, everywhere)
    return program


def _bindings(function: Function) -> Counter[Var]:
    """Return how often each variable of a function is bound."""
    return Counter([*function.params, *(var for stmt in statements(function.body) for var in defined(stmt))])


def _check_grid(grid: SpmdScopeStmt, function: Function, everywhere: Counter[Var]) -> None:
    for var, stmt in _handed_on(grid, everywhere).items():
        error = DependentBlocksError(
            f"blocks of pl.spmd run at the same time, and none can go on from the '{var.name_hint}' of another",
            spans=[stmt.span],
            help=f"bind '{var.name_hint}' inside the block; to add up, store with atomic=pl.AtomicType.Add",
        )
        error.function = function.name
        raise error


def _check_loop(loop: ForStmt, function: Function, everywhere: Counter[Var]) -> None:
    reach = loop_reach(loop.start, loop.stop, loop.step)
    if reach is not None and reach[0] == reach[1]:
        return
    for var, stmt in _handed_on(loop, everywhere).items():
        message = f"turns of pl.parallel go on from the '{var.name_hint}' of others, and so run one after the other"
        _warn(message, stmt, function.name, "say pl.range, or let turns add up with atomic=pl.AtomicType.Add")
    for name, stmt in _same_places(loop):
        message = f"every turn of pl.parallel writes the same place of '{name}', and any of them may be the last"
        help = (
            f"let the place depend on '{loop.loop_var.name_hint}', say pl.range, or add with atomic=pl.AtomicType.Add"
        )
        _warn(message, stmt, function.name, help)


_warned: dict[str | tuple[str, type[Warning], int], int] = {}
"""What was said already: a program goes through the passes as often as somebody looks at it."""


def _warn(message: str, stmt: Stmt, function: str, help: str) -> None:
    mistake = KernelError(message, spans=[stmt.span], help=help)
    mistake.function = function
    span = stmt.span
    warnings.warn_explicit(str(mistake), DependentTurnsWarning, span.filename, span.line, registry=_warned)


def _handed_on(region: ForStmt | SpmdScopeStmt, everywhere: Counter[Var]) -> dict[Var, Stmt]:
    """Return the values that a turn reads before it has bound them itself, each with the statement that does.

    Tensors are not among them: their elements stay where they are. Nor are tasks, which order work themselves, nor what
    is bound nowhere but in the turns: each begins without it.
    """
    inside = Counter(var for stmt in statements(region.body) for var in defined(stmt) if _is_value(var))
    if not inside:
        return {}
    shared = {var for var, count in inside.items() if count < everywhere[var]}
    return {var: stmt for var, stmt in _read_first(region.body, set()).items() if var in shared} if shared else {}


def _is_value(var: Var) -> bool:
    return not isinstance(var.type, TensorType) and var.type != ScalarType(TASK_ID)


def _read_first(body: SeqStmts, bound: set[Var]) -> dict[Var, Stmt]:
    """Return what a body reads of variables that it may not have bound before; add those it surely binds to `bound`."""
    found: dict[Var, Stmt] = {}
    for stmt in body:
        own = defined(stmt) if isinstance(stmt, WhileStmt) else ()  # whose condition sees what it carries
        for var in variables(used(stmt)):
            if var not in bound and var not in own:
                found.setdefault(var, stmt)
        ends: list[set[Var]] = []
        for inner in bodies(stmt):
            ends.append(bound if isinstance(stmt, SCOPES) else {*bound, *defined(stmt)})
            found = _read_first(inner, ends[-1]) | found
        if isinstance(stmt, IfStmt) and len(ends) == 2:
            bound |= ends[0] & ends[1]
        bound.update(defined(stmt))
    return found


def _same_places(loop: ForStmt) -> Iterator[tuple[str, Stmt]]:
    """Yield the tensors of which every turn writes the same place, each with the statement that does."""
    found = [(stmt, *_written(expr)) for stmt in _always_run(loop.body) for expr in used(stmt) if _writes(expr)]
    apart = [(stmt, target, {target, *variables(places)}) for stmt, target, places in found if isinstance(target, Var)]
    if all(loop.loop_var in read for _, _, read in apart):
        return
    changing = {loop.loop_var, *(var for stmt in statements(loop.body) for var in _rebound(stmt))}
    for stmt, target, read in apart:
        if not changing & read:
            yield target.name_hint, stmt


def _rebound(stmt: Stmt) -> tuple[Var, ...]:
    """Return what a statement binds to something else than the buffer it was bound to."""
    if isinstance(stmt, AssignStmt) and isinstance(stmt.value, Call) and _written(stmt.value)[0] is stmt.var:
        return ()
    return defined(stmt)


def _writes(expr: Expr) -> TypeGuard[Call]:
    return isinstance(expr, Call) and expr.op.spec.writes is not None


def _written(call: Call) -> tuple[object, list[Expr]]:
    """Return the tensor that a call writes, None where it writes none or adds to it, and what says which place."""
    spec = call.op.spec
    if spec.writes is None or not isinstance(call.type, TensorType):
        return None, []
    given = arguments(call)
    if given.get("atomic") is AtomicType.Add:
        return None, []
    extents = [p.name for p in spec.operands if p.role is Role.EXTENTS]
    others = [p.name for p in spec.operands if p.name != spec.writes]  # indices among its data say where it writes
    places = [given[name] for name in extents or others]
    return given[spec.writes], [place for place in places if isinstance(place, Expr)]


def _always_run(body: SeqStmts) -> Iterator[Stmt]:
    """Yield the statements that run whenever a body does."""
    for stmt in body:
        yield stmt
        if isinstance(stmt, SCOPES) and not isinstance(stmt, SpmdScopeStmt):
            yield from _always_run(stmt.body)
