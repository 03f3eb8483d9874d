"""Derived ops: calls written out in the ops they are made of, at the line that calls them."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from tilewright.core.build import locate
from tilewright.core.expr import Const, Expr
from tilewright.core.op import OPS, OpSpec, Role
from tilewright.core.operands import is_shaped
from tilewright.core.types import ScalarType
from tilewright.dtypes import BOOL, INDEX, INT64
from tilewright.errors import KernelError, OperandError
from tilewright.frontend.state import is_action
from tilewright.frontend.translator import Translator
from tilewright.frontend.walk.walker import Value
from tilewright.ops.builder import Statements


def between_numbers(spec: OpSpec, args: Sequence[Value]) -> OpSpec | None:
    """Return the op on numbers that a call of a derived op of the same name means: `pl.max(a, b)` compares two."""
    number = OPS.get(f"scalar.{spec.name}") if spec.expand is not None else None
    if number is None or not args:
        return None
    is_second = len(args) > 1 and (isinstance(args[1], Expr) or type(args[1]) is float)
    return number.spec if is_second or not is_shaped(args[0]) else None  # pyright: ignore[reportArgumentType]


def held_number(t: Translator, spec: OpSpec, args: Sequence[Value], node: ast.Call) -> Expr | None:
    """Return a running number that a function of elements is given, as a tile of one; None for other arguments."""
    number = args[0] if args else None
    if t.frame is None or spec.family != "elementwise" or not isinstance(number, Expr) or any(map(is_shaped, args)):  # pyright: ignore[reportArgumentType]
        return None
    dtype = number.type.dtype if isinstance(number.type, ScalarType) else BOOL
    if isinstance(number, Const) or not (dtype.is_int() or dtype.is_float()):
        return None
    w = Writer(t, node)
    return w.named(w.do("tile.full", shape=(1,), dtype=INT64 if dtype == INDEX else dtype, value=number))


def element_of(t: Translator, tile: Value, node: ast.Call) -> Expr:
    """Return the one element of a tile as a number."""
    return Writer(t, node).do("tile.read", x=tile, indices=(0,))


def expanded(t: Translator, spec: OpSpec, bound: dict[str, Any], node: ast.AST, spans: Mapping[str, ast.AST]) -> Value:
    """Return what a derived op gives, written in other ops."""
    assert spec.expand is not None
    try:
        for p in spec.operands:
            if p.role not in (Role.EXTENTS, Role.INDEX):
                _check(spec, p.name, bound[p.name])
        return spec.expand(Writer(t, node), **bound)
    except KernelError as error:
        if not error.spans:
            locate(error, bound, t.span(node), {name: t.span(where) for name, where in spans.items()})
        raise


def _check(spec: OpSpec, name: str, value: Value) -> None:
    if not is_shaped(value):  # pyright: ignore[reportArgumentType]
        got = value.type if isinstance(value, Expr) else repr(value)
        help = "pl.load makes a tile from a tensor" if not isinstance(got, ScalarType) else "a number is itself"
        raise OperandError(f"`{name}` of `{spec.name}` must be a tile or a tensor, got {got}", blame=[name], help=help)


class Writer(Statements):
    """Statements of a kernel being read; what they give gets a name where another one takes it."""

    def __init__(self, t: Translator, node: ast.AST) -> None:
        super().__init__(t.span(node))
        self.t, self.node = t, node
        self.names: dict[int, tuple[Expr, Value]] = {}

    def do(self, name: str, /, **given: Any) -> Expr:
        """Return an op applied to operands and options, those left out at their defaults."""
        return self.op(name, **{key: self._operand(value) for key, value in given.items()})

    def named(self, value: Expr) -> Expr:
        """Return a value as something that ops take: a call gets a name."""
        return self._operand(value)

    def _operand(self, value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(self._operand(each) for each in value)  # pyright: ignore[reportUnknownVariableType]
        if not isinstance(value, Expr) or not is_action(value):
            return value
        if id(value) not in self.names:
            self.names[id(value)] = value, self.t.placed(value, self.node)
        return self.names[id(value)][1]
