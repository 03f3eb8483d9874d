"""Verification: the rules every program keeps, checked with the place of the first breach.

Variables are defined before they are used, on every path; ops have the types their rules infer; loops, branches and
calls hand on as many values as they take, of types that fit. In SSA form every variable has one definition.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tilewright.core.build import arguments, call
from tilewright.core.enums import ParamDirection
from tilewright.core.expr import Absent, Call, Expr, Invoke, Submit, TupleGetItem, Var
from tilewright.core.program import Function, Program
from tilewright.core.stmt import (
    SCOPES,
    AssignStmt,
    BreakStmt,
    ContinueStmt,
    ForStmt,
    IfStmt,
    ReturnStmt,
    SeqStmts,
    Stmt,
    WhileStmt,
    YieldStmt,
)
from tilewright.core.types import ScalarType, TensorType, TileType, TupleType, Type, join, unplaced
from tilewright.core.visitor import bodies, defined, invocations, subexpressions, used, variables
from tilewright.dtypes import BOOL
from tilewright.errors import KernelError, VerificationError
from tilewright.source import Span


def verify(program: Program, *, ssa: bool = False, types: bool = True) -> None:
    """Raise VerificationError at the first rule a program breaks.

    Without `types`, the types of ops that have a place in somebody's source are taken from the front end, which
    inferred them; ops made by hand are checked all the same.
    """
    for name, count in Counter(program.function_names).items():
        if count > 1:
            raise VerificationError(f"two functions are called '{name}'")
    functions = {f.name: f for f in program.function_list}
    _check_recursion(functions)
    for function in program.function_list:
        try:
            _Verifier(function, functions, ssa, types).run()
        except KernelError as error:
            error.locate([function.span])
            error.function = error.function or function.name
            raise


def _check_recursion(functions: dict[str, Function]) -> None:
    done: set[str] = set()

    def walk(name: str, active: tuple[str, ...]) -> None:
        if name in active:
            raise VerificationError(f"`{name}` calls itself: {' -> '.join((*active[active.index(name) :], name))}")
        if name in done or name not in functions:
            return
        for invoked in invocations(functions[name].body):
            walk(invoked.op.name, (*active, name))
        done.add(name)

    for name in functions:
        walk(name, ())


class _Verifier:
    def __init__(self, function: Function, functions: dict[str, Function], ssa: bool, types: bool) -> None:
        self.function = function
        self.functions = functions
        self.ssa = ssa
        self.types = types
        self.ever: set[Var] = set()
        self.loops: list[ForStmt | WhileStmt] = []

    def run(self) -> None:
        """Check one function."""
        for param, direction in zip(self.function.params, self.function.param_directions, strict=True):
            if isinstance(param.type, ScalarType) and direction is not ParamDirection.In:
                raise VerificationError(f"scalar parameter '{param.name_hint}' cannot be written", spans=[param.span])
        known = set(self.function.params)
        if len(known) != len(self.function.params):
            raise VerificationError("two parameters are one variable")
        self.ever |= known
        self._body(self.function.body, known, None)

    def _body(self, body: SeqStmts, known: set[Var], owner: Stmt | None) -> bool:
        """Check a body, adding what it defines to `known`; return whether control can leave its end."""
        for position, stmt in enumerate(body.stmts):
            if not self._stmt(stmt, known, owner):
                if position != len(body.stmts) - 1 and self.ssa:
                    raise VerificationError("statements follow an exit", spans=[body.stmts[position + 1].span])
                return False
        return True

    def _stmt(self, stmt: Stmt, known: set[Var], owner: Stmt | None) -> bool:
        self._check_exprs(stmt, known)
        match stmt:
            case AssignStmt():
                self._define(stmt.var, known, stmt.span)
                self._fits(stmt.var.type, stmt.value.type, f"'{stmt.var.name_hint}'", stmt.span)
            case ForStmt() | WhileStmt():
                self._loop(stmt, known)
            case IfStmt():
                return self._if(stmt, known, owner)
            case YieldStmt():
                self._handed_on(owner, stmt.values, stmt.span)
            case BreakStmt() | ContinueStmt():
                if not self.loops:
                    raise VerificationError("an exit outside any loop", spans=[stmt.span])
                if stmt.values or self.ssa:
                    self._handed_on(self.loops[-1], stmt.values, stmt.span)
                return False
            case ReturnStmt():
                self._returned(stmt)
                return False
            case _:
                return self._scope(stmt, known, owner)
        return True

    def _scope(self, stmt: Stmt, known: set[Var], owner: Stmt | None) -> bool:
        if not isinstance(stmt, SCOPES):
            return True
        for var in defined(stmt):
            if var is getattr(stmt, "loop_var", None):
                self._define(var, known, stmt.span)
        goes_on = self._body(stmt.body, known, owner)
        for var in defined(stmt):
            if var is getattr(stmt, "task", None):
                self._define(var, known, stmt.span)
        return goes_on

    def _check_exprs(self, stmt: Stmt, known: set[Var]) -> None:
        outside = used(stmt) if not isinstance(stmt, WhileStmt) else tuple(arg.init for arg in stmt.iter_args)
        for var in variables(outside):
            if var not in known:
                raise VerificationError(f"'{var.name_hint}' is used before it is defined", spans=[stmt.span, var.span])
        for expr in used(stmt):
            if self.types or not getattr(expr, "span", stmt.span).is_known:
                for part in subexpressions(expr):
                    self._expr(part, stmt.span)
            elif not isinstance(expr, Call):
                self._expr(expr, stmt.span)

    def _expr(self, expr: Expr, span: Span) -> None:
        if isinstance(expr, Call):
            self._call(expr, span)
        elif isinstance(expr, (Invoke, Submit)):
            self._invoke(expr, span)
        elif isinstance(expr, TupleGetItem):
            type_ = expr.value.type
            if not isinstance(type_, TupleType) or not 0 <= expr.index < len(type_.elements):
                raise VerificationError(f"there is no value {expr.index} in {type_}", spans=[span])

    def _call(self, expr: Call, span: Span) -> None:
        if len(expr.args) > len(expr.op.spec.operands):
            raise VerificationError(
                f"`{expr.op.name}` takes {len(expr.op.spec.operands)} operands, got {len(expr.args)}", spans=[span]
            )
        try:
            inferred = call(expr.op.spec, arguments(expr), expr.span)
        except KernelError as error:
            raise VerificationError(f"`{expr.op.name}`: {error.message}", spans=[span]) from None
        if inferred.type != expr.type and isinstance(inferred, Call):
            raise VerificationError(f"`{expr.op.name}` gives {inferred.type}, but is marked {expr.type}", spans=[span])

    def _invoke(self, expr: Invoke | Submit, span: Span) -> None:
        callee = self.functions.get(expr.op.name)
        if callee is None:
            raise VerificationError(f"there is no function '{expr.op.name}'", spans=[span])
        if len(callee.params) != len(expr.args):
            raise VerificationError(
                f"`{callee.name}` expects {len(callee.params)} argument(s), got {len(expr.args)}", spans=[span]
            )
        for param, arg in zip(callee.params, expr.args, strict=True):
            if type(param.type) is not type(arg.type) or _rank(param.type) != _rank(arg.type):
                raise VerificationError(
                    f"`{param.name_hint}` of `{callee.name}` is {param.type}, got {arg.type}", spans=[span]
                )

    def _define(self, var: Var, known: set[Var], span: Span) -> None:
        if self.ssa and var in self.ever:
            raise VerificationError(f"'{var.name_hint}' is defined twice", spans=[span])
        self.ever.add(var)
        known.add(var)

    def _fits(self, wanted: Type, given: Type, what: str, span: Span) -> None:
        if wanted is given or wanted == given:
            return
        joined = join(unplaced(wanted), unplaced(given))
        if joined is None or (joined != unplaced(wanted) and not isinstance(wanted, TensorType)):
            raise VerificationError(f"{what} is {wanted}, but its value is {given}", spans=[span])

    def _loop(self, stmt: ForStmt | WhileStmt, known: set[Var]) -> None:
        if len(stmt.iter_args) != len(stmt.return_vars):
            raise VerificationError("a loop returns what it carries", spans=[stmt.span])
        inside = set(known)
        for arg in stmt.iter_args:
            self._define(arg.var, inside, stmt.span)
            if not isinstance(arg.init, Absent):
                self._fits(arg.var.type, arg.init.type, f"'{arg.var.name_hint}'", stmt.span)
        if isinstance(stmt, ForStmt):
            self._define(stmt.loop_var, inside, stmt.span)
        else:
            self._condition(stmt.condition, inside, stmt.span)
        self.loops.append(stmt)
        goes_on = self._body(stmt.body, inside, stmt)
        self.loops.pop()
        if goes_on and stmt.iter_args and not _yields(stmt.body):
            raise VerificationError("a loop that carries values ends in a yield", spans=[stmt.span])
        if not self.ssa:
            known |= inside
        for var in stmt.return_vars:
            self._define(var, known, stmt.span)

    def _condition(self, condition: Expr, known: set[Var], span: Span) -> None:
        for var in variables([condition]):
            if var not in known:
                raise VerificationError(f"'{var.name_hint}' is used before it is defined", spans=[span, var.span])
        if condition.type != ScalarType(BOOL):
            raise VerificationError(f"a condition is a bool, got {condition.type}", spans=[span])

    def _if(self, stmt: IfStmt, known: set[Var], owner: Stmt | None) -> bool:
        self._condition(stmt.condition, known, stmt.span)
        reached: list[set[Var]] = []
        for body in bodies(stmt):
            inside = set(known)
            if self._body(body, inside, stmt):
                reached.append(inside)
                if stmt.return_vars and not _yields(body):
                    raise VerificationError("a branch that has results ends in a yield", spans=[stmt.span])
        if stmt.return_vars and stmt.else_body is None:
            raise VerificationError("a branch that has results needs an else", spans=[stmt.span])
        if stmt.else_body is None:
            reached.append(set(known))
        if not self.ssa and reached:
            known |= reached[0].intersection(*reached[1:])
        for var in stmt.return_vars:
            self._define(var, known, stmt.span)
        return bool(reached)

    def _handed_on(self, owner: Stmt | None, values: Sequence[Expr], span: Span) -> None:
        wanted: list[Var] = []
        if isinstance(owner, (ForStmt, WhileStmt)):
            wanted = [arg.var for arg in owner.iter_args]
        elif isinstance(owner, IfStmt):
            wanted = list(owner.return_vars)
        else:
            raise VerificationError("a yield outside any loop or branch", spans=[span])
        if len(wanted) != len(values):
            raise VerificationError(f"{len(wanted)} value(s) are handed on here, got {len(values)}", spans=[span])
        for var, value in zip(wanted, values, strict=True):
            self._fits(var.type, value.type, f"'{var.name_hint}'", span)

    def _returned(self, stmt: ReturnStmt) -> None:
        types = self.function.return_types
        if len(types) != len(stmt.values):
            raise VerificationError(
                f"the function returns {len(types)} value(s), this {len(stmt.values)}", spans=[stmt.span]
            )
        for wanted, value in zip(types, stmt.values, strict=True):
            if type(wanted) is not type(value.type):
                raise VerificationError(f"the function returns {wanted}, this {value.type}", spans=[stmt.span])


def _yields(body: SeqStmts) -> bool:
    last = body.stmts[-1] if body.stmts else None
    if isinstance(last, SCOPES):
        return _yields(last.body)
    return isinstance(last, YieldStmt)


def _rank(type_: Type) -> int:
    return len(type_.shape) if isinstance(type_, (TensorType, TileType)) else -1
