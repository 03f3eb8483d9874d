"""The translator: what names stand for, and what becomes of the values that are bound to them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Any, cast

from tilewright.core.annotations import DynVar
from tilewright.core.build import call
from tilewright.core.expr import Call, Const, Expr, Invoke, Submit, Symbol, TupleGetItem, Var, constant
from tilewright.core.extents import bounds
from tilewright.core.stmt import AssignStmt, SeqStmts
from tilewright.core.types import ScalarType, TensorType, TileType, Type, is_static, join, show_shape
from tilewright.core.visitor import variables
from tilewright.dtypes import INDEX, objection
from tilewright.errors import DroppedWriteWarning, KernelWarning, ReassignmentError, SSAViolationError
from tilewright.frontend.frames import BecomesDynamic
from tilewright.frontend.messages import caution
from tilewright.frontend.scope import UNKNOWN, ScopedBinding
from tilewright.frontend.state import Translation, Widened, alike, is_action
from tilewright.frontend.walk.known import sequence
from tilewright.frontend.walk.walker import Value
from tilewright.ops.registry import OPS
from tilewright.source import Span


class Translator(Translation):
    """One function on its way from syntax to IR: its names and their variables."""

    def block(self, body: Sequence[ast.stmt], defined: Sequence[tuple[str, Var]] = ()) -> SeqStmts:
        """Return statements translated into a body of their own, in which `defined` names have values."""
        outer, self.stmts = self.stmts, []
        for name, var in defined:
            self.define(name, var)
        self.execute(body)
        translated, self.stmts = SeqStmts(tuple(self.stmts)), outer
        return translated

    def find(self, name: str) -> ScopedBinding | None:
        """Return what a name is bound to here, or None."""
        return self.scope.find(name)

    def read(self, node: ast.Name, binding: ScopedBinding) -> Value:
        """Return the value of a name: the number that it is known to be, or its variable."""
        if binding.known is not UNKNOWN:
            return binding.known
        self.outlives(node.id, binding)
        return self.met(node, binding.value) if isinstance(binding.value, DynVar) else binding.value

    def bound_names(self) -> list[str]:
        """Return the names that are bound here."""
        return [name for frame in self.scope.frames for name in frame]

    def met(self, node: ast.Name, value: Value) -> Value:
        """Return the value that a name stands for; a variable that holds a `pl.dynamic` name is noted."""
        if isinstance(value, DynVar) and self.frame is not None:
            self.frame.meet(node.id, value.name, self.span(node))
        return value

    def assign(self, name: str, value: Value, node: ast.AST) -> None:
        """Bind `name` to what an expression gave."""
        span = self.span(node)
        if self.strict_ssa and (first := self.scope.find(name)) is not None:
            message, note = f"'{name}' is bound twice in a strict_ssa=True function", f"first at line {first.span.line}"
            error = SSAViolationError(message, spans=[span], notes=[note])
            error.previous_span = first.span.named if first.span.is_known else None
            raise error
        self._warn_dropped_write(name, value, span)
        if self.scope.is_variable(name, value):
            self._assign_shared(name, value, node)
        elif is_action(value) or isinstance(value, Call):
            var = Var(name, value.type, span, bounds(value) if isinstance(value.type, ScalarType) else None)
            self._assign_to(name, var, value, span)
        else:
            self.scope.bind(name, self.settled(value, name, span), span)

    def assign_known(self, name: str, value: Value, node: ast.AST) -> None:
        """Let a name stand for a value the compiler knows; where blocks assign it, for a variable that starts so."""
        if self.scope.is_variable(name, value) and isinstance(value, (bool, int, float)):
            self._assign_shared(name, value, node)
        else:
            self.scope.bind(name, value, self.span(node))

    def define(self, name: str, var: Var) -> None:
        """Let a name stand for what a loop, branch or scope gives; where other blocks assign it too, for a copy."""
        if (name, var.span) in self.widened and not self.scope.is_around(name):
            self._assign_to(name, self._variable(name, var, var.span), var, var.span)
        else:
            self.given.add(id(var))
            self.hand_on(name, var, var.span)

    def hand_on(self, name: str, value: Value, span: Span) -> None:
        """Let a name stand for what a block yields; one that blocks around this one have is assigned."""
        if isinstance(value, Expr) and self.scope.is_around(name):
            self._assign_variable(name, value, span)
        else:
            self.scope.bind(name, value, span)

    def outlives(self, name: str, binding: ScopedBinding) -> None:
        """Start again with a copy where a name is read outside the block whose loop or branch gave its value."""
        if binding.leaked:
            for value in _elements(binding.value):
                if isinstance(value, Var) and id(value) in self.given:
                    raise Widened((name, binding.span), value.type)

    def settled(self, value: Value, name: str, span: Span) -> Value:
        """Return a value that later assignments cannot change: what depends on a variable is copied now."""
        if isinstance(value, tuple):
            return alike(value, [self.settled(element, name, span) for element in sequence(value)])  # pyright: ignore[reportUnknownArgumentType]
        if isinstance(value, dict):
            held = cast("dict[Any, Value]", value)
            is_running = any(isinstance(each, Expr) for each in held.values())
            return {key: self.settled(each, name, span) for key, each in held.items()} if is_running else held
        if not isinstance(value, Expr) or isinstance(value, Const):
            return value
        is_variable = any(id(var) in self.variables for var in variables([value]))
        if not is_variable and (name, span) not in self.widened:
            return value
        var = Var(name, value.type, span)
        self.emit(AssignStmt(var, value, span))
        return var

    def apart(self, /, value: Value, source: ast.expr) -> Value:
        """Return one of several values that are bound at once, which binding the others cannot change."""
        return self.settled(value, "held", self.span(source))

    def _warn_dropped_write(self, name: str, value: Value, span: Span) -> None:
        """Warn when an output's name is bound to something that is not that output."""
        known = self.scope.find(name)
        if known is None or id(known.value) not in self.outputs or isinstance(value, (Invoke, Submit, TupleGetItem)):
            return
        if isinstance(value, Var) and not isinstance(value.type, TileType):
            return
        if isinstance(value, Call) and value.op.spec.alias:
            return
        message = f"'{name}' is an output, and this only rebinds the name: the caller's buffer stays as it was"
        self.warn(DroppedWriteWarning, message, [span], f"write it with pl.store(..., {name}) or `{name}[:] = ...`")

    def warn(self, kind: type[KernelWarning], message: str, spans: Sequence[Span], help: str) -> None:
        """Warn of something at its place, once it is known that the kernel is read to its end."""
        self.tell(caution(kind, self.captured.node.name, message, spans, help))

    def _assign_shared(self, name: str, value: Value, node: ast.AST) -> None:
        """Assign a name that several blocks share; each element of a tuple is a variable of its own."""
        if not isinstance(value, tuple):
            self._assign_variable(name, self._as_expr(name, value, node), self.span(node))
        else:
            parts = sequence(value)  # pyright: ignore[reportUnknownArgumentType]
            for position, part in enumerate(parts):
                self._assign_shared(f"{name}.{position}", part, node)
            bindings = [self.scope.find(f"{name}.{position}") for position in range(len(parts))]
            found = [binding.value for binding in bindings if binding is not None]
            self.scope.bind(name, alike(value, found), self.span(node))  # pyright: ignore[reportUnknownArgumentType]
        self.note_known(name, value)

    def note_known(self, name: str, value: Value) -> None:
        """Note the number that a variable was just given, where a specialization can go on computing with it."""
        if self.frame is not None and all(isinstance(part, (bool, int, float, Const)) for part in _elements(value)):
            self.scope.know(name, value)

    def _as_expr(self, name: str, value: Value, node: ast.AST) -> Expr:
        if isinstance(value, Expr):
            return value
        if value is None:
            return call(OPS["system.task_invalid"].spec, {}, self.span(node))
        return self.expr(value, node, f"`{name}`, which several blocks assign,")

    def _assign_variable(self, name: str, value: Expr, span: Span) -> None:
        """Assign a name that several blocks share: one variable of the IR, as long as its type allows."""
        known = self.scope.variable(name)
        var = known.value if known is not None else None
        if known is None or not isinstance(var, Var):
            self._assign_to(name, self._variable(name, value, span), value, span)
            return
        value = _literal_as(value, var.type)
        wider = self.joined(var.type, value.type, span)
        key = name, (var.span if id(var) in self.variables else known.span)
        if id(var) not in self.variables and known.block == self.scope.block:
            self._assign_to(name, self._renewed(name, var, value, span), value, span)
        elif id(var) not in self.variables and self.widened.get(key) != var.type:
            raise Widened(key, var.type)
        elif wider == var.type:
            self._assign_to(name, var, value, span)
        elif not self.scope.is_outer(name) and (known.block == self.scope.block or (known.leaked and wider is None)):
            self._assign_to(name, self._variable(name, value, span), value, span)
        elif wider is None and id(var) in self.literals and _are_numbers(var.type, value.type):
            raise Widened(key, value.type, is_literal=True)
        elif wider is None or id(var) in self.fixed:
            notes = [f"`{name}` is {var.type} from line {var.span.line}", f"the new value is {value.type}"]
            help = _converted(var.type, value.type) or _begun(var.type, value.type)
            message = f"Cannot reassign '{name}' with a different type"
            raise ReassignmentError(message, spans=[span], notes=notes, help=help)
        else:
            raise Widened(key, wider)

    def joined(self, first: Type, second: Type, span: Span) -> Type | None:
        """Return the type that covers two, or None; an axis that meets one a helper made dynamic becomes so too."""
        if self.frame is not None and isinstance(first, TensorType) and isinstance(second, TensorType):
            for pair in zip(first.shape, second.shape, strict=False):
                for have, met in (pair, pair[::-1]):
                    if (axis := self.frame.asked(have, met)) is not None and isinstance(met, Symbol):
                        raise BecomesDynamic(self.frame, [axis], met.name, is_named=False, span=span)
        return join(first, second)

    def _variable(self, name: str, value: Expr, span: Span) -> Var:
        type_ = self.widened.get((name, span), value.type)
        var = Var(name.replace(".", "_"), type_, span)
        self.variables.add(id(var))
        if isinstance(value, Const) and value.dtype == INDEX and type_ == value.type:
            self.literals.add(id(var))
        return var

    def _renewed(self, name: str, old: Var, value: Expr, span: Span) -> Var:
        """Return the variable for a name that is bound again beside what a loop gave it: no block has shared it yet."""
        if id(old) not in self.given or (name, span) in self.widened:
            return self._variable(name, value, span)
        var = Var(name, value.type, span)
        self.given.add(id(var))
        return var

    def _assign_to(self, name: str, var: Var, value: Expr, span: Span) -> None:
        self.emit(AssignStmt(var, _literal_as(value, var.type), span))
        self.scope.bind(name, var, span)


