"""Inlining: functions of type Inline written out where they are called."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from tilewright.core.build import call
from tilewright.core.enums import FunctionType
from tilewright.core.expr import Call, Expr, Invoke, MakeTuple, Submit, Var
from tilewright.core.extents import as_scalar
from tilewright.core.program import Function, Program
from tilewright.core.rewrite import Rewriter
from tilewright.core.signature import symbol_extents
from tilewright.core.solving import GIVEN
from tilewright.core.stmt import AssignStmt, EvalStmt, ReturnStmt, Stmt
from tilewright.core.visitor import invocations
from tilewright.ops.registry import OPS
from tilewright.passes.exits import returns_early
from tilewright.source import Span


def run(program: Program) -> Program:
    """Write out every call of an Inline function, then drop those functions; one that is a task of its own stays."""
    inline = [f for f in program.function_list if f.func_type is FunctionType.Inline and not returns_early(f.body)]
    tasks = _submitted(program) if inline else set[str]()
    templates = {f.name: f for f in inline if f.name not in tasks}
    if not templates:
        return program
    expanded: dict[str, Function] = {}

    def expand(function: Function) -> Function:
        if function.name not in expanded:
            expanded[function.name] = function.with_body(_Inliner(templates, expand).body(function.body))
        return expanded[function.name]

    return program.with_functions([expand(f) for f in program.function_list if f.name not in templates])


def _submitted(program: Program) -> set[str]:
    """Return the names of the functions that are dispatched as tasks."""
    return {e.op.name for f in program.function_list for e in invocations(f.body) if isinstance(e, Submit)}


class _Copy(Rewriter):
    """Copies a body; what is copied remembers the call it came through."""

    def __init__(self, replaced: Mapping[Var, Expr], symbols: Mapping[str, Expr], caller: Span) -> None:
        super().__init__(replaced, symbols, fresh=True)
        self.caller = caller

    def expr(self, expr: Expr) -> Expr:
        result = super().expr(expr)
        if isinstance(result, (Call, Invoke)) and isinstance(expr, (Call, Invoke)):
            return replace(result, span=result.span.called_from(self.caller))
        return result


class _Inliner(Rewriter):
    def __init__(self, templates: Mapping[str, Function], expand: Callable[[Function], Function]) -> None:
        super().__init__()
        self.templates = templates
        self.expand = expand

    def assign(self, stmt: AssignStmt) -> Sequence[Stmt]:
        """Replace the result of an inlined call by what its body returns."""
        if not (isinstance(stmt.value, Invoke) and stmt.value.op.name in self.templates):
            return super().assign(stmt)
        stmts, values = self._written_out(stmt.value)
        self.replaced[stmt.var] = values[0] if len(values) == 1 else MakeTuple(values)
        return stmts

    def evaluate(self, stmt: EvalStmt) -> Sequence[Stmt]:
        """Replace an inlined call whose result nobody wants."""
        if not (isinstance(stmt.expr, Invoke) and stmt.expr.op.name in self.templates):
            return super().evaluate(stmt)
        return self._written_out(stmt.expr)[0]

    def _written_out(self, invoke: Invoke) -> tuple[list[Stmt], tuple[Expr, ...]]:
        template = self.expand(self.templates[invoke.op.name])
        args = self.exprs(invoke.args)
        extents, symbols = bound_symbols(template, args)
        copy = _Copy(dict(zip(template.params, args, strict=True)), symbols, invoke.span)
        body = copy.body(template.body).stmts
        if body and isinstance(body[-1], ReturnStmt):
            return [*extents, *body[:-1]], body[-1].values
        return [*extents, *body], ()


def bound_symbols(function: Function, args: Sequence[Expr]) -> tuple[list[Stmt], dict[str, Expr]]:
    """Return each symbol of a callee in the caller's terms, with the statements that read unknown extents."""
    stmts: list[Stmt] = []
    symbols: dict[str, Expr] = {}
    for name, extent in symbol_extents(function, args).items():
        if extent is not None:
            symbols[name] = as_scalar(extent)
            continue
        told = function.solutions.get(name)
        position, axis = function.symbols[name] if told is None else (told.position, told.axis)
        value = call(OPS["tensor.dim"].spec, {"tensor": args[position], "axis": axis, "valid": False})
        var = Var(name, value.type)
        stmts.append(AssignStmt(var, value))
        symbols[name] = var if told is None else Rewriter({}, {**symbols, GIVEN.name: var}).expr(told.value)
    return stmts, symbols
