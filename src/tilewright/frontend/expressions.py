"""Expressions: names, numbers, operators and attributes."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, TypeAlias

from tilewright.core.annotations import DynVar
from tilewright.core.build import call, locate
from tilewright.core.expr import Call, Const, Expr, Var
from tilewright.core.extents import as_scalar
from tilewright.core.op import OpSpec
from tilewright.core.types import ScalarType, TensorType, TileType
from tilewright.errors import (
    KernelError,
    NotStaticError,
    OperandError,
    OutOfScopeError,
    StaticEvaluationError,
    UndefinedNameError,
    UnknownAttributeError,
    UnknownOpError,
    UnsupportedFeatureError,
)
from tilewright.frontend.foreign import meant
from tilewright.frontend.names import is_ours, nearest
from tilewright.frontend.scope import UNKNOWN, State
from tilewright.frontend.state import Listed, Translator, Value, expression, sequence
from tilewright.frontend.value_keys import is_instance, is_plain
from tilewright.ops.registry import OPS
from tilewright.records import record

_Known: TypeAlias = Callable[[Any, Any], Any]

LARGEST = 1 << 16
"""How many bits a number, or elements a sequence, may have that is computed while a kernel is read."""


def _checked(size: object) -> None:
    if isinstance(size, int) and size > LARGEST:
        raise ValueError(f"the result would have more than {LARGEST} bits or elements")


def power(base: Any, exponent: Any, modulus: Any = None) -> Any:
    """Return what Python's `pow` does; ValueError for what Python would take minutes or all memory to compute."""
    if modulus is None and isinstance(base, int) and isinstance(exponent, int):
        _checked(exponent * (abs(base).bit_length() if abs(base) > 1 else 0))
    return pow(base, exponent, modulus)


def _product(a: Any, b: Any) -> Any:
    for parts, times in ((a, b), (b, a)):
        if isinstance(parts, (tuple, list, str)) and isinstance(times, int):
            _checked(len(parts) * times)  # pyright: ignore[reportUnknownArgumentType]
    return a * b


def _shifted(a: Any, b: Any) -> Any:
    _checked(b)
    return a << b