def _literal_as(value: Expr, type_: Type) -> Expr:
    """Return a whole number that was written without a type in that of a variable, where it has room there."""
    if not isinstance(value, Const) or value.dtype != INDEX or not isinstance(type_, ScalarType):
        return value
    fits = type_.dtype != INDEX and _are_numbers(type_, type_) and not objection(value.value, type_.dtype)
    return constant(value.value, type_.dtype, value.span) if fits else value


def _are_numbers(*types: Type) -> bool:
    return all(isinstance(type_, ScalarType) and (type_.dtype.is_int() or type_.dtype.is_float()) for type_ in types)


def _begun(first: Type, later: Type) -> str:
    """Return how a sum begins that is a number at first, and a tile or a tensor from the first turn of a loop on."""
    if not isinstance(first, ScalarType) or not isinstance(later, TileType | TensorType) or not is_static(later.shape):
        return ""
    make = "pl.tile.full" if isinstance(later, TileType) else "pl.full"
    shown = f"{make}({show_shape(later.shape)}, dtype=pl.{later.dtype.symbol}, value=...)"
    return f"begin with {shown}, which has the shape of what comes later"


def _converted(held: Type, new: Type) -> str:
    """Return what makes a value fit a variable whose elements are of another type, nothing where that is no help."""
    if not isinstance(held, _WITH_ELEMENTS) or not isinstance(new, _WITH_ELEMENTS):
        return ""
    shapes = [() if isinstance(each, ScalarType) else each.shape for each in (held, new)]
    if held.dtype in (INDEX, new.dtype) or shapes[0] != shapes[1]:
        return ""
    return f"convert the new value: pl.cast(..., pl.{held.dtype.symbol}), or use a new name for it"


_WITH_ELEMENTS = ScalarType, TensorType, TileType


def _elements(value: Value) -> Iterator[Value]:
    """Yield a value, or what a tuple holds at any depth."""
    if not isinstance(value, tuple):
        yield value
    else:
        for element in sequence(value):  # pyright: ignore[reportUnknownArgumentType]
            yield from _elements(element)
