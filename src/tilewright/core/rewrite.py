"""Rewriting: statements rebuilt with some expressions replaced. What does not change is shared with the original.

A rewriter works on SSA form. When an operand changes, the op's type is inferred anew, so a fact learned in one place
(an offset became a constant) reaches everything below it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

from tilewright.core.endings import is_last
from tilewright.core.expr import Absent, Call, Const, Expr, Symbol, Var
from tilewright.core.extents import bounds
from tilewright.core.op import Interval
from tilewright.core.rewrite_expressions import ExpressionRewriter
from tilewright.core.stmt import (
    EMPTY,
    AssignStmt,
    BreakStmt,
    ClusterScopeStmt,
    ContinueStmt,
    EvalStmt,
    ForStmt,
    HierarchyScopeStmt,
    IfStmt,
    InCoreScopeStmt,
    IterArg,
    ReturnStmt,
    RuntimeScopeStmt,
    SeqStmts,
    SpmdScopeStmt,
    Stmt,
    WhileStmt,
    YieldStmt,
)
from tilewright.core.types import ScalarType, TensorType, TileType, Type, join, unplaced


class Rewriter(ExpressionRewriter):
    """Rebuilds bodies; subclasses override the methods of the statements they change."""

    def body(self, body: SeqStmts) -> SeqStmts:
        """Return a body with every statement rewritten; what never runs goes away."""
        result: list[Stmt] = []
        changed = False
        for stmt in body.stmts:
            rewritten = self.stmt(stmt)
            changed = changed or len(rewritten) != 1 or rewritten[0] is not stmt
            result.extend(rewritten)
            if rewritten and is_last(rewritten[-1]):
                break
        return SeqStmts(tuple(result)) if changed or len(result) != len(body.stmts) else body

    def stmt(self, stmt: Stmt) -> Sequence[Stmt]:
        """Return what stands for a statement: nothing, one or several."""
        if type(stmt) is AssignStmt:  # as most are
            return self.assign(stmt)
        return _STATEMENTS[type(stmt)](self, stmt)

    def assign(self, stmt: AssignStmt) -> Sequence[Stmt]:
        """Rewrite an assignment; a variable that turned out to be another value is replaced by it."""
        value = self.expr(stmt.value)
        if is_trivial(value) and (self.fresh or value is not stmt.value):
            self.replaced[stmt.var] = value
            return ()
        unchanged = value is stmt.value
        var = self.define(stmt.var, None if unchanged else _kept_place(stmt.var.type, value.type))
        if unchanged and var is stmt.var:
            return (stmt,)
        if isinstance(var.type, ScalarType) and (reach := bounds(value) or stmt.var.bounds):
            var = self._bounded(stmt.var, var, reach)
        return (AssignStmt(var, value, stmt.span),)

    def evaluate(self, stmt: EvalStmt) -> Sequence[Stmt]:
        """Rewrite an expression evaluated for its effect."""
        value = self.expr(stmt.expr)
        return (stmt,) if value is stmt.expr else (EvalStmt(value, stmt.span),)

    def for_loop(self, stmt: ForStmt) -> Sequence[Stmt]:
        """Rewrite a counted loop."""
        start, stop, step = self.expr(stmt.start), self.expr(stmt.stop), self.expr(stmt.step)
        inits = tuple(self.expr(arg.init) for arg in stmt.iter_args)
        loop_var = self.define(stmt.loop_var)
        if reach := loop_bounds(start, stop, step):
            loop_var = self._bounded(stmt.loop_var, loop_var, reach)
        iter_args, body = self._carrying(stmt.iter_args, inits, stmt.body)
        results = self._handed_out(stmt.return_vars, iter_args)
        same = (start, stop, step, loop_var, body) == (stmt.start, stmt.stop, stmt.step, stmt.loop_var, stmt.body)
        if same and iter_args is stmt.iter_args and results == stmt.return_vars:
            return (stmt,)
        bounded = replace(stmt, loop_var=loop_var, start=start, stop=stop, step=step)
        return (replace(bounded, iter_args=iter_args, body=body, return_vars=results),)

    def _bounded(self, old: Var, var: Var, reach: tuple[int, int]) -> Var:
        """Return a variable that knows its bounds, once they have become known."""
        if var.bounds == reach:
            return var
        if var is not old:
            var.bounds = reach
            return var
        new = Var(old.name_hint, old.type, old.span, reach)
        self.replaced[old] = new
        return new

    def _carrying(
        self, args: tuple[IterArg, ...], inits: tuple[Expr, ...], body: SeqStmts
    ) -> tuple[tuple[IterArg, ...], SeqStmts]:
        """Rewrite a loop's body with the narrowest types of what it carries that its turns keep.

        What a loop starts without has the type that turns hand on.
        """
        types = tuple(_narrower(init, arg.var) for init, arg in zip(inits, args, strict=True))
        if not any(types) and not any(isinstance(init, Absent) for init in inits):
            return self._iter_args(args, inits, types), self.body(body)
        before = dict(self.replaced)
        types, carried = self._narrowest(args, inits, types, body)
        handed = tuple(
            _handed_on(arg.var, position, carried[1]) if isinstance(arg.init, Absent) else types[position]
            for position, arg in enumerate(carried[0])
        )
        if handed == types:
            return carried
        after, self.replaced = self.replaced, before
        narrowed = self._carried(args, inits, handed, body)
        if narrowed is None:
            self.replaced = after
        return narrowed or carried

    def _narrowest(
        self, args: tuple[IterArg, ...], inits: tuple[Expr, ...], types: Sequence[Type | None], body: SeqStmts
    ) -> tuple[tuple[Type | None, ...], tuple[tuple[IterArg, ...], SeqStmts]]:
        """Rewrite a loop's body as if what it carries kept some types, widened by what turns hand on until it does."""
        before = dict(self.replaced)
        while any(types):
            iter_args, rewritten = self._iter_args(args, inits, types), self.body(body)
            handed = list(exits(rewritten))
            if all(_keeps(values, iter_args) for values in handed):
                return tuple(types), (iter_args, rewritten)
            self.replaced = dict(before)
            wider = tuple(
                _widened(arg.var, position, type_, handed)
                for position, (arg, type_) in enumerate(zip(args, types, strict=True))
            )
            types = () if wider == types else wider
        unknown = (None,) * len(args)
        return unknown, (self._iter_args(args, inits, unknown), self.body(body))

    def _carried(
        self, args: tuple[IterArg, ...], inits: tuple[Expr, ...], types: Sequence[Type | None], body: SeqStmts
    ) -> tuple[tuple[IterArg, ...], SeqStmts] | None:
        """Rewrite a loop's body with narrower types of what it carries, or return None where turns do not keep them."""
        iter_args, rewritten = self._iter_args(args, inits, types), self.body(body)
        return (iter_args, rewritten) if all(_keeps(values, iter_args) for values in exits(rewritten)) else None

    def _iter_args(
        self, args: tuple[IterArg, ...], inits: tuple[Expr, ...], types: Sequence[Type | None]
    ) -> tuple[IterArg, ...]:
        new = tuple(
            IterArg(self.define(arg.var, type_), init) for arg, init, type_ in zip(args, inits, types, strict=True)
        )
        unchanged = all(a.var is b.var and a.init is b.init for a, b in zip(new, args, strict=True))
        return args if unchanged else new

    def _handed_out(self, results: tuple[Var, ...], iter_args: tuple[IterArg, ...]) -> tuple[Var, ...]:
        return tuple(self.define(var, arg.var.type) for var, arg in zip(results, iter_args, strict=True))

    def while_loop(self, stmt: WhileStmt) -> Sequence[Stmt]:
        """Rewrite a conditional loop."""
        inits = tuple(self.expr(arg.init) for arg in stmt.iter_args)
        iter_args, body = self._carrying(stmt.iter_args, inits, stmt.body)
        condition = self.expr(stmt.condition)
        results = self._handed_out(stmt.return_vars, iter_args)
        same = condition is stmt.condition and body is stmt.body and iter_args is stmt.iter_args
        if same and results == stmt.return_vars:
            return (stmt,)
        return (replace(stmt, condition=condition, body=body, iter_args=iter_args, return_vars=results),)

    def branch(self, stmt: IfStmt) -> Sequence[Stmt]:
        """Rewrite a branch; once its condition is known, only the side that runs, for the other may make no sense."""
        condition = self.expr(stmt.condition)
        if isinstance(condition, Const):
            return self._taken(stmt, stmt.then_body if condition.value else stmt.else_body or EMPTY)
        then_body = self.body(stmt.then_body)
        else_body = None if stmt.else_body is None else self.body(stmt.else_body)
        results = tuple(
            self.define(var, _joined(var, position, then_body, else_body))
            for position, var in enumerate(stmt.return_vars)
        )
        same = condition is stmt.condition and then_body is stmt.then_body and else_body is stmt.else_body
        if same and results == stmt.return_vars:
            return (stmt,)
        return (replace(stmt, condition=condition, then_body=then_body, else_body=else_body, return_vars=results),)

    def _taken(self, stmt: IfStmt, body: SeqStmts) -> Sequence[Stmt]:
        stmts = self.body(body).stmts
        if not stmts or not isinstance(stmts[-1], YieldStmt):
            return stmts
        self.replaced.update(zip(stmt.return_vars, stmts[-1].values, strict=True))
        return stmts[:-1]

    def exit(self, stmt: YieldStmt | ReturnStmt | BreakStmt | ContinueStmt) -> Sequence[Stmt]:
        """Rewrite the values a body hands on."""
        values = self.exprs(stmt.values)
        return (stmt,) if values is stmt.values else (replace(stmt, values=values),)

    def scope(self, stmt: Any) -> Sequence[Stmt]:
        """Rewrite a scope that only wraps a body."""
        changes: dict[str, Any] = {}
        if isinstance(stmt, SpmdScopeStmt):
            changes["core_num"] = self.expr(stmt.core_num)
            changes["loop_var"] = None if stmt.loop_var is None else self.define(stmt.loop_var)
            changes["predicate"] = None if stmt.predicate is None else self.expr(stmt.predicate)
        if isinstance(stmt, (SpmdScopeStmt, InCoreScopeStmt)):
            changes["deps"] = self.exprs(stmt.deps)
        if isinstance(stmt, InCoreScopeStmt):
            changes["dumps"], changes["no_dep_args"] = self.exprs(stmt.dumps), self.exprs(stmt.no_dep_args)
        changes["body"] = self.body(stmt.body)
        if isinstance(stmt, (SpmdScopeStmt, InCoreScopeStmt, HierarchyScopeStmt)) and stmt.task is not None:
            changes["task"] = self.define(stmt.task)
        same = all(getattr(stmt, name) is value for name, value in changes.items())
        return (stmt,) if same else (replace(stmt, **changes),)


