"""Outlining: kernels written in place become functions, and their scopes calls.

What a scope reads from outside becomes a parameter, what is read after it a result. Grids become functions that are
dispatched once per block. Scopes that only group work are dissolved.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from tilewright.core.build import call
from tilewright.core.enums import FunctionType, ParamDirection
from tilewright.core.expr import Attribute, Expr, GlobalVar, Invoke, Submit, Symbol, TupleGetItem, Var
from tilewright.core.extents import symbols_in
from tilewright.core.program import Function, Program
from tilewright.core.rewrite import Rewriter
from tilewright.core.signature import substituted
from tilewright.core.stmt import (
    AssignStmt,
    ClusterScopeStmt,
    EvalStmt,
    HierarchyScopeStmt,
    InCoreScopeStmt,
    ReturnStmt,
    RuntimeScopeStmt,
    SeqStmts,
    SpmdScopeStmt,
    Stmt,
)
from tilewright.core.types import ScalarType, TensorType, TupleType, Type
from tilewright.core.visitor import defined, expressions, statements
from tilewright.dtypes import INDEX, TASK_ID
from tilewright.ops.registry import OPS
from tilewright.passes.aliases import directions
from tilewright.passes.last_use import reads
from tilewright.records import record


def run(program: Program) -> Program:
    """Turn every kernel scope and grid into a function of its own."""
    taken = set(program.function_names)
    result: list[Function] = []
    for function in program.function_list:
        outliner = Outliner(function, taken)
        body = outliner.body(function.body)
        result += [*outliner.kernels, _orchestrating(function.with_body(body), bool(outliner.kernels))]
    return program.with_functions(result)


def _orchestrating(function: Function, calls_kernels: bool) -> Function:
    """Return a function that was written as a whole as what it has become: the caller of its kernels."""
    if not calls_kernels or function.func_type is not FunctionType.Opaque:
        return function
    return replace(function, func_type=FunctionType.Orchestration)


@record
class _Interface:
    """How a kernel meets its surroundings."""

    inputs: tuple[Var, ...]
    outputs: tuple[Var, ...]
    symbols: tuple[str, ...]
    """Named extents the kernel reads that none of its tensors carries."""
    unknown: frozenset[str]
    """Named extents that the shapes of its inputs are made of and none of its tensors carries."""


class Outliner(Rewriter):
    """Takes the scopes of a function out of it, each a function of its own."""

    def __init__(self, function: Function, taken: set[str]) -> None:
        super().__init__()
        self.function = function
        self.taken = taken
        self.kernels: list[Function] = []
        self.counts = {"chip": 0, "incore": 0, "spmd": 0}
        self.uses = reads(function.body)

    def scope(self, stmt: Any) -> Sequence[Stmt]:
        """Replace a scope by a call of the function it becomes, or by its statements."""
        if isinstance(stmt, (ClusterScopeStmt, HierarchyScopeStmt, RuntimeScopeStmt)):
            return self.body(stmt.body).stmts
        if isinstance(stmt, InCoreScopeStmt):
            return self.dispatch(stmt, self.body(stmt.body), FunctionType.InCore, "incore", None)
        assert isinstance(stmt, SpmdScopeStmt)
        return self._grid(stmt)

    def _grid(self, stmt: SpmdScopeStmt) -> Sequence[Stmt]:
        inner = SeqStmts(self.body(stmt.body).stmts)
        if stmt.loop_var is not None:
            index = call(OPS["tile.get_block_idx"].spec, {}, stmt.span)
            inner = SeqStmts((AssignStmt(stmt.loop_var, index, stmt.span), *inner.stmts))
        predicate = None if stmt.predicate is None else self.expr(stmt.predicate)
        return self.dispatch(stmt, inner, FunctionType.Spmd, "spmd", self.expr(stmt.core_num), predicate)

    def dispatch(
        self,
        stmt: InCoreScopeStmt | SpmdScopeStmt,
        body: SeqStmts,
        kind: FunctionType,
        word: str,
        core_num: Expr | None,
        predicate: Expr | None = None,
    ) -> Sequence[Stmt]:
        """Make the kernel and return the statements that call it."""
        before = reads(stmt.body)
        interface = self._interface(body, before, before if body is stmt.body else reads(body))
        kernel = self._kernel(stmt, body, interface, kind, word)
        self.kernels.append(kernel)
        args = (*interface.inputs, *(Symbol(name) for name in interface.symbols))
        deps = self.exprs(stmt.deps)
        types = tuple(var.type for var in interface.outputs)
        if stmt.task is None and core_num is None:
            value: Expr = Invoke(GlobalVar(kernel.name), args, _together(types), stmt.span)
            return _bound(value, interface.outputs, stmt)
        task = stmt.task or Var("task", ScalarType(TASK_ID), stmt.span)
        gives = TupleType((*types, task.type))
        value = Submit(
            GlobalVar(kernel.name), args, deps, core_num, gives, stmt.span, predicate, *self._said(stmt, args)
        )
        return _bound(value, (*interface.outputs, task), stmt)

    def _said(
        self, stmt: InCoreScopeStmt | SpmdScopeStmt, args: Sequence[Expr]
    ) -> tuple[tuple[Expr, ...], tuple[tuple[str, Attribute], ...]]:
        """Return what a scope says about its dispatch: which arguments to look at, and how it may be scheduled."""
        dumps = self.exprs(stmt.dumps) if isinstance(stmt, InCoreScopeStmt) else ()
        flags = ((name, stmt.attrs[name]) for name in ("allow_early_resolve", "sync_start") if name in stmt.attrs)
        return tuple(value for value in dumps if value in args), tuple(flags)

    def _interface(self, body: SeqStmts, before: Counter[Var], now: Counter[Var]) -> _Interface:
        """Return what a body needs and gives; of its reads, those before kernels inside it were taken out count too."""
        own = dict.fromkeys(var for stmt in statements(body) for var in defined(stmt))
        read = [var for var in now if var not in own]
        outputs = tuple(var for var in own if self.uses[var] > before[var])
        tensors = [var.type for var in read if isinstance(var.type, TensorType)]
        carried = {extent.name for type_ in tensors for extent in type_.shape if isinstance(extent, Symbol)}
        mentioned = sorted(_symbols(body) - carried)
        shapes = (extent for type_ in tensors for extent in (*type_.shape, *type_.valid))
        unknown = frozenset[str]().union(*map(symbols_in, shapes)) - carried
        return _Interface(tuple(read), outputs, tuple(mentioned), unknown)

    def _kernel(
        self,
        stmt: InCoreScopeStmt | SpmdScopeStmt,
        body: SeqStmts,
        interface: _Interface,
        kind: FunctionType,
        word: str,
    ) -> Function:
        name = self._name(stmt.name_hint, word)
        hidden = dict.fromkeys(interface.unknown)
        params = [Var(v.name_hint, substituted(v.type, hidden), v.span, v.bounds) for v in interface.inputs]
        extents = [Var(symbol, ScalarType(INDEX)) for symbol in interface.symbols]
        replaced: dict[Var, Expr] = dict(zip(interface.inputs, params, strict=True))
        copy = Rewriter(replaced, dict(zip(interface.symbols, extents, strict=True)), fresh=True)
        stmts = copy.body(body).stmts
        results = copy.exprs(interface.outputs)
        closing = (ReturnStmt(results, stmt.span),) if results else ()
        whole = SeqStmts((*stmts, *closing))
        used = (*directions(params, whole), *(ParamDirection.In for _ in extents))
        types: tuple[Type, ...] = tuple(r.type for r in results)
        return Function(name, (*params, *extents), types, whole, stmt.span, kind, used)

    def _name(self, hint: str, word: str) -> str:
        """Return a name for a kernel: its hint, or one made from the function's; unique in the program."""
        if hint:
            numbered = (f"{hint}_{i}" for i in itertools.count())
            candidates = itertools.chain((hint, f"{self.function.name}_{hint}"), numbered)
            name = next(c for c in candidates if c not in self.taken)
        else:
            while (name := f"{self.function.name}_{word}_{self.counts[word]}") in self.taken:
                self.counts[word] += 1
        self.taken.add(name)
        return name


