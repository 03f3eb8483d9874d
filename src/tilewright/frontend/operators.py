"""Operators: Python's signs on scalars, tiles and tensors."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import partial, reduce
from typing import TypeGuard

from tilewright.core.build import arguments, call, locate, scalar
from tilewright.core.expr import Call, Const, Expr, Var, constant
from tilewright.core.extents import bounds
from tilewright.core.numbers import as_constant, as_number
from tilewright.core.op import OpSpec
from tilewright.core.types import TensorType, TileType, is_static, static_shape, tile
from tilewright.dtypes import INDEX, DataType
from tilewright.errors import (
    KernelError,
    NotStaticError,
    OperandError,
    UnsupportedFeatureError,
    WholeQuotientWarning,
)
from tilewright.frontend.operand_types import compared, is_integer, is_vector, met, of_one_kind
from tilewright.frontend.state import Widened
from tilewright.frontend.translator import Translator
from tilewright.frontend.walk.expressions import Augmented
from tilewright.frontend.walk.known import BINARY as KNOWN
from tilewright.frontend.walk.known import COMPARE as COMPARE_KNOWN
from tilewright.frontend.walk.known import UNARY as UNARY_KNOWN
from tilewright.frontend.walk.known import known
from tilewright.frontend.walk.walker import Value
from tilewright.ops.registry import OPS

BINARY: Mapping[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("add", "add"),
    ast.Sub: ("sub", "sub"),
    ast.Mult: ("mul", "mul"),
    ast.Div: ("div", "div"),
    ast.FloorDiv: ("floordiv", "floor_divide"),
    ast.Mod: ("mod", "rem"),
    ast.LShift: ("shl", "shl"),
    ast.RShift: ("shr", "shr"),
    ast.BitAnd: ("bit_and", "and_"),
    ast.BitOr: ("bit_or", "or_"),
    ast.BitXor: ("bit_xor", "xor"),
    ast.MatMult: ("", "matmul"),
    ast.Pow: ("", "pow"),
}
"""Each operator: the op between scalars, and on tiles and tensors."""

UNARY: Mapping[type[ast.unaryop], tuple[str, str]] = {
    ast.USub: ("neg", "neg"),
    ast.Invert: ("invert", "not_"),
    ast.Not: ("not_", ""),
    ast.UAdd: ("", ""),
}

COMPARE: Mapping[type[ast.cmpop], str] = {
    ast.Eq: "eq",
    ast.NotEq: "ne",
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
}


def apply(t: Translator, spec: OpSpec, bound: dict[str, Value], node: ast.AST, spans: Mapping[str, ast.AST]) -> Expr:
    """Return an op applied to operands, with any mistake shown at the operands it is about."""
    try:
        result = call(spec, bound, t.span(node))
        if t.kept:
            from tilewright.frontend.kept_axes import check_meeting  # which few kernels need

            check_meeting(t, result, bound, node)
        return result
    except KernelError as error:
        if isinstance(error, NotStaticError):
            error.message = f"`{spec.name}` needs to know its sizes before the program runs: {error.message}"
        _locate(error, t, bound, node, spans)
        _remake(t, bound, error)
        raise


FULL = "pl.full"
"""What begins the key of a `pl.full` that makes a tile."""


def _remake(t: Translator, bound: Mapping[str, Value], mistake: KernelError) -> None:
    """Start again where a tensor is a mistake that is computed from what `pl.full` makes: from a tile."""
    pending = [bound.get(name) for name in mistake.blame] if isinstance(mistake, OperandError) else []
    seen: set[int] = set()
    while pending:
        value = pending.pop()
        made = t.assigned.get(value) if isinstance(value, Var) else value
        if not isinstance(made, Call) or not isinstance(made.type, TensorType) or id(made) in seen:
            continue
        seen.add(id(made))
        pending += made.args
        if made.op is OPS["tensor.full"] and is_static(made.type.shape) and (FULL, made.span) not in t.widened:
            raise Widened((FULL, made.span), tile(static_shape(made.type.shape), made.type.dtype), mistake=mistake)


def _locate(
    error: KernelError, t: Translator, bound: Mapping[str, Value], node: ast.AST, spans: Mapping[str, ast.AST]
) -> None:
    """Show a mistake at the operands it is about."""
    locate(error, bound, t.span(node), {name: t.span(where) for name, where in spans.items()})


def binary(t: Translator, operator: ast.operator, lhs: Value, rhs: Value, node: ast.BinOp) -> Value:
    """Return an operator between scalars, tiles and tensors, a number where all is known; `x ** 2` multiplies."""
    if not isinstance(lhs, Expr) and not isinstance(rhs, Expr):
        if not BINARY[type(operator)][0] or not all(isinstance(each, (int, float)) for each in (lhs, rhs)):
            return known(t, node, KNOWN[type(operator)], lhs, rhs)  # text and tuples, too, are multiplied by a number
        return as_number(_binary(t, operator, as_constant(lhs), as_constant(rhs), node))
    return _binary(t, operator, lhs, rhs, node)


def _binary(t: Translator, operator: ast.operator, lhs: Value, rhs: Value, node: ast.BinOp) -> Expr:
    if isinstance(operator, ast.Pow) and _is_shaped(lhs) and type(rhs) is int and rhs == 2:
        return apply(t, OPS["tile.square"].spec, {"x": lhs}, node, {"x": node.left})
    is_shaped = _is_shaped(lhs) or _is_shaped(rhs)
    if isinstance(operator, ast.Add) and (added := _added(t, lhs, rhs, node)) is not None:
        return added
    is_power = isinstance(operator, ast.Pow) and not is_shaped and t.frame is not None
    if is_power and (power := _power(lhs, rhs)) is not None:
        return power
    spec = _spec(t, node, BINARY[type(operator)], is_shaped)
    if isinstance(operator, ast.MatMult) and any(map(is_vector, (lhs, rhs))) and _is_shaped(lhs) and _is_shaped(rhs):
        from tilewright.frontend.vector_products import vector_product  # which few kernels have

        return vector_product(t, lhs, rhs, node, lambda a, b: _binary(t, operator, a, b, node))
    if isinstance(operator, ast.MatMult) and any(map(_is_batch, (lhs, rhs))):
        spec = OPS["tile.batch_matmul"].spec
    _check_operands(t, node, lhs, rhs)
    if is_shaped:
        try:
            lhs, rhs = met(operator, lhs, rhs, lambda value, dtype: _cast(t, value, dtype, node))
        except KernelError as error:
            _locate(error, t, {"lhs": lhs, "rhs": rhs}, node, {"lhs": node.left, "rhs": node.right})
            raise
    elif t.frame is not None:
        lhs, rhs = of_one_kind(lhs, rhs)
        if isinstance(operator, ast.Div) and all(map(is_integer, (lhs, rhs))):
            _warn_of_whole_quotient(t, node)
    spans = dict(zip((p.name for p in spec.parameters), (node.left, node.right), strict=False))
    try:
        return apply(t, spec, _defaults(spec) | dict(zip(spans, (lhs, rhs), strict=True)), node, spans)
    except KernelError as error:
        if isinstance(operator, (ast.BitAnd, ast.BitOr, ast.BitXor)):
            error.hint = _BRACKETS.format(_SIGNS[type(operator)])
        raise


def _warn_of_whole_quotient(t: Translator, node: ast.BinOp) -> None:
    """Warn that `/` keeps integers what they are, as PyPTO has it and Python has not."""
    message = f"`{ast.unparse(node)}` divides integers that only the running program knows, and drops the fraction"
    help = f"write `//` for a whole number, and pl.cast({ast.unparse(node.left)}, pl.FP32) / ... for a fraction"
    t.warn(WholeQuotientWarning, message, [t.span(node)], help)


def _added(t: Translator, acc: Value, product: Value, node: ast.BinOp) -> Expr | None:
    """Return `acc + a @ b` as one op, which is valid where the product is, too; None for any other sum.

    So is `acc += pl.matmul(a, b)`; `acc + pl.matmul(a, b)` is what it says, as programs print it.
    """
    made = t.assigned.get(product) if t.frame is not None and isinstance(product, Var) else None
    is_product = isinstance(node.right, ast.BinOp) and isinstance(node.right.op, ast.MatMult)
    if is_product and isinstance(made, Call) and made.op.name == "tile.reshape" and isinstance(acc, Expr):
        from tilewright.frontend.vector_products import added_vector

        return added_vector(t, acc, made, node, lambda to, by: _added(t, to, by, node))
    is_named = isinstance(node, Augmented) and isinstance(made, Call) and made.span == t.span(node.right)
    if (
        not (is_product or is_named)
        or not isinstance(made, Call)
        or made.op.name != "tile.matmul"
        or not isinstance(acc, Expr)
    ):
        return None
    sum_, own = acc.type, made.type
    if not isinstance(sum_, TileType) or not isinstance(own, TileType):
        return None
    if (sum_.shape, sum_.dtype) != (own.shape, own.dtype):
        return None
    bound = {**_defaults(spec := OPS["tile.matmul_acc"].spec), "acc": acc}
    names = ("lhs", "rhs", "a_trans", "b_trans")
    given = arguments(made)
    return apply(t, spec, bound | {name: given[name] for name in names}, node, {"acc": node.left})


def _power(base: Value, exponent: Value) -> Expr | None:
    """Return a running number multiplied with itself, or two shifted as often as a loop counts; None for others."""
    if isinstance(base, Expr) and type(exponent) is int and 1 <= exponent <= MOST_FACTORS:
        return reduce(partial(scalar, "mul"), [base] * exponent)
    places = base.bit_length() - 1 if type(base) is int and base > 1 and not base & (base - 1) else 0
    if not places or not isinstance(exponent, Expr) or (reach := bounds(exponent)) is None:
        return None
    if reach[0] < 0 or reach[1] * places >= INDEX.bits - 1:
        return None
    return scalar("shl", as_constant(1), scalar("mul", exponent, as_constant(places)))


MOST_FACTORS = 16
"""How often a running number is multiplied with itself."""

_SIGNS: Mapping[type[ast.operator], str] = {ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^"}
_BRACKETS = "`{0}` joins masks, or integers bit by bit, and binds tighter than `<`: (x > 0) {0} (x < 1)"


def _cast(t: Translator, value: Expr, dtype: DataType, node: ast.AST) -> Value:
    bound = {"x": value, "target_type": dtype, "mode": "round"}
    return t.placed(call(OPS["tile.cast"].spec, bound, t.span(node)), node)


def unary(t: Translator, operator: ast.unaryop, value: Value, node: ast.UnaryOp) -> Value:
    """Return an operator on a scalar, a tile or a tensor; a number where that is known."""
    if not isinstance(value, Expr) and isinstance(operator, (ast.Not, ast.UAdd)):
        return known(t, node, UNARY_KNOWN[type(operator)], value)
    if not isinstance(value, Expr):
        return as_number(_unary(t, operator, as_constant(value), node))
    return _unary(t, operator, value, node)


def _unary(t: Translator, operator: ast.unaryop, value: Value, node: ast.UnaryOp) -> Expr:
    if isinstance(operator, ast.Not) and t.frame is not None:
        from tilewright.frontend.branches import is_true  # few kernels ask

        value = is_true(value) or value
    spec = _spec(t, node, UNARY[type(operator)], _is_shaped(value))
    name = spec.parameters[0].name
    return apply(t, spec, _defaults(spec) | {name: value}, node, {name: node.operand})


def _check_operands(t: Translator, node: ast.AST, *values: Value) -> None:
    for value in values:
        t.check_no_data(value, node)
        if not isinstance(value, (Expr, bool, int, float)):
            is_number = hasattr(value, "item") and getattr(value, "shape", None) == ()
            help = "write int(...) or float(...) around it" if is_number else "take the number you mean out of it first"
            message = f"an operator needs numbers, tiles or tensors, got {value!r}"
            raise t.error(OperandError, node, message, help=help)


def _spec(t: Translator, node: ast.BinOp | ast.UnaryOp, names: tuple[str, str], shaped: bool) -> OpSpec:
    name = names[shaped]
    if not name:
        where = "tiles and tensors" if shaped else "scalars"
        sign, help = _UNDEFINED[type(node.op)]
        raise t.error(UnsupportedFeatureError, node, f"`{sign}` is not defined for {where}", help=help)
    return OPS[f"{'tile' if shaped else 'scalar'}.{name}"].spec


_UNDEFINED: Mapping[type[ast.AST], tuple[str, str]] = {
    ast.Pow: ("**", "multiply it with itself; pl.pow takes tiles"),
    ast.MatMult: ("@", "`@` is the matrix product of tiles or tensors"),
    ast.Not: ("not", "`~` turns a mask round, and `x == 0` is one"),
    ast.UAdd: ("+", "drop the sign"),
}
"""The operators that some operands do not have, and what to write instead."""


def _defaults(spec: OpSpec) -> dict[str, Value]:
    return {p.name: p.default for p in spec.parameters}


def _is_shaped(value: Value) -> TypeGuard[Expr]:
    return isinstance(value, Expr) and isinstance(value.type, (TensorType, TileType))


def _is_batch(value: Value) -> bool:
    """Return whether a tile is several matrices."""
    return isinstance(value, Expr) and isinstance(value.type, TileType) and len(value.type.shape) > 2


def check_comparison(t: Translator, node: ast.Compare) -> None:
    """Raise for `is` other than with None."""
    for op, right in zip(node.ops, node.comparators, strict=True):
        is_none = isinstance(right, ast.Constant) and right.value is None
        if isinstance(op, (ast.Is, ast.IsNot)) and not is_none:
            help = "compare with == and !=, joined with `or` and `and`"
            raise t.error(UnsupportedFeatureError, node, "`is` is a comparison with None alone", help=help)


def compare(t: Translator, operator: ast.cmpop, lhs: Value, rhs: Value, node: ast.Compare) -> Value:
    """Return a comparison: a condition of scalars, a bool where both are known, a mask of tiles or tensors."""
    if isinstance(operator, (ast.In, ast.NotIn)):
        return _membership(t, isinstance(operator, ast.In), lhs, rhs, node)
    if not isinstance(lhs, Expr) and not isinstance(rhs, Expr):
        if not all(isinstance(each, (int, float)) for each in (lhs, rhs)):
            return known(t, node, COMPARE_KNOWN[type(operator)], lhs, rhs)
        return as_number(_compare(t, operator, as_constant(lhs), as_constant(rhs), node))
    return _compare(t, operator, lhs, rhs, node)


def _compare(t: Translator, operator: ast.cmpop, lhs: Value, rhs: Value, node: ast.Compare) -> Expr:
    at = node.ops.index(operator)
    spans = ([node.left, *node.comparators][at], node.comparators[at])
    return _between(t, COMPARE[type(operator)], lhs, rhs, node, spans)


def _membership(t: Translator, is_in: bool, lhs: Value, rhs: Value, node: ast.Compare) -> Value:
    """Return whether a running number is one of several."""
    if not isinstance(rhs, (tuple, dict)) or _is_shaped(lhs) or any(map(_is_shaped, rhs)):  # pyright: ignore[reportUnknownArgumentType]
        help = "`n in (1, 2)` asks a number; pl.any(x == n) asks the elements of a tile"
        raise t.error(
            UnsupportedFeatureError,
            node,
            f"`in` looks into a tuple of numbers, got {t.describe(lhs)} in {t.describe(rhs)}",
            help=help,
        )
    found = constant(False)
    for each in rhs:  # pyright: ignore[reportUnknownVariableType]
        same = _between(t, "eq", lhs, each, node, (node.left, node.comparators[0]))
        found = same if isinstance(found, Const) else scalar("or_", found, same)
    return found if is_in else scalar("not_", found)


def logical(t: Translator, is_and: bool, lhs: Value, rhs: Value, node: ast.expr, where: ast.expr) -> Expr:
    """Return `and` or `or` of two conditions; masks are joined only by the comparisons of a chain."""
    first = node.values[0] if isinstance(node, ast.BoolOp) else node
    if isinstance(node, ast.BoolOp) and (_is_shaped(lhs) or _is_shaped(rhs)):
        word, sign = ("and", "&") if is_and else ("or", "|")
        help = f"join masks with `{sign}`, each comparison in brackets: (x > 0) {sign} (x < 1)"
        raise t.error(OperandError, node, f"`{word}` joins conditions, and these are tiles or tensors", help=help)
    return _between(t, "and_" if is_and else "or_", lhs, rhs, node, (first, where))


def _between(
    t: Translator, name: str, lhs: Value, rhs: Value, node: ast.expr, spans: tuple[ast.expr, ast.expr]
) -> Expr:
    _check_operands(t, node, lhs, rhs)
    is_shaped = _is_shaped(lhs) or _is_shaped(rhs)
    if is_shaped:
        lhs, rhs = compared(lhs, rhs, None if t.frame is None else lambda value, dtype: _cast(t, value, dtype, node))
    elif t.frame is not None:
        lhs, rhs = of_one_kind(lhs, rhs)
    spec = OPS[f"{'tile' if is_shaped else 'scalar'}.{name}"].spec
    return apply(t, spec, {"lhs": lhs, "rhs": rhs}, node, {"lhs": spans[0], "rhs": spans[1]})
