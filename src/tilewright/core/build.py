"""Building calls: the one way an op enters the IR, with its operands checked and its type inferred."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tilewright.core.expr import ABSENT, Absent, Call, Const, Expr, MakeTuple, Var, constant
from tilewright.core.op import OPS, Kind, OpSpec
from tilewright.core.operands import Argument, Bound, check, kind_of
from tilewright.core.types import ScalarType
from tilewright.errors import KernelError
from tilewright.source import UNKNOWN, Span


@dataclass(frozen=True)
class Place:
    """Where a call and each of its arguments were written."""

    span: Span = UNKNOWN
    arguments: Mapping[str, Span] | None = None


def call(spec: OpSpec, bound: Bound, place: Place | None = None) -> Expr:
    """Return the call of `spec` with `bound` arguments; a scalar call that always gives one value is that value."""
    place = place or Place()
    try:
        kind = kind_of(spec, bound)
        operands = {p.name: check(spec, p, bound) for p in spec.operands}
        checked = {p.name: operands.get(p.name, bound[p.name]) for p in spec.parameters}
        rule_arguments = {name: _for_rule(value) for name, value in checked.items()}
        type_ = spec.infer(**rule_arguments)
        known = spec.fold(**rule_arguments) if spec.fold else None
    except KernelError as error:
        error.locate(*_blame(error, bound, place))
        raise
    if isinstance(known, Expr):
        return known
    attributes = tuple((p.name, v) for p in spec.parameters if not isinstance(v := checked[p.name], Expr) and not p.is_operand)
    args = list(operands.values())
    while args and isinstance(args[-1], Absent):
        args.pop()
    node = Call(OPS[f"{kind.value}.{spec.name}"], tuple(args), attributes, type_, place.span)
    return _folded(node) if kind is Kind.SCALAR else node


def rebuild(old: Call, args: Sequence[Expr]) -> Expr:
    """Return `old` applied to other operands, its type inferred anew."""
    return call(old.op.spec, _named(old, args), Place(old.span))


def arguments(node: Call) -> dict[str, Argument]:
    """Return a call's operands and options by parameter name."""
    return _named(node, node.args)


def _named(node: Call, args: Sequence[Expr]) -> dict[str, Argument]:
    operands = node.op.spec.operands
    padded = [*args, *[ABSENT] * (len(operands) - len(args))]
    return {**{p.name: value for p, value in zip(operands, padded, strict=True)}, **dict(node.attributes)}


def scalar(name: str, *args: Expr, span: Span = UNKNOWN) -> Expr:
    """Return scalar arithmetic by op name, as in `scalar("add", i, one)`."""
    spec = OPS[f"scalar.{name}"].spec
    return call(spec, {p.name: a for p, a in zip(spec.parameters, args, strict=True)}, Place(span))


def _for_rule(value: Argument) -> object:
    """Return an argument as type rules see it: extents as tuples, absent operands as None."""
    if isinstance(value, MakeTuple):
        return value.elements
    return None if isinstance(value, Absent) else value


def _folded(node: Call) -> Expr:
    """Return what a scalar call always gives: a constant, one of its operands, or itself."""
    spec, args = node.op.spec, node.args
    if not isinstance(node.type, ScalarType):
        return node
    if all(isinstance(arg, Const) for arg in args):
        values = {p.name: arg.value for p, arg in zip(spec.operands, args, strict=True) if isinstance(arg, Const)}
        try:
            return constant(spec.evaluate(node.type, **values, **dict(node.attributes)), node.type.dtype, node.span)
        except ZeroDivisionError:
            return node
    if len(args) == 2 and spec.neutral is not None and node.type.dtype.is_int():
        for kept, other in (args, args[::-1])[: 1 + spec.commutative]:
            if isinstance(other, Const) and other.value == spec.neutral and kept.type == node.type:
                return kept
    return node


def _blame(error: KernelError, bound: Bound, place: Place) -> tuple[list[Span], list[str]]:
    """Return the spans of the operands an error names, and a line about each."""
    spans = [place.arguments[name] for name in error.blame if place.arguments and name in place.arguments]
    notes = [_origin(name, value) for name in error.blame if isinstance(value := bound.get(name), Expr)]
    return spans or [place.span], notes


def _origin(name: str, value: Expr) -> str:
    if isinstance(value, MakeTuple):
        return f"{name}: {value}"
    if not isinstance(value, Var):
        return f"{name}: {value.type}"
    line = f" from line {value.span.line}" if value.span.is_known else ""
    return f"{name}: `{value.name_hint}` is {value.type}{line}"