_STATEMENTS: Mapping[type, Callable[[Rewriter, Any], Sequence[Stmt]]] = {
    AssignStmt: lambda r, s: r.assign(s),
    EvalStmt: lambda r, s: r.evaluate(s),
    ForStmt: lambda r, s: r.for_loop(s),
    WhileStmt: lambda r, s: r.while_loop(s),
    IfStmt: lambda r, s: r.branch(s),
    **dict.fromkeys((YieldStmt, ReturnStmt, BreakStmt, ContinueStmt), lambda r, s: r.exit(s)),
    **dict.fromkeys(
        (InCoreScopeStmt, HierarchyScopeStmt, SpmdScopeStmt, ClusterScopeStmt, RuntimeScopeStmt),
        lambda r, s: r.scope(s),
    ),
}


def _narrower(init: Expr, var: Var) -> Type | None:
    """Return the type a carried value starts with where it is narrower than the one it is carried as."""
    return None if isinstance(init, Absent) else _narrowed(var, unplaced(init.type))


def _narrowed(var: Var, type_: Type | None) -> Type | None:
    if type_ is None or not isinstance(var.type, (TileType, TensorType)) or type_ == unplaced(var.type):
        return None
    return type_ if join(unplaced(var.type), type_) == var.type else None


def _handed_on(var: Var, position: int, body: SeqStmts) -> Type | None:
    """Return the type that turns give a value their loop starts without, where it is narrower than the one it has."""
    return _narrowed(var, _covering([unplaced(values[position].type) for values in exits(body) if values]))