def author_of(kernel: str, names: Collection[str]) -> str:
    """Return the function that a kernel was written in where its name was made up, else the kernel itself."""
    for name in names:
        made_up = kernel.removeprefix(f"{name}_")
        if made_up != kernel and (made_up in names or re.fullmatch(r"((incore|spmd)_\d+|turn\d+)(_wide\d+)?", made_up)):
            return author_of(name, names)
    return kernel


def _together(types: tuple[Type, ...]) -> Type:
    return types[0] if len(types) == 1 else TupleType(types)


def _bound(value: Expr, targets: tuple[Var, ...], stmt: Stmt) -> Sequence[Stmt]:
    """Return the statements that bind what a call returns to the names used so far."""
    if not targets:
        return (EvalStmt(value, stmt.span),)
    if len(targets) == 1 and not isinstance(value.type, TupleType):
        return (AssignStmt(targets[0], value, stmt.span),)
    whole = Var("results", value.type, stmt.span)
    parts = (TupleGetItem(whole, i, target.type, stmt.span) for i, target in enumerate(targets))
    return (
        AssignStmt(whole, value, stmt.span),
        *(AssignStmt(t, p, stmt.span) for t, p in zip(targets, parts, strict=True)),
    )


def _symbols(body: SeqStmts) -> set[str]:
    """Return the named extents a body's expressions and fresh tensors mention."""
    found = {e.name for stmt in statements(body) for e in expressions(stmt) if isinstance(e, Symbol)}
    for stmt in statements(body):
        for var in defined(stmt):
            if isinstance(var.type, TensorType):
                found |= {name for extent in var.type.shape for name in symbols_in(extent)}
    return found