BINARY: Mapping[type[ast.operator], tuple[_Known, str, str]] = {
    ast.Add: (lambda a, b: a + b, "add", "add"),
    ast.Sub: (lambda a, b: a - b, "sub", "sub"),
    ast.Mult: (_product, "mul", "mul"),
    ast.Div: (lambda a, b: a / b, "div", "div"),
    ast.FloorDiv: (lambda a, b: a // b, "floordiv", ""),
    ast.Mod: (lambda a, b: a % b, "mod", ""),
    ast.LShift: (_shifted, "shl", "shl"),
    ast.RShift: (lambda a, b: a >> b, "shr", "shr"),
    ast.BitAnd: (lambda a, b: a & b, "bit_and", "and_"),
    ast.BitOr: (lambda a, b: a | b, "bit_or", "or_"),
    ast.BitXor: (lambda a, b: a ^ b, "bit_xor", "xor"),
    ast.MatMult: (lambda a, b: a @ b, "", "matmul"),
    ast.Pow: (power, "", ""),
}
"""Each operator: on known values, between scalars, on tiles and tensors."""

UNARY: Mapping[type[ast.unaryop], tuple[Callable[[Any], Any], str, str]] = {
    ast.USub: (operator.neg, "neg", "neg"),
    ast.Invert: (operator.invert, "invert", "not_"),
    ast.Not: (operator.not_, "not_", ""),
    ast.UAdd: (operator.pos, "", ""),
}

COMPARE: Mapping[type[ast.cmpop], tuple[Callable[[Any, Any], bool], str]] = {
    ast.Eq: (operator.eq, "eq"),
    ast.NotEq: (operator.ne, "ne"),
    ast.Lt: (operator.lt, "lt"),
    ast.LtE: (operator.le, "le"),
    ast.Gt: (operator.gt, "gt"),
    ast.GtE: (operator.ge, "ge"),
}


def apply(t: Translator, spec: OpSpec, bound: dict[str, Value], node: ast.AST, spans: Mapping[str, ast.AST]) -> Expr:
    """Return an op applied to operands, with any mistake shown at the operands it is about."""
    try:
        return call(spec, bound, t.span(node))
    except KernelError as error:
        if isinstance(error, NotStaticError):
            error.message = f"`{spec.name}` needs to know its sizes before the program runs: {error.message}"
        locate(error, bound, t.span(node), {name: t.span(where) for name, where in spans.items()})
        raise


@expression(ast.Constant)
def _constant(t: Translator, node: ast.Constant) -> Value:
    if isinstance(node.value, (bytes, complex, type(...))):
        help = "kernels know numbers, bools, text and None"
        raise UnsupportedFeatureError(f"a kernel has no use for {node.value!r}", spans=[t.span(node)], help=help)
    return node.value


@expression(ast.Name)
def _name(t: Translator, node: ast.Name) -> Value:
    binding = t.scope.find(node.id)
    if binding is not None:
        if binding.state is not State.BOUND:
            raise _out_of_scope(t, node, binding.state, binding.span.line)
        if binding.known is not UNKNOWN:
            return binding.known
        t.outlives(node.id, binding)
        return _met(t, node, binding.value)
    try:
        value = t.resolver.lookup(node.id)
    except KeyError:
        known = [*(name for frame in t.scope.frames for name in frame), *t.resolver.visible()]
        message = f"name '{node.id}' is not defined"
        help = nearest(node.id, known) or "bind it before this line, or define it outside the kernel"
        raise UndefinedNameError(message, spans=[t.span(node)], help=help) from None
    return _met(t, node, value)


def _met(t: Translator, node: ast.Name, value: Value) -> Value:
    """Return a value that a name stands for; a variable that holds a `pl.dynamic` name is noted."""
    if isinstance(value, DynVar) and t.frame is not None:
        t.frame.meet(node.id, value.name, t.span(node))
    return value


def _out_of_scope(t: Translator, node: ast.Name, state: State, line: int) -> OutOfScopeError:
    if state is State.ENDED:
        message, fix = (
            f"'{node.id}' is a loop variable and ends with its loop",
            "keep its last value under another name",
        )
    else:
        message = f"'{node.id}' is not bound on every path that leads here"
        fix = f"line {line} binds it on one path only: bind it before the branch, or in every branch"
    return OutOfScopeError(message, spans=[t.span(node)], help=fix)


@expression(ast.Attribute)
def _attribute(t: Translator, node: ast.Attribute) -> Value:
    owner = taken_from(t, node.value)
    if isinstance(owner, Expr):
        return _property(t, owner, node)
    try:
        return t.resolver.attribute(owner, node.attr)
    except AttributeError:
        raise _missing(t, owner, node) from None


def taken_from(t: Translator, node: ast.expr) -> Value:
    """Return what an attribute or an item is taken of; a container from outside as it came, to be known again."""
    t.resolver.rest()
    value = t.evaluate(node)
    return value if t.resolver.knows(value) else t.placed(value, node)


def _missing(t: Translator, owner: Any, node: ast.Attribute) -> KernelError:
    name = ast.unparse(node.value)
    if node.attr in GROWING and issubclass(type(owner), (tuple, list)):
        return UnknownAttributeError(
            f"`{name}` cannot grow in place: a kernel's lists are fixed", spans=[t.span(node)], help=grown(name, owner)
        )
    help = (meant(node.attr) if is_ours(owner) else "") or nearest(node.attr, dir(owner), f"{name}.")
    if isinstance(owner, ModuleType):
        help = help or f"dir({name}) lists what there is"
        return UnknownOpError(f"there is no `{name}.{node.attr}`", spans=[t.span(node)], help=help)
    return UnknownAttributeError(f"`{name}` has no attribute '{node.attr}'", spans=[t.span(node)], help=help)


GROWING = ("append", "extend", "insert", "pop", "remove", "clear")
"""What would change a list in place."""


def grown(name: str, owner: Value) -> str:
    """Return how a kernel has a longer list or tuple: as a new one under the same name."""
    is_list = isinstance(owner, (list, Listed))
    return f"write `{name} = {name} + {'[value]' if is_list else '(value,)'}`, or give each value a name of its own"


@record
class BindDynamic:
    """`x.bind_dynamic`, waiting for an axis and a name."""

    owner: Expr
    type: TensorType


def _property(t: Translator, owner: Expr, node: ast.Attribute) -> Value:
    """Return `x.shape` or `x.dtype` of a value of the kernel."""
    if isinstance(owner.type, (TensorType, TileType)):
        if node.attr == "dtype":
            return owner.type.dtype
        if node.attr == "shape":
            return tuple(extent_value(t, owner, axis, node) for axis in range(len(owner.type.shape)))
        if node.attr == "bind_dynamic" and isinstance(owner.type, TensorType):
            return BindDynamic(owner, owner.type)
    shaped = _is_shaped(owner)
    help = "it has .shape and .dtype" if shaped else "scalars have no attributes"
    if shaped:
        help = meant(node.attr, ast.unparse(node.value)) or help
    raise UnknownAttributeError(f"{owner.type} has no attribute '{node.attr}'", spans=[t.span(node)], help=help)


def extent_value(t: Translator, owner: Expr, axis: int, node: ast.AST) -> Value:
    """Return an extent of a tensor or tile: a number, a symbol, or what the running program finds it to be."""
    assert isinstance(owner.type, (TensorType, TileType))
    extent = owner.type.shape[axis]
    if isinstance(extent, int):
        return extent
    if extent is not None:
        return as_scalar(extent)
    return t.placed(apply(t, OPS["tensor.dim"].spec, {"tensor": owner, "axis": axis}, node, {}), node)


@expression(ast.Tuple)
@expression(ast.List)
def _sequence(t: Translator, node: ast.Tuple | ast.List) -> Value:
    elements = [t.operand(element) for element in node.elts]
    return Listed(elements) if isinstance(node, ast.List) else tuple(elements)


@expression(ast.BinOp)
def _binary(t: Translator, node: ast.BinOp) -> Value:
    meaning, scalar_name, shaped_name = BINARY[type(node.op)]
    lhs, rhs = t.operand(node.left), t.operand(node.right)
    if not isinstance(lhs, Expr) and not isinstance(rhs, Expr):
        check_plain(t, node, lhs, rhs)
        return _known(t, node, lambda: meaning(as_python(lhs), as_python(rhs)))
    name = shaped_name if _is_shaped(lhs) or _is_shaped(rhs) else scalar_name
    spec = _operator(t, node, name, _is_shaped(lhs) or _is_shaped(rhs))
    _check_operands(t, node, lhs, rhs)
    spans = dict(zip((p.name for p in spec.parameters), (node.left, node.right), strict=False))
    return apply(t, spec, _defaults(spec) | dict(zip(spans, (lhs, rhs), strict=True)), node, spans)


def _check_operands(t: Translator, node: ast.AST, *values: Value) -> None:
    for value in values:
        t.check_no_data(value, node)
        if not isinstance(value, (Expr, bool, int, float)):
            is_number = hasattr(value, "item") and getattr(value, "shape", None) == ()
            help = "write int(...) or float(...) around it" if is_number else "take the number you mean out of it first"
            message = f"an operator needs numbers, tiles or tensors, got {value!r}"
            raise OperandError(message, spans=[t.span(node)], help=help)


def _operator(t: Translator, node: ast.expr, name: str, shaped: bool) -> OpSpec:
    if not name:
        where = "tiles and tensors" if shaped else "scalars"
        sign, help = _UNDEFINED[type(node.op)] if isinstance(node, (ast.BinOp, ast.UnaryOp)) else ("", "")
        raise UnsupportedFeatureError(f"`{sign}` is not defined for {where}", spans=[t.span(node)], help=help)
    return OPS[f"{'tile' if shaped else 'scalar'}.{name}"].spec


_UNDEFINED: Mapping[type[ast.AST], tuple[str, str]] = {
    ast.Pow: ("**", "multiply it with itself, or use pl.exp(pl.log(x) * y) on tiles"),
    ast.FloorDiv: (
        "//",
        'pl.cast(a / b, pl.INT32, mode="floor") rounds floats down; integers drop the fraction',
    ),
    ast.Mod: ("%", "pl.fmod(a, b) is the remainder with the sign of the dividend"),
    ast.MatMult: ("@", "`@` is the matrix product of tiles or tensors"),
    ast.Not: ("not", "pl.cmp(x, 0, cmp_type=pl.CmpType.EQ) compares every element"),
    ast.UAdd: ("+", "drop the sign"),
}
"""The operators that some operands do not have, and what to write instead."""


def _defaults(spec: OpSpec) -> dict[str, Value]:
    return {p.name: p.default for p in spec.parameters}


def _is_shaped(value: Value) -> bool:
    return isinstance(value, Expr) and isinstance(value.type, (TensorType, TileType))


@expression(ast.UnaryOp)
def _unary(t: Translator, node: ast.UnaryOp) -> Value:
    meaning, scalar_name, shaped_name = UNARY[type(node.op)]
    value = t.operand(node.operand)
    if not isinstance(value, Expr):
        check_plain(t, node, value)
        return _known(t, node, lambda: meaning(value))
    spec = _operator(t, node, shaped_name if _is_shaped(value) else scalar_name, _is_shaped(value))
    name = spec.parameters[0].name
    return apply(t, spec, _defaults(spec) | {name: value}, node, {name: node.operand})


@expression(ast.Compare)
def _compare(t: Translator, node: ast.Compare) -> Value:
    if len(node.ops) == 1 and isinstance(node.ops[0], (ast.Is, ast.IsNot)) and _is_none(node.comparators[0]):
        return (t.operand(node.left) is None) == isinstance(node.ops[0], ast.Is)
    if len(node.ops) != 1 or type(node.ops[0]) not in COMPARE:
        chained = len(node.ops) != 1
        message = "a comparison has one operator here" if chained else "`in` and `is` are not comparisons here"
        help = "join two comparisons with `and`" if chained else "compare with == and !=, joined with `or` and `and`"
        raise UnsupportedFeatureError(message, spans=[t.span(node)], help=help)
    meaning, name = COMPARE[type(node.ops[0])]
    lhs, rhs = t.operand(node.left), t.operand(node.comparators[0])
    if not isinstance(lhs, Expr) and not isinstance(rhs, Expr):
        check_plain(t, node, lhs, rhs)
        return _known(t, node, lambda: meaning(as_python(lhs), as_python(rhs)))
    if _is_shaped(lhs) or _is_shaped(rhs):
        raise OperandError(
            "tiles and tensors compare with pl.cmp",
            spans=[t.span(node)],
            help=f"pl.cmp(a, b, cmp_type=pl.CmpType.{name.upper()})",
        )
    _check_operands(t, node, lhs, rhs)
    return apply(
        t, OPS[f"scalar.{name}"].spec, {"lhs": lhs, "rhs": rhs}, node, {"lhs": node.left, "rhs": node.comparators[0]}
    )


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


@expression(ast.BoolOp)
def _logical(t: Translator, node: ast.BoolOp) -> Value:
    name = "and_" if isinstance(node.op, ast.And) else "or_"
    result, *rest = [t.operand(value) for value in node.values]
    for value, where in zip(rest, node.values[1:], strict=True):
        if not isinstance(result, Expr) and not isinstance(value, Expr):
            check_plain(t, node, result)
            result = (result and value) if name == "and_" else (result or value)
            continue
        _check_operands(t, node, result, value)
        result = apply(
            t, OPS[f"scalar.{name}"].spec, {"lhs": result, "rhs": value}, node, {"lhs": node.values[0], "rhs": where}
        )
    return result


@expression(ast.IfExp)
def _conditional(t: Translator, node: ast.IfExp) -> Value:
    condition = t.operand(node.test)
    if isinstance(condition, Expr):
        raise UnsupportedFeatureError(
            "a conditional expression needs a condition the compiler knows",
            spans=[t.span(node.test)],
            help="use an `if` statement",
        )
    check_plain(t, node.test, condition)
    return t.evaluate(node.body if condition else node.orelse)


@expression(ast.JoinedStr)
def _text(t: Translator, node: ast.JoinedStr) -> Value:
    parts: list[str] = []
    for part in node.values:
        if isinstance(part, ast.FormattedValue):
            value = t.evaluate(part.value)
            check_plain(t, part.value, value)
            parts.append(show(value))
        elif isinstance(part, ast.Constant):
            parts.append(str(part.value))
    return "".join(parts)


def show(value: Value) -> str:
    """Return a value as `pl.static_print` and messages write it."""
    if isinstance(value, tuple):
        parts = [show(part) for part in sequence(value)]  # pyright: ignore[reportUnknownArgumentType]
        return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
    if isinstance(value, Var):
        return f"{value.name_hint}: {value.type}"
    if isinstance(value, Call) and not isinstance(value.type, ScalarType):
        return f"{value.op.name}(...): {value.type}"
    return str(value.value) if isinstance(value, Const) else str(value)


def check_plain(t: Translator, node: ast.expr, *values: Value, deeply: bool = True) -> None:
    """Raise for objects that Python cannot compute with here: nobody would notice when they change."""
    for value in values:
        if is_instance(value) or (deeply and not is_plain(value)):
            raise StaticEvaluationError(
                f"`{ast.unparse(node)}` depends on all of an object of type {type(value).__name__}, "
                "which the cache cannot follow",
                spans=[t.span(node)],
                help="use the numbers it holds: its attributes and items are followed one by one",
            )


def as_python(value: Value) -> Value:
    """Return a value as Python has it, its lists lists again."""
    if not isinstance(value, tuple):
        return value
    elements = [as_python(element) for element in sequence(value)]  # pyright: ignore[reportUnknownArgumentType]
    return elements if isinstance(value, Listed) else tuple(elements)


def _known(t: Translator, node: ast.expr, compute: Callable[[], Any]) -> Any:
    """Return arithmetic on values the compiler knows, done by Python itself."""
    try:
        result = compute()
        return Listed(result) if isinstance(result, list) else result  # pyright: ignore[reportUnknownArgumentType]
    except Exception as error:
        reason = error.message if isinstance(error, KernelError) else error
        raise StaticEvaluationError(f"cannot evaluate `{ast.unparse(node)}`: {reason}", spans=[t.span(node)]) from None
