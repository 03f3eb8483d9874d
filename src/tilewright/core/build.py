"""Building calls: the one way an op enters the IR, with its operands checked and its type inferred."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilewright.core.annotations import DynExpr, DynVar
from tilewright.core.expr import ABSENT, Absent, Attribute, Call, Const, Expr, MakeTuple, Symbol, Var, constant, integer
from tilewright.core.op import OPS, Kind, OpSpec
from tilewright.core.operands import Argument, Bound, check, is_shaped, kind_of
from tilewright.core.types import ScalarType, TensorType, TileType, unplaced
from tilewright.dtypes import BOOL
from tilewright.errors import KernelError, NotStaticError, OperandError
from tilewright.source import UNKNOWN, Span


def call(spec: OpSpec, bound: Bound, span: Span = UNKNOWN) -> Expr:
    """Return the call of `spec` with `bound` arguments; a call that always gives one value is that value.

    A KernelError from here blames operands by name; `locate` turns that into places.
    """
    if spec.takes_numbers and not any(is_shaped(bound[name]) for name in spec.data):
        return _of_numbers(spec, bound, span)
    kind = kind_of(spec, bound)
    operands = {p.name: check(spec, p, bound) for p in spec.operands}
    for name in spec.converted:
        operands[name] = _element(operands[name], bound)
    attributes = tuple([(p.name, _attribute(bound[p.name])) for p in spec.options])
    for_rules = {name: _for_rule(value) for name, value in operands.items()}
    for_rules.update(attributes)
    type_ = unplaced(spec.infer(**for_rules))
    known = spec.fold(**for_rules) if spec.fold else None
    if isinstance(known, Call) and not any(known is given for given in operands.values()):
        return Call(known.op, known.args, known.attributes, known.type, span)  # another op, written here
    if isinstance(known, Expr):
        return known
    args = list(operands.values())
    while args and isinstance(args[-1], Absent):
        args.pop()
    node = Call(spec.ops[kind], tuple(args), attributes, type_, span)
    return _folded(node) if kind is Kind.SCALAR else node


def _of_numbers(spec: OpSpec, bound: Bound, span: Span) -> Expr:
    """Return the scalar op that an op on numbers alone is."""
    for name in spec.data:
        value = bound[name]
        if isinstance(value, bool) or (isinstance(value, Expr) and value.type == ScalarType(BOOL)):
            help = "compare first, and choose a number: 1 if a else 0"
            raise OperandError("scalar arithmetic does not accept bool", blame=[name], help=help)
    return call(OPS[f"scalar.{spec.name}"].spec, {name: bound[name] for name in spec.data}, span)


def _element(number: Expr, bound: Bound) -> Expr:
    """Return a number converted to the type of the elements it meets."""
    met = next(value.type for value in bound.values() if isinstance(value, Expr) and is_shaped(value))
    assert isinstance(met, (TensorType, TileType))
    spec = OPS["scalar.cast"].spec
    return call(spec, {"x": number, "target_type": met.dtype, "mode": "trunc"}, number.span)


def _attribute(value: Argument) -> Attribute:
    if isinstance(value, tuple):
        return tuple([_attribute(element) for element in value])
    if isinstance(value, Expr):
        raise NotStaticError(f"this option must be known before the program runs, got {value.type}")
    return value


def rebuild(old: Call, args: Sequence[Expr]) -> Expr:
    """Return `old` applied to other operands, its type inferred anew."""
    bound = _named(old, args)
    try:
        return call(old.op.spec, bound, old.span)
    except KernelError as error:
        locate(error, bound, old.span, {})
        raise


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
    return call(spec, {p.name: a for p, a in zip(spec.parameters, args, strict=True)}, span)


def ceil_div(a: Expr, b: Expr) -> Expr:
    """Return how many times one integer it takes to reach another, by no sum that might be more than its type holds."""
    left = scalar("mod", a, b)
    assert isinstance(left.type, ScalarType)
    size = left if left.type.dtype.is_unsigned_int() else scalar("max", left, scalar("neg", left))
    return scalar("add", scalar("floordiv", a, b), scalar("min", size, constant(1, left.type.dtype)))


def symbolic(formula: DynExpr | int) -> Expr:
    """Return a formula over named extents as an expression."""
    if isinstance(formula, int):
        return integer(formula)
    if isinstance(formula, DynVar):
        return Symbol(formula.name)
    return scalar(formula.operation, *(symbolic(operand) for operand in formula.operands))


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


def locate(error: KernelError, bound: Bound, span: Span, spans: Mapping[str, Span]) -> None:
    """Give an error from `call` its place: the blamed operands where their spans are known, else the whole call."""
    notes = [_origin(name, value) for name in error.blame if isinstance(value := bound.get(name), Expr)]
    error.locate([spans[name] for name in error.blame if name in spans] or [span], notes)


def _origin(name: str, value: Expr) -> str:
    if isinstance(value, MakeTuple):
        return f"{name}: {value}"
    if not isinstance(value, Var):
        return f"{name}: {value.type}"
    line = f" from line {value.span.line}" if value.span.is_known else ""
    return f"{name}: `{value.name_hint}` is {value.type}{line}"
