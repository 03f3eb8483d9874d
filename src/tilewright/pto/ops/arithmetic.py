"""Arithmetic: the ops of `arith` on scalars. Signless integers are signed; unsigned forms go through unsigned types.

Attributes: `value` of a constant, `predicate` of a comparison.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from tilewright import dtypes
from tilewright.core.expr import Expr, constant
from tilewright.dtypes import BOOL, INDEX, INT64, UNSIGNED, DataType, round_scalar
from tilewright.ops.builder import element_of, known
from tilewright.pto import types
from tilewright.pto.errors import PtoAttributeError, PtoTypeMismatchError
from tilewright.pto.machine.carrying import refuse_unlike
from tilewright.pto.machine.machine import Machine
from tilewright.pto.machine.pairs import MEMBERS, pair_bits, reinterpreted
from tilewright.pto.machine.values import Lowered
from tilewright.pto.machine.wide import high_half
from tilewright.pto.memrefs import is_memref
from tilewright.pto.module import Op
from tilewright.pto.op import Constants, Rule, declare, equal
from tilewright.pto.ops.memrefs import converted, keeps_elements
from tilewright.pto.text.form import Form, Slot, Syntax, Typing
from tilewright.pto.text.suggestions import nearest
from tilewright.pto.types import Scalar

_INTEGERS, _FLOATS = Form("ii", "i", Typing.SAME), Form("ff", "f", Typing.SAME)
_INTEGER_ORDERS = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
_FLOAT_ORDERS = (
    *("false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule", "une", "uno"),
    "true",
)


def predicate(known: Sequence[str]) -> Rule:
    """Return the rule of a comparison: its predicate is a known word."""

    def rule(op: Op, _: Constants) -> None:
        word = op.attributes["predicate"]
        if word not in known:
            signed = next((each for each in (f"s{word}", f"o{word}") if each in known), None)
            help = f"did you mean `{signed}`?" if signed else nearest(str(word), known)
            raise PtoAttributeError(f"`{word}` is no comparison", help=help)

    return rule


def _comparison(operands: str) -> Form:
    return Form(operands, "b", Typing.COMPARE, slots=(Slot("predicate", "word"),), is_leading=True)


def _choices(op: Op, _: Constants) -> None:
    """Refuse a selection between values of two types."""
    equal(op, "second choice", op.operands[2].type, op.operands[1].type)
    equal(op, "result", op.results[0].type, op.operands[1].type)


def _fits(op: Op, _: Constants) -> None:
    """Refuse a conversion that goes the other way, or nowhere."""
    source, target = op.operands[0].of(Scalar), op.results[0].of(Scalar)
    name = op.name.removeprefix("arith.")
    if name.startswith("index_cast") and (source == types.INDEX) == (target == types.INDEX):
        raise PtoTypeMismatchError(f"`{op.name}` goes to or from index, got {source} to {target}")
    if not name.startswith("index_cast") and types.INDEX in (source, target):
        raise PtoTypeMismatchError(f"`{op.name}` takes no index", help="use `arith.index_cast`")
    a, b = (1 if type == types.I1 else type.bits for type in (source, target))
    if (name.startswith("ext") and a >= b) or (name.startswith("trunc") and a <= b) or (name == "bitcast" and a != b):
        raise PtoTypeMismatchError(f"`{op.name}` cannot go from {source} to {target}")


_SIGNED = {
    "addi": "add", "subi": "sub", "muli": "mul", "divsi": "div", "floordivsi": "floordiv", "maxsi": "max",
    "minsi": "min", "shli": "shl", "shrsi": "shr",
}  # fmt: skip
_REAL = {
    "addf": "add", "subf": "sub", "mulf": "mul", "divf": "div", "maximumf": "max", "minimumf": "min", "maxf": "max",
    "minf": "min",
}  # fmt: skip
_AS_UNSIGNED = {"divui": "div", "remui": "mod", "maxui": "max", "minui": "min", "shrui": "shr"}
_BITS = {"andi": ("and_", "bit_and"), "ori": ("or_", "bit_or"), "xori": ("ne", "bit_xor")}
_MEANS = {
    "add": "n + k", "sub": "n - k", "mul": "n * k", "div": "np.trunc(n / k)", "floordiv": "n // k", "mod": "n % k",
    "max": "np.maximum(n, k)", "min": "np.minimum(n, k)", "shl": "n << k", "shr": "n >> k",
}  # fmt: skip
"""What the ops of the tile IR make of two numbers."""


def _sentences(words: Mapping[str, str], **others: str) -> dict[str, str]:
    """Return what ops on numbers mean in NumPy, by the ops of the tile IR that they are."""
    return {word: (_MEANS | others)[name] for word, name in words.items()}


def _of_bits(sentence: str) -> str:
    """Return a sentence about numbers without a sign."""
    return re.sub(r"\b[nk]\b", r'\g<0>.view("u4")', sentence)


_WITHOUT_SIGN = {word: _of_bits(_MEANS[name]) for word, name in _AS_UNSIGNED.items()}


@declare(
    "arith.constant", Form("", "x", syntax=Syntax.CONSTANT), knows_packed=True, example="%r = {op} 7 : i32", means="7"
)
def _constant(m: Machine, op: Op) -> Expr | None:
    """A number, or two in one value; more of them are for ops that ask for none of their values."""
    value, type_ = op.attributes["value"], op.results[0].type
    if isinstance(value, str):
        pair = type_ if isinstance(type_, Scalar) and type_.name in MEMBERS else None
        return constant(pair_bits(value, pair), pair.dtype) if pair else None
    assert isinstance(value, (bool, int, float))
    return constant(round_scalar(value, _result(op)), _result(op))


def _result(op: Op) -> DataType:
    return op.results[0].of(Scalar).dtype


@declare(f"arith.{' '.join(_SIGNED)}", _INTEGERS, means=_sentences(_SIGNED))
@declare(f"arith.{' '.join(_AS_UNSIGNED)}", _INTEGERS, means=_WITHOUT_SIGN)
@declare(f"arith.{' '.join(_REAL)}", _FLOATS, means=_sentences(_REAL, div="n / k"))
def _binary(m: Machine, op: Op, lhs: Expr, rhs: Expr) -> Expr:
    """Two numbers of one type; integers wrap."""
    word = op.name.removeprefix("arith.")
    seen = _unsigned if word in _AS_UNSIGNED else _signed
    return _to(m, m.b.scalar((_SIGNED | _AS_UNSIGNED | _REAL)[word], seen(m, lhs), seen(m, rhs)), _result(op))


def _signed(m: Machine, value: Expr) -> Expr:
    """Return a number as one with a sign: of one bit, a set bit is minus one."""
    return m.b.scalar("neg", m.b.cast(value, dtypes.INT32)) if element_of(value) == BOOL else value


def _unsigned(m: Machine, value: Expr) -> Expr:
    """Return the bits of an integer as a number without a sign."""
    return m.b.cast(value, UNSIGNED[4 if element_of(value) == BOOL else element_of(value).get_byte()])


@declare("arith.remsi", _INTEGERS, means="np.fmod(n, k)")
def _remainder(m: Machine, op: Op, dividend: Expr, divisor: Expr) -> Expr:
    """What a division that rounds toward zero leaves."""
    lhs, rhs = _signed(m, dividend), _signed(m, divisor)
    whole = m.b.scalar("mul", m.b.scalar("div", lhs, rhs), rhs)
    return _to(m, m.b.scalar("sub", lhs, whole), _result(op))


@declare("arith.remf", _FLOATS, means="np.fmod(n, k)")
def _float_remainder(m: Machine, op: Op, lhs: Expr, rhs: Expr) -> Expr:
    """The remainder with the sign of the dividend, from one with the sign of the divisor."""
    sizes = [m.b.scalar("max", value, m.b.scalar("neg", value)) for value in (lhs, rhs)]
    rest = m.b.scalar("mod", *sizes)
    zero = constant(0.0, element_of(lhs))
    signed = chosen(m, m.b.scalar("lt", lhs, zero), m.b.scalar("neg", rest), rest)
    nothing = m.b.scalar("mul", lhs, m.b.scalar("add", rest, constant(1.0, element_of(lhs))))  # NaN where that is left
    return chosen(m, m.b.scalar("eq", lhs, zero), nothing, signed)


@declare(
    "arith.ceildivsi ceildivui",
    _INTEGERS,
    means={"ceildivsi": "np.ceil(n / k)", "ceildivui": _of_bits("np.ceil(n / k)")},
)
def _ceiling(m: Machine, op: Op, dividend: Expr, divisor: Expr) -> Expr:
    """Quotients rounded up: one more than rounded down, where something is left."""
    seen = _unsigned if op.name == "arith.ceildivui" else _signed
    lhs, rhs = seen(m, dividend), seen(m, divisor)
    down = m.b.scalar("floordiv", lhs, rhs)
    left = m.b.cast(m.b.scalar("ne", m.b.scalar("mul", down, rhs), lhs), element_of(down))
    return _to(m, m.b.scalar("add", down, left), _result(op))


@declare("arith.maxnumf minnumf", _FLOATS, means={"maxnumf": "np.fmax(n, k)", "minnumf": "np.fmin(n, k)"})
def _number_of(m: Machine, op: Op, lhs: Expr, rhs: Expr) -> Expr:
    """The larger or smaller of two; one that is no number gives way to the other."""
    return number_of_two(m, op.name.removeprefix("arith.")[:3], lhs, rhs)


def number_of_two(m: Machine, which: str, lhs: Expr, rhs: Expr) -> Expr:
    """Return the `max` or `min` of two floats; one that is no number gives way to the other."""
    first = chosen(m, m.b.scalar("eq", lhs, lhs), lhs, rhs)
    second = chosen(m, m.b.scalar("eq", rhs, rhs), rhs, lhs)
    return m.b.scalar(which, first, second)


@declare(f"arith.{' '.join(_BITS)}", _INTEGERS, means={"andi": "n & k", "ori": "n | k", "xori": "n ^ k"})
def _bits(m: Machine, op: Op, lhs: Expr, rhs: Expr) -> Expr:
    """Two integers, bit by bit."""
    on_conditions, on_bits = _BITS[op.name.removeprefix("arith.")]
    return m.b.scalar(on_conditions if element_of(lhs) == BOOL else on_bits, lhs, rhs)


@declare("arith.negf", Form("f", "f", Typing.SAME), means="-n")
def _negated(m: Machine, op: Op, value: Expr) -> Expr:
    """A float with its sign changed."""
    return m.b.scalar("neg", value)


@declare(
    "arith.cmpi",
    _comparison("ii"),
    rule=predicate(_INTEGER_ORDERS),
    example="(%n: i32, %k: i32); %r = {op} sgt, %n, %k : i32",
    means="n > k",
)
def _compare(m: Machine, op: Op, lhs: Expr, rhs: Expr) -> Expr:
    """Whether integers compare so, with or without a sign as the predicate says."""
    word = str(op.attributes["predicate"])
    if element_of(lhs) == BOOL:
        lhs, rhs = (m.b.cast(v, dtypes.INT32) for v in (lhs, rhs))
        if word.startswith("s"):  # a set bit is minus one where it has a sign
            lhs, rhs = rhs, lhs
    elif word.startswith("u"):
        lhs, rhs = _unsigned(m, lhs), _unsigned(m, rhs)
    return m.b.scalar(word.lstrip("su") if len(word) == 3 else word, lhs, rhs)


@declare(
    "arith.cmpf",
    _comparison("ff"),
    rule=predicate(_FLOAT_ORDERS),
    example="(%n: f32, %k: f32); %r = {op} ogt, %n, %k : f32",
    means="n > k",
)
def _compare_floats(m: Machine, op: Op, lhs: Expr, rhs: Expr) -> Expr:
    """Whether floats compare so; with NaN only `une` and the unordered ones hold."""
    word = str(op.attributes["predicate"])
    ordered = m.b.scalar("and_", m.b.scalar("eq", lhs, lhs), m.b.scalar("eq", rhs, rhs))
    if word in ("ord", "uno"):
        return ordered if word == "ord" else m.b.scalar("not_", ordered)
    if word in ("false", "true"):
        return constant(word == "true", BOOL)
    holds = m.b.scalar(word[1:], lhs, rhs)
    if word.startswith("o"):
        return m.b.scalar("and_", ordered, holds)
    return m.b.scalar("or_", m.b.scalar("not_", ordered), holds)


@declare(
    "arith.select",
    Form("bxx", "x", Typing.SELECT),
    rule=_choices,
    knows_packed=True,
    example="(%is: i1, %n: f32, %k: f32); %r = {op} %is, %n, %k : f32",
    means="n if is_ else k",
)
def _select(m: Machine, op: Op, condition: Expr) -> Lowered:
    """One of two numbers, as a condition says."""
    then, other = (m.values[value] for value in op.operands[1:])
    refuse_unlike(m, then, other)
    parts = [chosen(m, condition, a, b) for a, b in zip(m.parts(then), m.parts(other), strict=True)]
    return then if not parts else then.having(parts)


def chosen(m: Machine, condition: Expr, then: Expr, other: Expr) -> Expr:
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


@declare(
    "arith.index_cast extsi trunci extui index_castui",
    Form("i", "i", Typing.CAST),
    rule=_fits,
    means={"index_cast": "n", "extsi": "n", "trunci": "n", "extui": 'n.view("u2")', "index_castui": _of_bits("n")},
)
@declare("arith.sitofp uitofp", Form("i", "f", Typing.CAST), rule=_fits, means={"sitofp": "n", "uitofp": _of_bits("n")})
@declare("arith.extf truncf", Form("f", "f", Typing.CAST), rule=_fits, means="n")
@declare("arith.fptosi", Form("f", "i", Typing.CAST), rule=_fits, means="np.trunc(n)")
def _convert(m: Machine, op: Op, value: Expr) -> Expr:
    """A number in another type."""
    seen = _unsigned if op.name in ("arith.extui", "arith.index_castui", "arith.uitofp") else _signed
    return _to(m, seen(m, value), _result(op))


@declare("arith.fptoui", Form("f", "i", Typing.CAST), rule=_fits, means="np.trunc(n)")
def _to_unsigned(m: Machine, op: Op, value: Expr) -> Expr:
    """A float as an unsigned integer, cut toward zero."""
    dtype = _result(op)
    return _to(m, m.b.cast(value, UNSIGNED[4 if dtype == BOOL else dtype.get_byte()]), dtype)


def _to(m: Machine, expr: Expr, dtype: DataType) -> Expr:
    if dtype == element_of(expr):
        return expr
    if dtype == BOOL and element_of(expr).is_float():
        expr = m.b.cast(expr, dtypes.INT32)
    if dtype == BOOL:
        lowest = m.b.scalar("bit_and", expr, constant(1, element_of(expr)))
        return m.b.scalar("ne", lowest, constant(0, element_of(expr)))
    return m.b.cast(expr, dtype)


# two results, and bits read as another type


def _same_width(op: Op, constants: Constants) -> None:
    if is_memref(op.operands[0].type):
        return keeps_elements(op, constants)
    source, target = op.operands[0].of(Scalar), op.results[0].of(Scalar)
    if source.bits != target.bits or not (source.is_integer and target.is_integer):
        message = f"`{op.name}` cannot go from {source} to {target}"
        raise PtoTypeMismatchError(message, help="both are integers of one width")


@declare("builtin.unrealized_conversion_cast", Form("i|r", "i|z|p", Typing.CAST), rule=_same_width, means="n")
def _resigned(m: Machine, op: Op, value: Lowered | Expr) -> Lowered | Expr:
    """The same bits with or without a sign, or a memref as the tile or the pointer that it is."""
    return m.b.cast(value, _result(op)) if isinstance(value, Expr) else converted(m, op, value)


@declare("arith.bitcast", Form("s", "s", Typing.CAST), rule=_fits, means='n.view("i4")')
def _bitcast(m: Machine, op: Op, value: Expr) -> Expr:
    """The same bits as another type, by way of memory."""
    return reinterpreted(m, op, value, op.operands[0].of(Scalar), op.results[0].of(Scalar))[0]


@declare("arith.addui_extended", Form("ii", "ib", Typing.EXTENDED), means=f"n + k, {_of_bits('n + k < n')}")
def _add_with_carry(m: Machine, op: Op, lhs: Expr, rhs: Expr) -> tuple[Expr, Expr]:
    """A sum, and whether it wrapped."""
    dtype = UNSIGNED[element_of(lhs).get_byte()]
    total = m.b.scalar("add", lhs, rhs)
    return total, m.b.scalar("lt", m.b.cast(total, dtype), m.b.cast(lhs, dtype))


@declare(
    "arith.mulsi_extended mului_extended",
    Form("ii", "ii", Typing.SAME),
    means={
        "mulsi_extended": "n * k, n.astype(int) * k >> 32",
        "mului_extended": f"n * k, {_of_bits('n')}.astype(int) * {_of_bits('k')} >> 32",
    },
)
def _long_product(m: Machine, op: Op, lhs: Expr, rhs: Expr) -> tuple[Expr, Expr]:
    """The low and the high half of a product, taken in twice the bits."""
    dtype = element_of(lhs)
    a, b = (m.b.cast(value, INT64) if dtype == INDEX else value for value in (lhs, rhs))
    high = high_half(m, a, b, op.name == "arith.mulsi_extended")
    return m.b.scalar("mul", lhs, rhs), m.b.cast(high, dtype)
