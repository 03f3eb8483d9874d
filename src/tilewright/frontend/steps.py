"""Steps: a program that remembers the lines it was read from, and what names stood for on each of them.

A kernel that is to be stepped through is read by the same front end as any other, which here leaves marks between the
statements it writes. A mark computes nothing, so the program means what it means without them.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, field
from typing import cast

from tilewright.core.expr import integer
from tilewright.core.node import node
from tilewright.core.stmt import AssignStmt, BreakStmt, ContinueStmt, EvalStmt, ReturnStmt, Stmt, YieldStmt
from tilewright.errors import ParserError
from tilewright.frontend.capture import Captured
from tilewright.frontend.functions import BUILDER
from tilewright.frontend.kernel_builder import KernelBuilder
from tilewright.frontend.looks import bound_names, looks
from tilewright.frontend.properties import ProgramSelf
from tilewright.frontend.walk.walker import Value
from tilewright.records import entity, mutable
from tilewright.source import Span


@entity
class Site:
    """One reading of a function: of a kernel, or of a helper at one of the calls that write it out."""

    captured: Captured
    parent: Site | None = None
    caller: Span | None = None


@node
class Step(EvalStmt):
    """A place between statements: what is bound when it is reached, and Python's own statement that runs there."""

    site: Site = cast(Site, None)
    bound: Mapping[str, Value] = field(default_factory=dict[str, Value])
    python: ast.stmt | None = None
    is_line: bool = False
    """Whether a line begins here."""
    given: tuple[Value, ...] = ()
    """What a helper that ends here gives."""


_EXITS = (YieldStmt, ReturnStmt, BreakStmt, ContinueStmt)
_OWN = (builtins.print, builtins.breakpoint)
"""What Python does itself on values that can be looked at."""


@mutable
class StepBuilder(KernelBuilder):
    """The walk over a kernel that leaves a step at each of its lines."""

    _: KW_ONLY
    site: Site | None = None

    def __post_init__(self) -> None:
        """Begin where the function is read: from a call, at the site of its caller."""
        super().__post_init__()
        self.site = Site(self.captured, self.site, self.caller)
        self.shown: dict[str, Value] = {}
        self.looked: dict[str, ParserError] = {}
        """Names that Python alone has bound, and why the kernel has not."""
        self.refused: ParserError | None = None
        """Why a statement inside the one that is read was refused."""

    def handed_back(self, node: ast.Return) -> Value:
        """Return what a helper gives at its last line, which is a step, too, and hands that on."""
        self._step(node, self._changed(()), is_line=True)
        value = super().handed_back(node)
        self._step(node, {}, given=(value,))
        return value

    def statement(self, node: ast.stmt) -> None:
        """Walk one statement between two steps."""
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            return
        if isinstance(node, ast.Return) and self.home is not None:
            super().statement(node)  # whose steps `handed_back` takes
        stmts, before, depth = self.stmts, len(self.stmts), (len(self.scope.frames), len(self.yields))
        is_exit = isinstance(node, (ast.Break, ast.Continue))
        if not (is_exit and stmts and isinstance(stmts[-1], YieldStmt)):  # whose values the exit takes along
            self._step(node, self._changed(()), is_line=True)
            before = len(stmts)
        if self._is_python(node):
            self._step(node, {}, python=node)
            return
        try:
            super().statement(node)
        except ParserError as error:
            if error is self.refused:
                raise
            if not looks(self, node, self.looked):
                self.refused = self._first_refusal(node) or error
                raise self.refused from None
            self._run_python(node, stmts, before, depth, error)
            return
        if not (stmts and isinstance(stmts[-1], _EXITS)) and (changed := self._changed(stmts[before:])):
            self._step(node, changed)

    def emit(self, stmt: Stmt) -> None:
        """Write the next statement, at this site."""
        if next((stmt.site for stmt in reversed(self.stmts) if isinstance(stmt, Step)), None) is not self.site:
            self.stmts.append(Step(integer(0), stmt.span, cast(Site, self.site)))
        super().emit(stmt)

    def _step(
        self,
        node: ast.stmt,
        bound: Mapping[str, Value],
        python: ast.stmt | None = None,
        *,
        is_line: bool = False,
        given: tuple[Value, ...] = (),
    ) -> None:
        span, site = self.captured.span(node), cast(Site, self.site)
        self.stmts.append(Step(integer(0), span, site, bound, python, is_line, given))

    def _is_python(self, node: ast.stmt) -> bool:
        """Return whether a statement is one of Python's that a program has none for."""
        if isinstance(node, ast.Assert):
            return isinstance(node.msg, ast.JoinedStr)  # which shows what values are then
        call = node.value if isinstance(node, ast.Expr) else None
        name = call.func.id if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) else ""
        if name not in ("print", "breakpoint") or self.find(name) is not None:
            return False
        return self.resolver.function.__globals__.get(name, getattr(builtins, name)) in _OWN

    def _run_python(
        self, node: ast.stmt, stmts: list[Stmt], before: int, depth: tuple[int, int], error: ParserError
    ) -> None:
        """Have a statement that was refused run as Python, and forget how far it was read."""
        frames, yields = depth
        self.stmts, self.declared = stmts, None
        del stmts[before:], self.yields[yields:]
        while len(self.scope.frames) > frames:
            self.scope.leave()
        self.looked |= dict.fromkeys(bound_names(node), error)
        self._step(node, {}, python=node)

    def _first_refusal(self, node: ast.stmt) -> ParserError | None:
        """Return why a name that a line of the kernel's reads is none of the kernel's."""
        read = [part.id for part in ast.walk(node) if isinstance(part, ast.Name) and self.find(part.id) is None]
        return next((self.looked[name] for name in read if name in self.looked), None)

    def _changed(self, written: Sequence[Stmt]) -> dict[str, Value]:
        """Return what names stand for that did not when the last step was left, or whose variables were assigned."""
        assigned = {id(stmt.var) for stmt in written if isinstance(stmt, AssignStmt)}
        found: dict[str, Value] = {}
        for name, value in self._visible():
            if name not in self.shown or self.shown[name] is not value or id(value) in assigned:
                found[name] = value
        self.shown |= found
        return found

    def _visible(self) -> Iterator[tuple[str, Value]]:
        names = {name: binding for frame in self.scope.frames for name, binding in frame.items()}
        for name, binding in names.items():
            if name.isidentifier() and not binding.problem and not isinstance(binding.value, ProgramSelf):
                yield name, binding.value


@contextmanager
def stepwise() -> Generator[None]:
    """Have kernels that are read inside leave steps."""
    token = BUILDER.set(StepBuilder)
    try:
        yield
    finally:
        BUILDER.reset(token)
