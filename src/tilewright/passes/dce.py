"""Dead code: what neither writes memory nor reaches a return goes away, carried values included."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tilewright.core.expr import Expr, Var
from tilewright.core.op import Effect
from tilewright.core.program import Program
from tilewright.core.stmt import (
    AssignStmt,
    BreakStmt,
    ContinueStmt,
    EvalStmt,
    ForStmt,
    IfStmt,
    ReturnStmt,
    SeqStmts,
    Stmt,
    WhileStmt,
    YieldStmt,
)
from tilewright.core.visitor import bodies, defined, used, variables
from tilewright.passes.aliases import Aliases
from tilewright.passes.effects import effect_of
from tilewright.passes.identity import written_tensor
from tilewright.passes.narrow import Narrower


def run(program: Program) -> Program:
    """Remove dead code from every function."""
    return program.with_functions([f.with_body(_sweep(f.body)) for f in program.function_list])


def _sweep(body: SeqStmts) -> SeqStmts:
    marks = _Marks(body)
    return body if marks.all_matter() else _Sweeper(marks).body(body)


class _Marks:
    """Which statements and variables matter."""

    def __init__(self, body: SeqStmts) -> None:
        self.live_vars: set[Var] = set()
        self.live_stmts: set[int] = set()
        self._stmts: list[Stmt] = []
        self._parents: dict[int, Stmt | None] = {}
        self._needs: dict[Var, list[Expr]] = {}
        self._owner: dict[Var, Stmt] = {}
        self._exits: dict[int, list[Stmt]] = {}
        self._pending: list[Var] = []
        self._writers: dict[Var, list[Stmt]] = {}
        self._aliases = Aliases(body)
        roots = list(self._collect(body, None, None, None))
        for stmt in roots:
            self._revive(stmt)
        while self._pending:
            var = self._pending.pop()
            if var in self._owner:
                self._revive(self._owner[var])
            self._want(self._needs.get(var, ()))
            for writer in self._writers.get(var, ()):
                self._revive(writer)

    def all_matter(self) -> bool:
        """Return whether nothing goes away, of statements and of the values they hand on."""
        return all(
            isinstance(stmt, YieldStmt) or (id(stmt) in self.live_stmts and self.kept(stmt) is None)
            for stmt in self._stmts
        )

    def kept(self, stmt: Stmt) -> tuple[int, ...] | None:
        """Return which values a loop or branch still hands on, or None for all of them."""
        if isinstance(stmt, (AssignStmt, EvalStmt)):  # as most are, and hand on none
            return None
        pairs: list[tuple[Var, ...]] = []
        if isinstance(stmt, (ForStmt, WhileStmt)):
            pairs = [(a.var, r) for a, r in zip(stmt.iter_args, stmt.return_vars, strict=True)]
        elif isinstance(stmt, IfStmt):
            pairs = [(r,) for r in stmt.return_vars]
        kept = tuple(i for i, group in enumerate(pairs) if any(var in self.live_vars for var in group))
        return None if len(kept) == len(pairs) else kept

    def _collect(self, body: SeqStmts, parent: Stmt | None, loop: Stmt | None, region: Stmt | None) -> Iterable[Stmt]:
        """Note who defines and needs what; yield the statements that matter by themselves."""
        for stmt in body:
            self._stmts.append(stmt)
            self._parents[id(stmt)] = parent
            for var in defined(stmt):
                self._owner[var] = stmt
            match stmt:
                case AssignStmt() | EvalStmt():
                    value = stmt.value if isinstance(stmt, AssignStmt) else stmt.expr
                    if effect_of(value) is Effect.WRITE and not self._is_local_write(value, stmt):
                        yield stmt
                case ReturnStmt():
                    yield stmt
                case YieldStmt():
                    self._handed_on(region, stmt.values)
                case BreakStmt() | ContinueStmt():
                    self._handed_on(loop, stmt.values)
                    self._exits.setdefault(id(loop), []).append(stmt)
                case ForStmt() | WhileStmt():
                    for arg, result in zip(stmt.iter_args, stmt.return_vars, strict=True):
                        self._needs.setdefault(arg.var, []).append(arg.init)
                        self._needs.setdefault(result, []).append(arg.var)
                case _:
                    pass
            inner_loop = stmt if isinstance(stmt, (ForStmt, WhileStmt)) else loop
            inner_region = stmt if isinstance(stmt, (ForStmt, WhileStmt, IfStmt)) else region
            for inner in bodies(stmt):
                yield from self._collect(inner, stmt, inner_loop, inner_region)

    def _is_local_write(self, value: Expr, stmt: Stmt) -> bool:
        """Note a write into a buffer this function made: it only matters if the buffer does."""
        target = written_tensor(value)
        owners = () if target is None else self._aliases.owners(target)
        if not owners or not all(owner in self._aliases.made for owner in owners):
            return False
        for owner in owners:
            self._writers.setdefault(owner, []).append(stmt)
        return True

    def _handed_on(self, owner: Stmt | None, values: Sequence[Expr]) -> None:
        if isinstance(owner, (ForStmt, WhileStmt)):
            for arg, value in zip(owner.iter_args, values, strict=False):
                self._needs.setdefault(arg.var, []).append(value)
        elif isinstance(owner, IfStmt):
            for var, value in zip(owner.return_vars, values, strict=False):
                self._needs.setdefault(var, []).append(value)

    def _revive(self, stmt: Stmt | None) -> None:
        """Mark a statement, what it evaluates, and everything around it."""
        while stmt is not None and id(stmt) not in self.live_stmts:
            self.live_stmts.add(id(stmt))
            self._want(self._controls(stmt) if not isinstance(stmt, (AssignStmt, EvalStmt, ReturnStmt)) else used(stmt))
            for exit_ in self._exits.get(id(stmt), ()):
                self._revive(exit_)
            stmt = self._parents[id(stmt)]

    def _controls(self, stmt: Stmt) -> tuple[Expr, ...]:
        """Return what decides how a statement runs, without the values it hands on."""
        if isinstance(stmt, ForStmt):
            return stmt.start, stmt.stop, stmt.step
        if isinstance(stmt, WhileStmt):
            return (stmt.condition,)
        return () if isinstance(stmt, (BreakStmt, ContinueStmt, YieldStmt)) else used(stmt)

    def _want(self, exprs: Iterable[Expr]) -> None:
        for var in variables(exprs):
            if var not in self.live_vars:
                self.live_vars.add(var)
                self._pending.append(var)


class _Sweeper(Narrower):
    def __init__(self, marks: _Marks) -> None:
        super().__init__({})
        self.marks = marks

    def stmt(self, stmt: Stmt) -> Sequence[Stmt]:
        """Keep what is marked; exits and yields go with what they belong to."""
        if isinstance(stmt, YieldStmt):
            return super().stmt(stmt)
        if id(stmt) not in self.marks.live_stmts:
            return ()
        kept = self.marks.kept(stmt)
        if kept is not None:
            self.kept[id(stmt)] = kept
        return super().stmt(stmt)