def _widened(var: Var, position: int, type_: Type | None, handed: Sequence[Sequence[Expr]]) -> Type | None:
    """Return the type that also covers what turns hand on, where it is narrower than the one the value has."""
    if type_ is None:
        return None
    return _narrowed(var, _covering([type_, *(unplaced(values[position].type) for values in handed if values)]))


def _covering(types: Sequence[Type]) -> Type | None:
    """Return the type that covers all of some, or None where there is none."""
    return reduce(lambda a, b: None if a is None else join(a, b), types[1:], types[0]) if types else None


def _keeps(values: Sequence[Expr], iter_args: Sequence[IterArg]) -> bool:
    """Return whether what a turn hands on fits the types its loop carries."""
    pairs = zip(values, iter_args, strict=True) if values else ()
    return all(join(arg.var.type, unplaced(value.type)) == arg.var.type for value, arg in pairs)


def exits(body: SeqStmts) -> Iterator[tuple[Expr, ...]]:
    """Yield what is handed on at each exit that belongs to the loop around a body."""
    if body.stmts and isinstance(last := body.stmts[-1], YieldStmt):
        yield last.values
    yield from _early_exits(body)


def _early_exits(body: SeqStmts) -> Iterator[tuple[Expr, ...]]:
    for stmt in body:
        if isinstance(stmt, (BreakStmt, ContinueStmt)):
            yield stmt.values
        elif isinstance(stmt, IfStmt):
            yield from _early_exits(stmt.then_body)
            if stmt.else_body is not None:
                yield from _early_exits(stmt.else_body)
        elif not isinstance(stmt, (ForStmt, WhileStmt)) and isinstance(inner := getattr(stmt, "body", None), SeqStmts):
            yield from _early_exits(inner)


