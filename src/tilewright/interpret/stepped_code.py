"""Stepped code: a function's steps as Python code that has the lines, names and frames of its author.

Every statement of the kernel becomes one of Python at the same line of the same file, which has a stepper run what the
front end made of it and then binds the names that it binds. A helper that is written out at a call is a function of its
own here, so that it has a frame of its own. Debuggers need nothing more.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from types import FunctionType
from typing import Any, TypeAlias

from tilewright.core.expr import Var
from tilewright.core.stmt import (
    AssignStmt,
    BreakStmt,
    ContinueStmt,
    EvalStmt,
    ForStmt,
    IfStmt,
    ReturnStmt,
    SeqStmts,
    SpmdScopeStmt,
    Stmt,
    WhileStmt,
    YieldStmt,
)
from tilewright.frontend.steps import Site, Step
from tilewright.frontend.tracebacks import STEPPER
from tilewright.records import mutable, record
from tilewright.source import Span

_TURN = "__turn__"


@record
class Ran:
    """Statements that run at one line, and what names stand for afterwards."""

    stmts: tuple[Stmt, ...]
    values: tuple[Any, ...] = ()


@record
class Inner:
    """A part of a function with a frame of its own, what its names stand for at first, and whose body it is, if any."""

    function: FunctionType
    values: tuple[Any, ...] = ()
    stmt: Stmt | None = None


Entry: TypeAlias = "Ran | Inner | Stmt"


@mutable
class SteppedCode:
    """The steps of one program: what its Python code refers to by number."""

    has_barrier: Callable[[SeqStmts], bool]
    stops: frozenset[str] = frozenset()
    """The loop variables at whose turns a debugger opens."""
    entries: list[Entry] = field(default_factory=list[Entry])

    def function(self, body: SeqStmts) -> Inner | None:
        """Return a function's body as Python code that takes a stepper, None for one that has no lines."""
        site = next((stmt.site for stmt in body if isinstance(stmt, Step)), None)
        return None if site is None else self.inner(site, body.stmts)

    def inner(
        self, site: Site, stmts: Sequence[Stmt], known: Mapping[str, Any] | None = None, of: Stmt | None = None
    ) -> Inner:
        """Return statements of one site as a function, whose parameters are what is known or bound from the start."""
        captured, first = site.captured, stmts[0] if stmts else None
        writer = _Writer(self, site, captured.span(captured.node))
        if known is None and isinstance(first, Step) and first.is_line:
            known, stmts = first.bound, (replace(first, bound={}), *stmts[1:])
        writer.bound |= (known := known or {})
        writer.body(stmts)
        names = [*known, STEPPER]
        module = ast.parse(f"def {captured.node.name}({', '.join(names)}):\n    pass")  # with all that a `def` has here
        (made,) = module.body
        assert isinstance(made, ast.FunctionDef)
        made.body = writer.lines or made.body
        _place(made, captured.span(captured.node))
        ast.fix_missing_locations(module)
        return Inner(_defined(module, site), tuple(known.values()), of)

    def number(self, entry: Entry) -> int:
        """Return the number under which the code finds something."""
        self.entries.append(entry)
        return len(self.entries) - 1


def _defined(module: ast.Module, site: Site) -> FunctionType:
    """Return the function that a module defines, among the names that its author's sees."""
    python = site.captured.function
    cells = zip(python.__code__.co_freevars, python.__closure__ or (), strict=True)
    names = dict(python.__globals__)
    for name, cell in cells:
        try:
            names[name] = cell.cell_contents
        except ValueError:  # not bound yet
            continue
    exec(compile(module, site.captured.source.filename, "exec", dont_inherit=True), names)  # noqa: S102 - made above
    return names[site.captured.node.name]


