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


def statements(body: SeqStmts) -> list[Stmt]:
    """Return every statement of a body, outer before inner."""
    found: list[Stmt] = []
    for stmt in body.stmts:
        found.append(stmt)
        if type(stmt) not in _PLAIN:
            for inner in bodies(stmt):
                found += statements(inner)
    return found


def evaluated(stmt: Stmt) -> Expr | None:
    """Return the value that a plain statement assigns or drops, None for other statements."""
    return stmt.value if isinstance(stmt, AssignStmt) else stmt.expr if isinstance(stmt, EvalStmt) else None


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
        case Call():
            return expr.args
        case Invoke():
            return expr.args if expr.device is None else (*expr.args, expr.device)
        case Submit():
            return (*expr.args, *expr.deps, *(e for e in (expr.core_num, expr.predicate) if e is not None))
        case MakeTuple():
            return expr.elements
        case TupleGetItem():
            return (expr.value,)
        case _:
            return ()


def subexpressions(*exprs: Expr) -> list[Expr]:
    """Return expressions and everything in them, each before its operands."""
    found: list[Expr] = []
    for expr in exprs:
        found.append(expr)
        if type(expr) not in _LEAVES:
            found += subexpressions(*children(expr))
    return found


_LEAVES = frozenset((Var, ConstInt))
"""What most operands are, and have none themselves."""


def expressions(stmt: Stmt) -> list[Expr]:
    """Return every expression a statement itself evaluates, with everything in them."""
    return subexpressions(*used(stmt))


def variables(exprs: Iterable[Expr]) -> list[Var]:
    """Return every variable that expressions read, in order, as often as they read it."""
    found: list[Var] = []
    for expr in exprs:
        if type(expr) is Var:
            found.append(expr)
        elif type(expr) is Call:
            found += variables(expr.args)
        elif type(expr) not in _LEAVES:
            found += variables(children(expr))
    return found


def invocations(body: SeqStmts) -> list[Invoke | Submit]:
    """Return the calls and tasks of a body, in order."""
    found: list[Invoke | Submit] = []
    for expr in (expr for stmt in statements(body) for expr in used(stmt)):
        if type(expr) is not Call:  # whose operands are scalars, tensors and tiles
            found += [part for part in subexpressions(expr) if isinstance(part, (Invoke, Submit))]
    return found


def types_of(stmt: Stmt) -> Iterator[Type]:
    """Yield the types of the variables a statement binds."""
    for var in defined(stmt):
        yield var.type