def _joined(var: Var, position: int, *bodies: SeqStmts | None) -> Type | None:
    """Return the type that covers what branches yield, or None to leave it as it was."""
    yields = [b.stmts[-1] for b in bodies if b is not None and b.stmts and isinstance(b.stmts[-1], YieldStmt)]
    types = [unplaced(y.values[position].type) for y in yields if position < len(y.values)]
    return _covering(types) if isinstance(var.type, (TileType, TensorType)) else None


def is_trivial(value: Expr) -> bool:
    """Return whether an expression is a name or a number, needing no variable of its own."""
    return type(value) is not Call and isinstance(value, (Var, Const, Symbol))  # most are calls


def loop_reach(start: Expr, stop: Expr, step: Expr) -> tuple[int, int] | None:
    """Return the least and largest value of a loop variable whose bounds are known and that takes any value."""
    if not (isinstance(start, Const) and isinstance(stop, Const) and isinstance(step, Const)) or step.value == 0:
        return None
    values = range(int(start.value), int(stop.value), int(step.value))
    return (min(values[0], values[-1]), max(values[0], values[-1])) if values else None


def loop_bounds(start: Expr, stop: Expr, step: Expr) -> tuple[int, int] | None:
    """Return between which values a loop variable lies in every turn, where how far its limits reach tells."""
    first, last = bounds(start), bounds(stop)
    if exact := loop_reach(start, stop, step):
        return exact
    if first is None or last is None or not isinstance(step, Const) or step.value == 0:
        return None
    if step.value < 0:
        low, high = last[0] + 1, first[1]
    else:
        low, high = first[0], min(last[1] - 1, _last_turn(start, stop, int(step.value), first, last))
    return (low, high) if low <= high else None


def _last_turn(start: Expr, stop: Expr, step: int, first: Interval, last: Interval) -> int:
    """Return what a loop that counts up has at most in its last turn; which that is steps tell from a number on."""
    if isinstance(start, Const):
        return first[0] + (last[1] - 1 - first[0]) // step * step
    is_apart = isinstance(stop, Call) and stop.op.spec.name == "add" and stop.args[0] is start
    length = bounds(stop.args[1]) if isinstance(stop, Call) and is_apart else None
    return first[1] + (length[1] - 1) // step * step if length else last[1] - 1


def _kept_place(old: Type, new: Type) -> Type:
    """Return the newly inferred type; the old one where they differ only in the place in memory."""
    memref = getattr(old, "memref", None)
    return old if memref is not None and replace(new, memref=memref) == old else new  # pyright: ignore[reportCallIssue, reportArgumentType]
