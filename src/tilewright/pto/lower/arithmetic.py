"""Arithmetic: the ops of `arith` on scalars. Signless integers are signed; unsigned forms go through unsigned types."""

from __future__ import annotations

from tilewright import dtypes
from tilewright.core.expr import Expr, constant
from tilewright.dtypes import BOOL, INDEX, UNSIGNED, DataType, round_scalar
from tilewright.pto.lower.build import element_of, known
from tilewright.pto.lower.machine import Machine, lowers
from tilewright.pto.lower.values import Lowered, Number
from tilewright.pto.module import Op
from tilewright.pto.types import Scalar

_PLAIN = {
    "addi": "add", "subi": "sub", "muli": "mul", "addf": "add", "subf": "sub", "mulf": "mul", "divf": "div",
    "divsi": "div", "floordivsi": "floordiv", "maxsi": "max", "minsi": "min", "maximumf": "max", "minimumf": "min",
    "maxf": "max", "minf": "min", "shli": "shl", "shrsi": "shr",
}  # fmt: skip
_AS_UNSIGNED = {"divui": "div", "remui": "mod", "maxui": "max", "minui": "min", "shrui": "shr"}
_BITS = {"andi": ("and_", "bit_and"), "ori": ("or_", "bit_or"), "xori": ("ne", "bit_xor")}
_PREDICATES = {"eq": "eq", "ne": "ne", "lt": "lt", "le": "le", "gt": "gt", "ge": "ge"}


def _result(op: Op) -> DataType:
    type_ = op.results[0].type
    assert isinstance(type_, Scalar)
    return type_.dtype


@lowers("arith.constant")
def _constant(m: Machine, op: Op) -> Number:
    value = op.attributes["value"]
    assert isinstance(value, (bool, int, float))
    dtype = _result(op)
    return Number(constant(round_scalar(value, dtype), dtype))


@lowers(*(f"arith.{name}" for name in _PLAIN))
def _binary(m: Machine, op: Op) -> Number:
    lhs, rhs = (_signed(m, m.expr(v)) for v in op.operands)
    return Number(_to(m, m.b.scalar(_PLAIN[op.name.removeprefix("arith.")], lhs, rhs), _result(op)))


def _signed(m: Machine, value: Expr) -> Expr:
    """Return a number as one with a sign: of one bit, a set bit is minus one."""
    return m.b.scalar("neg", m.b.cast(value, dtypes.INT32)) if element_of(value) == BOOL else value


def _unsigned(m: Machine, value: Expr) -> Expr:
    """Return the bits of an integer as a number without a sign."""
    return m.b.cast(value, UNSIGNED[4 if element_of(value) == BOOL else element_of(value).get_byte()])


@lowers(*(f"arith.{name}" for name in _AS_UNSIGNED))
def _without_sign(m: Machine, op: Op) -> Number:
    lhs, rhs = (_unsigned(m, m.expr(v)) for v in op.operands)
    return Number(_to(m, m.b.scalar(_AS_UNSIGNED[op.name.removeprefix("arith.")], lhs, rhs), _result(op)))


@lowers("arith.remsi")
def _remainder(m: Machine, op: Op) -> Number:
    lhs, rhs = (_signed(m, m.expr(v)) for v in op.operands)
    whole = m.b.scalar("mul", m.b.scalar("div", lhs, rhs), rhs)
    return Number(_to(m, m.b.scalar("sub", lhs, whole), _result(op)))


@lowers("arith.remf")
def _float_remainder(m: Machine, op: Op) -> Number:
    """The remainder with the sign of the dividend, from one with the sign of the divisor."""
    lhs, rhs = (m.expr(v) for v in op.operands)
    zero = constant(0.0, element_of(lhs))
    rest = m.b.scalar("mod", _magnitude(m, lhs), _magnitude(m, rhs))
    result = _chosen(m, m.b.scalar("lt", lhs, zero), m.b.scalar("neg", rest), rest)
    return Number(result)


def _magnitude(m: Machine, value: Expr) -> Expr:
    return m.b.scalar("max", value, m.b.scalar("neg", value))


@lowers("arith.ceildivsi", "arith.ceildivui")
def _ceiling(m: Machine, op: Op) -> Number:
    """Quotients rounded up: one more than rounded down, where something is left."""
    seen = _unsigned if op.name == "arith.ceildivui" else _signed
    lhs, rhs = (seen(m, m.expr(v)) for v in op.operands)
    down = m.b.scalar("floordiv", lhs, rhs)
    left = m.b.cast(m.b.scalar("ne", m.b.scalar("mul", down, rhs), lhs), element_of(down))
    return Number(_to(m, m.b.scalar("add", down, left), _result(op)))


