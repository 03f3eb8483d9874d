"""Walking: every statement, expression and type below a node, in program order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tilewright.core.expr import Call, ConstInt, Expr, Invoke, MakeTuple, Submit, TupleGetItem, Var
from tilewright.core.stmt import (
    SCOPES,
    AssignStmt,
    BreakStmt,
    ContinueStmt,
    EvalStmt,
    ForStmt,
    IfStmt,
    InCoreScopeStmt,
    ReturnStmt,
    SeqStmts,
    SpmdScopeStmt,
    Stmt,
    WhileStmt,
    YieldStmt,
)
from tilewright.core.types import Type


def bodies(stmt: Stmt) -> tuple[SeqStmts, ...]:
    """Return the bodies a statement holds."""
    if type(stmt) in _PLAIN:
        return ()
    if isinstance(stmt, IfStmt):
        return (stmt.then_body,) if stmt.else_body is None else (stmt.then_body, stmt.else_body)
    return (stmt.body,) if isinstance(stmt, (ForStmt, WhileStmt, *SCOPES)) else ()


_PLAIN = frozenset((AssignStmt, EvalStmt))
"""What most statements are, and holds no body."""


def statements(body: SeqStmts) -> Iterator[Stmt]:
    """Yield every statement of a body, outer before inner."""
    for stmt in body:
        yield stmt
        for inner in bodies(stmt):
            yield from statements(inner)


def used(stmt: Stmt) -> tuple[Expr, ...]:
    """Return the expressions a statement itself evaluates, not those of its bodies."""
    match stmt:
        case AssignStmt():
            return (stmt.value,)
        case EvalStmt():
            return (stmt.expr,)
        case ForStmt():
            return (stmt.start, stmt.stop, stmt.step, *(arg.init for arg in stmt.iter_args))
        case WhileStmt():
            return (*(arg.init for arg in stmt.iter_args), stmt.condition)
        case IfStmt():
            return (stmt.condition,)
        case YieldStmt() | ReturnStmt() | BreakStmt() | ContinueStmt():
            return stmt.values
        case SpmdScopeStmt():
            return (stmt.core_num, *stmt.deps, *(() if stmt.predicate is None else (stmt.predicate,)))
        case InCoreScopeStmt():
            return (*stmt.deps, *stmt.dumps, *stmt.no_dep_args)
        case _:
            return ()


def defined(stmt: Stmt) -> tuple[Var, ...]:
    """Return the variables a statement binds, without those of its bodies."""
    match stmt:
        case AssignStmt():
            return (stmt.var,)
        case ForStmt():
            return (stmt.loop_var, *(arg.var for arg in stmt.iter_args), *stmt.return_vars)
        case WhileStmt():
            return (*(arg.var for arg in stmt.iter_args), *stmt.return_vars)
        case IfStmt():
            return stmt.return_vars
        case SpmdScopeStmt():
            return tuple(v for v in (stmt.loop_var, stmt.task) if v is not None)
        case _:
            task = getattr(stmt, "task", None)
            return (task,) if isinstance(task, Var) else ()


def children(expr: Expr) -> tuple[Expr, ...]:
    """Return the operands of an expression."""
    match expr:
        case Call() | Invoke():
            return expr.args
        case Submit():
            return (*expr.args, *expr.deps, *(e for e in (expr.core_num, expr.predicate) if e is not None))
        case MakeTuple():
            return expr.elements
        case TupleGetItem():
            return (expr.value,)
        case _:
            return ()


def subexpressions(expr: Expr) -> Iterator[Expr]:
    """Yield an expression and everything in it."""
    yield expr
    for child in children(expr):
        yield from subexpressions(child)


def expressions(stmt: Stmt) -> Iterator[Expr]:
    """Yield every expression a statement itself evaluates, with everything in them."""
    for expr in used(stmt):
        yield from subexpressions(expr)


def variables(exprs: Iterable[Expr]) -> list[Var]:
    """Return every variable that expressions read, in order, as often as they read it."""
    found: list[Var] = []
    pending = [*exprs][::-1]
    while pending:
        expr = pending.pop()
        if type(expr) is Var:
            found.append(expr)
        elif type(expr) is Call:
            pending.extend(expr.args[::-1])
        elif type(expr) is not ConstInt:
            pending.extend(children(expr)[::-1])
    return found


def types_of(stmt: Stmt) -> Iterator[Type]:
    """Yield the types of the variables a statement binds."""
    for var in defined(stmt):
        yield var.type