@mutable
class _Writer:
    """One function of Python code being written."""

    code: SteppedCode
    site: Site
    span: Span
    """The line that statements belong to."""
    lines: list[ast.stmt] = field(default_factory=list[ast.stmt])
    pending: list[Stmt] = field(default_factory=list[Stmt])
    """Statements of this line that are still to be written."""
    bound: dict[str, Any] = field(default_factory=dict[str, Any])
    stop: int | None = None
    """The loop at whose first step a debugger may open."""

    def body(self, stmts: Sequence[Stmt]) -> None:
        """Write statements, those of other sites as functions of their own."""
        at, owner = 0, self.site
        while at < len(stmts):
            stmt = stmts[at]
            owner = stmt.site if isinstance(stmt, Step) else self.site if _leaves(stmt) else owner
            child = self._child(owner)
            if child is None:
                self._statement(stmt)
                at += 1
                continue
            end = self._end(stmts, at, child)
            self.flush({})
            self._inner(child, stmts[at:end])
            at, owner = end, self.site
        self.flush({})

    def _child(self, site: Site) -> Site | None:
        """Return the helper called from here that a site is in, None for this site itself."""
        while site.parent is not None and site is not self.site:
            if site.parent is self.site:
                return site
            site = site.parent
        return None

    def _end(self, stmts: Sequence[Stmt], at: int, child: Site) -> int:
        """Return where the statements of a helper end."""
        for place in range(at, len(stmts)):
            stmt = stmts[place]
            if _leaves(stmt) or (isinstance(stmt, Step) and self._child(stmt.site) is not child):
                return place
        return len(stmts)

    def _inner(self, child: Site, stmts: Sequence[Stmt]) -> None:
        number = self.code.number(self.code.inner(child, stmts))
        self._line(ast.Expr(ast.Call(_called("inner", number), [], [])))

    def _statement(self, stmt: Stmt) -> None:
        match stmt:
            case Step():
                self._step(stmt)
            case AssignStmt() | EvalStmt():
                self.pending.append(stmt)
            case ForStmt() | WhileStmt():
                self._loop(stmt)
            case IfStmt():
                self._branch(stmt)
            case SpmdScopeStmt():
                self._grid(stmt)
            case ReturnStmt():
                self.flush({})
                self._line(ast.Return(_called("leave", self.code.number(stmt))))
            case YieldStmt() | BreakStmt() | ContinueStmt():
                self._exit(stmt)
            case _:
                self.flush({})
                self.body(stmt.body.stmts)
                self._name_task(stmt)

    def _step(self, step: Step) -> None:
        self.flush(step.bound)
        if self.stop is not None:
            opens = ast.Call(ast.Name("breakpoint", ast.Load()), [], [])
            self._line(ast.Expr(ast.BoolOp(ast.And(), [_called("stops", self.stop), opens])))
            self.stop = None
        self.span = step.span if step.is_line or not step.bound else self.span
        if step.is_line:
            self._line(ast.Pass())  # a line of its own, whatever comes of it
        if step.python is not None:
            self.lines.append(step.python)
        if step.given:
            ran = _called("", self.code.number(Ran((), step.given)))
            self._line(ast.Return(ast.Subscript(ran, ast.Constant(0), ast.Load())))

    def flush(self, bound: Mapping[str, Any]) -> None:
        """Write what is pending, and bind names to what they stand for then."""
        if not self.pending and not bound:
            return
        called = _called("", self.code.number(Ran(tuple(self.pending), tuple(bound.values()))))
        self.pending.clear()
        self.bound |= bound
        targets: list[ast.expr] = [ast.Name(name, ast.Store()) for name in bound]
        if not targets:
            self._line(ast.Expr(called))
        else:
            self._line(ast.Assign([ast.Tuple(targets, ast.Store())], called))

    def _loop(self, stmt: ForStmt | WhileStmt) -> None:
        self.flush({})
        number = self.code.number(stmt)
        self.stop = number if isinstance(stmt, ForStmt) and self._is_stop(stmt.loop_var) else None
        body = self._within(stmt.body)
        if isinstance(stmt, WhileStmt) and not stmt.iter_args:
            self._line(ast.While(_called("test", number), body, []))
            return
        self._line(ast.For(ast.Name(_TURN, ast.Store()), _called("turns", number), body, []))
        if stmt.iter_args:
            self._line(ast.Expr(_called("ended", number)))

    def _is_stop(self, turn: Var | None) -> bool:
        return turn is not None and turn.name_hint in self.code.stops

    def _branch(self, stmt: IfStmt) -> None:
        self.flush({})
        number = self.code.number(stmt)
        otherwise = [] if stmt.else_body is None else self._within(stmt.else_body)
        self._line(ast.If(_called("test", number), self._within(stmt.then_body), otherwise))
        if stmt.return_vars or any(isinstance(each, YieldStmt) for each in stmt.then_body):
            self._line(ast.Expr(_called("merged", number)))

    def _grid(self, stmt: SpmdScopeStmt) -> None:
        self.flush({})
        if self.code.has_barrier(stmt.body):
            inner = self.code.inner(self.site, stmt.body.stmts, dict(self.bound), stmt)
            run: list[ast.stmt] = [ast.Expr(_called("rounds", self.code.number(inner)))]
        else:
            number = self.code.number(stmt)
            blocks = _called("blocks", number)
            self.stop = number if self._is_stop(stmt.loop_var) else None
            run = [ast.For(ast.Name(_TURN, ast.Store()), blocks, self._within(stmt.body), [])]
        self._line(ast.If(_called("runs", self.code.number(stmt)), run, []))
        self._name_task(stmt)

    def _exit(self, stmt: YieldStmt | BreakStmt | ContinueStmt) -> None:
        self.flush({})
        self._line(ast.Expr(_called("leave", self.code.number(stmt))))
        if not isinstance(stmt, YieldStmt):
            self._line(ast.Break() if isinstance(stmt, BreakStmt) else ast.Continue())

    def _name_task(self, stmt: Stmt) -> None:
        if getattr(stmt, "task", None) is not None:
            self._line(ast.Expr(_called("named", self.code.number(stmt))))

    def _within(self, body: SeqStmts) -> list[ast.stmt]:
        """Return a body, which begins at the line of what it is the body of."""
        outer, span, self.lines = self.lines, self.span, []
        self.body(body.stmts)
        if not self.lines:
            self._line(ast.Pass())
        written, self.lines, self.span = self.lines, outer, span
        return written

    def _line(self, stmt: ast.stmt) -> None:
        self.lines.append(_place(stmt, self.span))


def _leaves(stmt: Stmt) -> bool:
    return isinstance(stmt, (ReturnStmt, YieldStmt, BreakStmt, ContinueStmt))


def _called(method: str, number: int) -> ast.Call:
    stepper: ast.expr = ast.Name(STEPPER, ast.Load())
    return ast.Call(ast.Attribute(stepper, method, ast.Load()) if method else stepper, [ast.Constant(number)], [])


def _place(stmt: Any, span: Span) -> Any:
    """Return a statement as one of a line, without its body."""
    stmt.lineno = stmt.end_lineno = span.line
    stmt.col_offset = stmt.end_col_offset = span.column
    for part in ast.iter_child_nodes(stmt):
        if isinstance(part, ast.expr):
            for each in ast.walk(part):
                each.lineno = each.end_lineno = span.line  # pyright: ignore[reportAttributeAccessIssue]
                each.col_offset = each.end_col_offset = span.column  # pyright: ignore[reportAttributeAccessIssue]
    return stmt
