"""Distant parts: a program for ranks that share no memory, each of which works on copies of its peers' parts.

What reads a part has its elements fetched first, what writes one has them sent after it. What adds to one starts from
zeros, and these are added where the part lies. Signals say in what order that is, as they do for ranks that share it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tilewright.core.build import arguments, call
from tilewright.core.enums import AtomicType
from tilewright.core.expr import ABSENT, Call, Expr, Invoke, MakeTuple, Submit, integer
from tilewright.core.program import Function, Program
from tilewright.core.rewrite import Rewriter
from tilewright.core.stmt import AssignStmt, EvalStmt, Stmt
from tilewright.core.visitor import expressions, statements
from tilewright.errors import UnsupportedFeatureError
from tilewright.ops.registry import OPS
from tilewright.passes import inline, ssa
from tilewright.passes.aliases import Aliases, Footprint, Footprints

PART, NOTIFY = "distributed.part", "distributed.notify"
_CELLS = "distributed.post", "distributed.until", "distributed.holds"
"""What is done to signals by pointers."""
_READ = {"tile.load": ("offsets", "shapes"), "tensor.read": ("indices",)}
"""Which operands say where ops read less than they are given, and how much."""
_WRITTEN = {
    "tile.store": ("offsets", "shapes", "tile"), "tensor.assemble": ("offset", "source"), "tensor.write": ("indices",),
}  # fmt: skip
"""Which operands say where ops write, and how much: the first of those that are given."""


def run(program: Program) -> Program:
    """Return a program that fetches what it reads of peers, and sends what it writes."""
    program = inline.run(ssa.run(program))  # kernels that are launched write to the parts that they are given
    footprints = Footprints(program)
    return program.with_functions([_Bringing(function, footprints).made() for function in program.function_list])


def reaches_peers(program: Program) -> bool:
    """Return whether a program touches the parts of peers, or sends them signals."""
    calls = (e for function in program.function_list for s in statements(function.body) for e in expressions(s))
    return any(isinstance(call, Call) and call.op.name in (PART, NOTIFY) for call in calls)


class _Parts(Aliases):
    """Which tensors may lie in copies of parts."""

    def handed_on(self, expr: Expr) -> Sequence[Expr] | None:
        """A part is memory of its own."""
        return None if isinstance(expr, Call) and expr.op.name == PART else super().handed_on(expr)


class _Bringing(Rewriter):
    """Writes fetches and sends around what touches parts."""

    def __init__(self, function: Function, footprints: Mapping[str, Footprint]) -> None:
        super().__init__()
        self.function = function
        self._aliases = _Parts(function.body, footprints)
        assigned = [s for s in statements(function.body) if isinstance(s, AssignStmt)]
        self._windows = {
            s.var: s.value.args[0] for s in assigned if isinstance(s.value, Call) and s.value.op.name == PART
        }

    def made(self) -> Function:
        """Return the function, rewritten."""
        return self.function.with_body(self.body(self.function.body)) if self._windows else self.function

    def assign(self, stmt: AssignStmt) -> Sequence[Stmt]:
        """Rewrite an assignment."""
        return self._around(stmt, stmt.value, super().assign(stmt))

    def evaluate(self, stmt: EvalStmt) -> Sequence[Stmt]:
        """Rewrite an expression evaluated for its effect."""
        return self._around(stmt, stmt.expr, super().evaluate(stmt))

    def _around(self, stmt: Stmt, expr: Expr, made: Sequence[Stmt]) -> Sequence[Stmt]:
        if isinstance(expr, (Invoke, Submit)):
            return [*self._given(expr), *made]
        if not isinstance(expr, Call) or expr.op.spec.is_view:
            return made
        if expr.op.name in _CELLS:
            return self._named(expr, made)
        return [*self._fetches(expr), *made, *self._written("send", expr)]

    def _named(self, expr: Call, made: Sequence[Stmt]) -> Sequence[Stmt]:
        """Return what is done to a signal, which says the window that it may lie in a part of."""
        *before, last = made
        window = self._window(arguments(expr)["cell"])
        if window is None or not isinstance(last, (AssignStmt, EvalStmt)):
            return made
        plain = last.value if isinstance(last, AssignStmt) else last.expr
        assert isinstance(plain, Call)
        naming = call(expr.op.spec, {**arguments(plain), "window": self.expr(window)}, expr.span)
        return [*before, replace(last, value=naming) if isinstance(last, AssignStmt) else replace(last, expr=naming)]

    def _window(self, tensor: object) -> Expr | None:
        """Return a window of whose parts a tensor may be one."""
        owners = self._aliases.owners(tensor) if isinstance(tensor, Expr) else ()
        return next((self._windows[owner] for owner in owners if owner in self._windows), None)

    def _fetches(self, expr: Call) -> Iterator[Stmt]:
        spec, given = expr.op.spec, arguments(expr)
        region = _region(_READ.get(expr.op.name, ()), given)
        for name, operand in given.items():
            if name != spec.writes and name not in spec.unread and (window := self._window(operand)) is not None:
                yield self._op("fetch", expr, window=window, view=operand, **region)
        if given.get("atomic") is AtomicType.Add:
            yield from self._written("fetch", expr)

    def _written(self, name: str, expr: Call) -> Iterator[Stmt]:
        """Yield what is to be done with what an op writes."""
        given, written = arguments(expr), expr.op.spec.writes
        view = given[written] if written is not None else None
        if (window := self._window(view)) is None:
            return
        if expr.op.name not in _WRITTEN or given.get("mask", ABSENT) is not ABSENT:
            raise self._refused(expr.op.spec.name, expr)
        region = _region(_WRITTEN[expr.op.name], given)
        yield self._op(name, expr, window=window, view=view, atomic=given.get("atomic", AtomicType.None_), **region)

    def _given(self, expr: Invoke | Submit) -> Iterator[Stmt]:
        """Yield the fetches of what a call is given, of which it can only read."""
        footprint = self._aliases.footprint(expr)
        for position, arg in enumerate(expr.args):
            if (window := self._window(arg)) is None:
                continue
            if position in footprint.writes:
                raise self._refused(expr.op.name, expr)
            yield self._op("fetch", expr, window=window, view=arg)

    def _refused(self, name: str, expr: Expr) -> UnsupportedFeatureError:
        message = f"`{name}` cannot write to the part of a rank on another machine"
        error = UnsupportedFeatureError(message, spans=[expr.span], help="pld.tensor.put takes there what was computed")
        error.function = self.function.name
        return error

    def _op(self, name: str, at: Expr, **given: Any) -> Stmt:
        spec = OPS[f"distributed.{name}"].spec
        bound = {p.name: given.get(p.name, ABSENT if p.is_operand else AtomicType.None_) for p in spec.parameters}
        found = {key: self.expr(value) if isinstance(value, Expr) else value for key, value in bound.items()}
        return EvalStmt(call(spec, found, at.span), at.span)


def _region(names: Sequence[str], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return where a region lies and how large it is, as an op says in some operands: one element without a size."""
    if not names:
        return {}
    at, *sizes = names
    offsets, size = given[at], next((given[name] for name in sizes if given[name] is not ABSENT), None)
    if size is None:
        size = MakeTuple(tuple(integer(1) for _ in offsets.elements))
    return {"offsets": offsets, "shapes" if isinstance(size, MakeTuple) else "source": size}
