"""Statements: what a program does, in order.

Control flow is structured. Before conversion to SSA a variable may be assigned many times and loops carry values by
assigning outer variables; afterwards every variable has one definition, loops carry values through `iter_args`, their
bodies end in a yield, and `return_vars` name what comes out. Scopes (`with`) do not hide names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import TypeAlias

from tilewright.core.enums import ForKind, Level, Role, ScopeMode
from tilewright.core.expr import Attribute, Expr, Var
from tilewright.core.node import node
from tilewright.source import UNKNOWN, Span

Attributes: TypeAlias = Mapping[str, Attribute]


@node
class SeqStmts:
    """Statements in order: the body of everything that has one."""

    stmts: tuple[Stmt, ...] = ()

    def __iter__(self) -> Iterator[Stmt]:
        return iter(self.stmts)

    def __len__(self) -> int:
        return len(self.stmts)


@node
class AssignStmt:
    """`var = value`."""

    var: Var
    value: Expr
    span: Span = UNKNOWN


@node
class EvalStmt:
    """An expression evaluated for its effect."""

    expr: Expr
    span: Span = UNKNOWN


@node
class IterArg:
    """A value carried around a loop: the variable the body sees, and what it starts as."""

    var: Var
    init: Expr


@node
class ForStmt:
    """A counted loop; `kind` says what it promises about its iterations."""

    loop_var: Var
    start: Expr
    stop: Expr
    step: Expr
    body: SeqStmts
    kind: ForKind = ForKind.Sequential
    iter_args: tuple[IterArg, ...] = ()
    return_vars: tuple[Var, ...] = ()
    attrs: Attributes = field(default_factory=dict[str, Attribute])
    span: Span = UNKNOWN


@node
class WhileStmt:
    """A loop that runs while `condition`, which sees the carried values, holds."""

    condition: Expr
    body: SeqStmts
    iter_args: tuple[IterArg, ...] = ()
    return_vars: tuple[Var, ...] = ()
    span: Span = UNKNOWN


@node
class IfStmt:
    """A branch. With `return_vars`, each branch that falls through ends in a yield of as many values."""

    condition: Expr
    then_body: SeqStmts
    else_body: SeqStmts | None = None
    return_vars: tuple[Var, ...] = ()
    span: Span = UNKNOWN


@node
class YieldStmt:
    """The values a loop body or branch hands on."""

    values: tuple[Expr, ...]
    span: Span = UNKNOWN


@node
class ReturnStmt:
    """The values a function returns."""

    values: tuple[Expr, ...] = ()
    span: Span = UNKNOWN


@node
class BreakStmt:
    """Leave the innermost loop; `values` are what it carries at this point."""

    values: tuple[Expr, ...] = ()
    span: Span = UNKNOWN


@node
class ContinueStmt:
    """Go on with the next iteration; `values` are what the loop carries at this point."""

    values: tuple[Expr, ...] = ()
    span: Span = UNKNOWN


@node
class InCoreScopeStmt:
    """`with pl.at(level=pl.Level.CORE_GROUP)`: a kernel written in place.

    `dumps` are tensors to look at when it is dispatched, `no_dep_args` such as order nothing.
    """

    body: SeqStmts
    name_hint: str = ""
    task: Var | None = None
    deps: tuple[Expr, ...] = ()
    dumps: tuple[Expr, ...] = ()
    no_dep_args: tuple[Expr, ...] = ()
    attrs: Attributes = field(default_factory=dict[str, Attribute])
    span: Span = UNKNOWN


@node
class HierarchyScopeStmt:
    """`with pl.at(level=...)` at another level of the machine."""

    level: Level
    body: SeqStmts
    role: Role | None = None
    name_hint: str = ""
    task: Var | None = None
    span: Span = UNKNOWN


@node
class SpmdScopeStmt:
    """`pl.spmd(n)`: the body once per block, with its block index in `loop_var` where that has a name."""

    core_num: Expr
    body: SeqStmts
    loop_var: Var | None = None
    name_hint: str = ""
    task: Var | None = None
    deps: tuple[Expr, ...] = ()
    predicate: Expr | None = None
    attrs: Attributes = field(default_factory=dict[str, Attribute])
    span: Span = UNKNOWN


@node
class ClusterScopeStmt:
    """`with pl.cluster()`: kernels that share a core group."""

    body: SeqStmts
    name_hint: str = ""
    span: Span = UNKNOWN


@node
class RuntimeScopeStmt:
    """`with pl.scope(mode=...)`: who orders the tasks dispatched inside."""

    body: SeqStmts
    mode: ScopeMode = ScopeMode.AUTO
    span: Span = UNKNOWN


ScopeStmt: TypeAlias = InCoreScopeStmt | HierarchyScopeStmt | SpmdScopeStmt | ClusterScopeStmt | RuntimeScopeStmt
LoopStmt: TypeAlias = ForStmt | WhileStmt
ExitStmt: TypeAlias = YieldStmt | ReturnStmt | BreakStmt | ContinueStmt
Stmt: TypeAlias = AssignStmt | EvalStmt | IfStmt | LoopStmt | ExitStmt | ScopeStmt

SCOPES = (InCoreScopeStmt, HierarchyScopeStmt, SpmdScopeStmt, ClusterScopeStmt, RuntimeScopeStmt)
"""The statement classes that only wrap a body."""

EMPTY = SeqStmts()
