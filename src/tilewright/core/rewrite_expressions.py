"""Rewriting expressions: variables and symbols replaced, the types of ops inferred anew where operands have changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import is_

from tilewright.core.build import rebuild
from tilewright.core.expr import Call, Const, Expr, Invoke, MakeTuple, Submit, Symbol, TupleGetItem, Var
from tilewright.core.extents import as_extent
from tilewright.core.op import Effect
from tilewright.core.signature import substituted
from tilewright.core.types import TensorType, TileType, TupleType, Type, unplaced
from tilewright.errors import OutOfBoundsError


class ExpressionRewriter:
    """What stands for expressions now.

    `replaced` maps variables to what stands for them, `symbols` named extents likewise. With `fresh` every definition
    gets a new variable, which is how a body is copied.
    """

    def __init__(
        self,
        replaced: Mapping[Var, Expr] | None = None,
        symbols: Mapping[str, Expr] | None = None,
        *,
        fresh: bool = False,
    ) -> None:
        self.replaced: dict[Var, Expr] = dict(replaced or {})
        self.symbols = dict(symbols or {})
        self.extents = {name: as_extent(expr) for name, expr in self.symbols.items()}
        self.fresh = fresh

    def expr(self, expr: Expr) -> Expr:
        """Return an expression with variables and symbols replaced."""
        if isinstance(expr, Var):
            return self.replaced.get(expr, expr)
        if isinstance(expr, Const):
            return expr
        if isinstance(expr, Call):
            if not self.replaced and not self.changes_names():
                return expr
            args = self.exprs(expr.args)
            if args is expr.args:
                return expr
            if all(map(_stands_for, args, expr.args)):
                return Call(expr.op, args, expr.attributes, expr.type, expr.span)
            return _rebuilt(expr, args)
        return self._other(expr)

    def changes_names(self) -> bool:
        """Return whether any variable or symbol may stand for something else."""
        return self.fresh or bool(self.replaced) or bool(self.symbols)

    def exprs(self, exprs: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """Return expressions rewritten; the same tuple when nothing changed."""
        result = tuple([self.expr(e) for e in exprs])
        return exprs if all(map(is_, result, exprs)) else result

    def _other(self, expr: Expr) -> Expr:
        match expr:
            case MakeTuple():
                elements = self.exprs(expr.elements)
                return expr if elements is expr.elements else replace(expr, elements=elements)
            case Symbol():
                return self.symbols.get(expr.name, expr)
            case TupleGetItem():
                value = self.expr(expr.value)
                if value is expr.value:
                    return expr
                if isinstance(value, MakeTuple):
                    return value.elements[expr.index]
                type_ = value.type.elements[expr.index] if isinstance(value.type, TupleType) else expr.type
                return replace(expr, value=value, type=type_)
            case Invoke():
                args, type_ = self.exprs(expr.args), self.type(expr.type)
                device = None if expr.device is None else self.expr(expr.device)
                if args is expr.args and type_ is expr.type and device is expr.device:
                    return expr
                return replace(expr, args=args, type=type_, device=device)
            case Submit():
                core_num = None if expr.core_num is None else self.expr(expr.core_num)
                predicate = None if expr.predicate is None else self.expr(expr.predicate)
                return replace(
                    expr,
                    args=self.exprs(expr.args),
                    deps=self.exprs(expr.deps),
                    core_num=core_num,
                    type=self.type(expr.type),
                    predicate=predicate,
                    dumps=self.exprs(expr.dumps),
                )
            case _:
                return expr

    def type(self, type_: Type) -> Type:
        """Return a type with symbols replaced."""
        return substituted(type_, self.extents) if self.extents else type_

    def define(self, var: Var, type_: Type | None = None) -> Var:
        """Return the variable that now stands for `var` where it is bound."""
        wanted = self.type(var.type) if type_ is None else type_
        if not self.fresh and (wanted is var.type or wanted == var.type):
            return var
        new = Var(var.name_hint, wanted, var.span, var.bounds)
        self.replaced[var] = new
        return new


def _stands_for(new: Expr, old: Expr) -> bool:
    """Return whether an operand can take another's place without the op's type being inferred anew."""
    if new is old:
        return True
    if isinstance(new, Var) and isinstance(old, Var):
        same = new.type is old.type or unplaced(new.type) == unplaced(old.type)
        return same and new.bounds == old.bounds
    if isinstance(new, MakeTuple) and isinstance(old, MakeTuple):
        return all(map(_stands_for, new.elements, old.elements))
    if isinstance(new, Call) and isinstance(old, Call):
        return new.op is old.op and all(map(_stands_for, new.args, old.args))
    return False


def _rebuilt(old: Call, args: Sequence[Expr]) -> Expr:
    """Return a call with other operands; a read that is now known to be cut short says so."""
    try:
        return rebuild(old, args)
    except OutOfBoundsError:
        if old.op.spec.effect is not Effect.READ or ("clamp", False) not in old.attributes:
            raise
        options = tuple((name, True if name == "clamp" else value) for name, value in old.attributes)
        cut = rebuild(Call(old.op, old.args, options, old.type, old.span), args)
        finds_nothing = isinstance(cut.type, (TileType, TensorType)) and 0 in cut.type.valid
        return Call(old.op, tuple(args), old.attributes, old.type, old.span) if finds_nothing else cut