@lowers("arith.maxnumf", "arith.minnumf")
def _number_of(m: Machine, op: Op) -> Number:
    """The larger or smaller of two; one that is no number gives way to the other."""
    lhs, rhs = (m.expr(v) for v in op.operands)
    first = _chosen(m, m.b.scalar("eq", lhs, lhs), lhs, rhs)
    second = _chosen(m, m.b.scalar("eq", rhs, rhs), rhs, lhs)
    return Number(m.b.scalar(op.name.removeprefix("arith.")[:3], first, second))


@lowers(*(f"arith.{name}" for name in _BITS))
def _bits(m: Machine, op: Op) -> Number:
    lhs, rhs = (m.expr(v) for v in op.operands)
    on_conditions, on_bits = _BITS[op.name.removeprefix("arith.")]
    return Number(m.b.scalar(on_conditions if element_of(lhs) == BOOL else on_bits, lhs, rhs))


@lowers("arith.negf")
def _negated(m: Machine, op: Op) -> Number:
    return Number(m.b.scalar("neg", m.expr(op.operands[0])))


@lowers("arith.cmpi")
def _compare(m: Machine, op: Op) -> Number:
    lhs, rhs = (m.expr(v) for v in op.operands)
    predicate = str(op.attributes["predicate"])
    if element_of(lhs) == BOOL:
        lhs, rhs = (m.b.cast(v, dtypes.INT32) for v in (lhs, rhs))
        if predicate.startswith("s"):  # a set bit is minus one where it has a sign
            lhs, rhs = rhs, lhs
    elif predicate.startswith("u"):
        wide = UNSIGNED[element_of(lhs).get_byte()]
        lhs, rhs = (m.b.cast(v, wide) for v in (lhs, rhs))
    return Number(m.b.scalar(_PREDICATES[predicate.lstrip("su") if len(predicate) == 3 else predicate], lhs, rhs))


@lowers("arith.cmpf")
def _compare_floats(m: Machine, op: Op) -> Number:
    lhs, rhs = (m.expr(v) for v in op.operands)
    predicate = str(op.attributes["predicate"])
    ordered = m.b.scalar("and_", m.b.scalar("eq", lhs, lhs), m.b.scalar("eq", rhs, rhs))
    if predicate in ("ord", "uno"):
        return Number(ordered if predicate == "ord" else m.b.scalar("not_", ordered))
    if predicate in ("false", "true"):
        return Number(constant(predicate == "true", BOOL))
    holds = m.b.scalar(_PREDICATES[predicate[1:]], lhs, rhs)
    if predicate.startswith("o"):
        return Number(m.b.scalar("and_", ordered, holds))
    return Number(m.b.scalar("or_", m.b.scalar("not_", ordered), holds))


@lowers("arith.select")
def _select(m: Machine, op: Op) -> Lowered:
    condition, then, other = op.operands
    chosen, spare = m.values[then], m.values[other]
    m.check_alike(chosen, spare)
    parts = [_chosen(m, m.expr(condition), a, b) for a, b in zip(m.parts(chosen), m.parts(spare), strict=True)]
    return chosen if not parts else chosen.having(parts)


def _chosen(m: Machine, condition: Expr, then: Expr, other: Expr) -> Expr:
    """Return one of two values."""
    fixed = known(condition)
    if fixed is not None:
        return then if fixed else other
    var = m.b.variable(then.type, "chosen")
    with m.b.block() as first:
        m.b.assign(var, then)
    with m.b.block() as second:
        m.b.assign(var, other)
    m.b.either(condition, first, second)
    return var


@lowers(
    "arith.index_cast", "arith.extsi", "arith.trunci", "arith.sitofp", "arith.extf", "arith.truncf", "arith.fptosi",
)  # fmt: skip
def _convert(m: Machine, op: Op) -> Lowered:
    value = m.values[op.operands[0]]
    if not isinstance(value, Number):
        return value
    return Number(_to(m, _signed(m, value.expr), _result(op)))


@lowers("arith.extui", "arith.index_castui", "arith.uitofp")
def _convert_unsigned(m: Machine, op: Op) -> Number:
    return Number(_to(m, _unsigned(m, m.expr(op.operands[0])), _result(op)))


@lowers("arith.fptoui")
def _to_unsigned(m: Machine, op: Op) -> Number:
    dtype = _result(op)
    whole = m.b.cast(m.expr(op.operands[0]), UNSIGNED[4 if dtype == BOOL else dtype.get_byte()])
    return Number(_to(m, whole, dtype))


def _to(m: Machine, expr: Expr, dtype: DataType) -> Expr:
    if dtype == element_of(expr):
        return expr
    if dtype == BOOL and element_of(expr).is_float():
        expr = m.b.cast(expr, dtypes.INT32)
    if dtype == BOOL:
        lowest = m.b.scalar("bit_and", expr, constant(1, element_of(expr)))
        return m.b.scalar("ne", lowest, constant(0, element_of(expr)))
    if dtype == INDEX:
        return m.b.index(expr)
    return m.b.cast(expr, dtype)
