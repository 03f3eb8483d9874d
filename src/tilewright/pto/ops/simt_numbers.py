"""Numbers of work items: functions, conversions and bits of scalars and of pairs of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from tilewright import dtypes
from tilewright.core.enums import CmpType
from tilewright.core.expr import Expr, constant
from tilewright.dtypes import FP32, FP64, UINT8, UINT32, UINT64, UNSIGNED, DataType
from tilewright.ops.builder import element_of
from tilewright.pto.elements import SMALL_FLOATS
from tilewright.pto.errors import PtoAttributeError, PtoTypeMismatchError
from tilewright.pto.examples.numbers import NUMBERS
from tilewright.pto.machine.elements import cast, where
from tilewright.pto.machine.formats import decoded, encoded
from tilewright.pto.machine.machine import Machine
from tilewright.pto.machine.pairs import MEMBERS, packed, reinterpreted, unpacked
from tilewright.pto.machine.wide import high_half, whole_product
from tilewright.pto.module import Op
from tilewright.pto.op import Constants, Lowering, Rule, declare, equal
from tilewright.pto.ops.arithmetic import number_of_two
from tilewright.pto.ops.conversions import MODES_BY_LETTER, converted_lanes
from tilewright.pto.text.form import Typing, free
from tilewright.pto.text.free import word_in, words_of
from tilewright.pto.types import SCALARS, Scalar

SIGNS = "signed unsigned"
_SIGNS = tuple(SIGNS.split())


def signed_integers(op: Op, _: Constants) -> None:
    """Refuse integers without a word for their sign, where that matters, and floats with one."""
    type_ = op.operands[-1].type
    is_told = any(word in words_of(op) for word in _SIGNS)
    is_integer = isinstance(type_, Scalar) and type_.is_integer
    if is_told and not is_integer:
        raise PtoAttributeError(f"`{op.name}` on {type_} has no sign to say", help="leave `signed` or `unsigned` out")
    if is_integer and not is_told and op.name.endswith(("_max", "_min", "mulhi", "mul_i32toi64")):
        raise PtoAttributeError(f"`{op.name}` on {type_} needs its sign", help="write `signed` or `unsigned`")


def _alike(op: Op, _: Constants) -> None:
    """Refuse operands or a result of another type than the first operand, and what is no float."""
    first = op.operands[0].type
    if not isinstance(first, Scalar) or not (first.is_float or first.name in MEMBERS):
        raise PtoTypeMismatchError(f"`{op.name}` computes with floats, `%{op.operands[0].name}` is {first}")
    for value in (*op.operands[1:], *op.results):
        equal(op, "type", value.type, first)


def takes(names: str) -> Rule:
    """Return the law of an op that the machine has for some types."""
    known = [word if word[0] != "2" else f"vector<{word}>" for word in names.split()]

    def law(op: Op, _: Constants) -> None:
        name = op.operands[0].of(Scalar).name
        if name not in known:
            message = f"`{op.name}` takes {', '.join(known)}, `%{op.operands[0].name}` is {name}"
            way = "arith.truncf" if name == "f64" else "pto.convert"
            raise PtoTypeMismatchError(message, help=f"convert it to {known[0]} with `{way}`")

    return law


Compute: TypeAlias = Callable[[Sequence[Expr]], Expr]
"""Makes one number, or one tile, of several."""


def _each(m: Machine, op: Op, compute: Compute) -> Expr:
    """Return what is computed of numbers, or of each two of pairs."""
    type_ = op.operands[0].of(Scalar)
    rows = [unpacked(m, op, m.expr(value), type_) for value in op.operands]
    return packed(m, op, [compute(numbers) for numbers in zip(*rows, strict=True)], op.results[0].of(Scalar))


def _each_tile(m: Machine, op: Op, compute: Compute) -> Expr:
    """Return what is computed on tiles of numbers, or of each two of pairs."""
    return _each(m, op, lambda numbers: on_tile(m, compute, *numbers))


def on_tile(m: Machine, compute: Compute, *numbers: Expr) -> Expr:
    """Return what an op on tiles makes of numbers."""
    tiles = [m.b.tile("full", (1, 1), element_of(number), number) for number in numbers]
    return m.b.tile("read", compute(tiles), (0, 0))


def _floats(names: str, count: int, types: str, means: str | Mapping[str, str]) -> Callable[[Lowering], Lowering]:
    """Declare functions of so many floats of one type, or of as many pairs of them, of the types that machines take."""
    given = "xyz"[:count]
    taken, operands = (", ".join(f"%{name}{type_}" for name in given) for type_ in (": f32", ""))
    return declare(
        names,
        free("x" * count, "x"),
        rule=_alike,
        law=takes(types),
        knows_packed=True,
        example=f"({taken}); %r = {{op}} {operands} -> f32",
        means=means,
    )


_ROUNDED = {"rint": "round", "floor": "floor", "ceil": "ceil"}


@_floats("pto.absf", 1, "f32 2xf16 2xbf16", "np.abs(x)")
@_floats("pto.sqrt exp log", 1, "f32 f16 2xf16", {word: f"np.{word}(x)" for word in ("sqrt", "exp", "log")})
@_floats("pto.sin cos", 1, "f32", {word: f"np.{word}(x)" for word in ("sin", "cos")})
@_floats("pto.ceil floor rint", 1, "f32 f16 bf16", {word: f"np.{word}(x)" for word in ("ceil", "floor", "rint")})
def _function(m: Machine, op: Op) -> Expr:
    """A function of a float, or of each of two."""
    word = op.name.removeprefix("pto.")
    name = {**_ROUNDED, "absf": "abs"}.get(word, word)
    return _each_tile(m, op, lambda tiles: m.b.tile(name, *tiles))


@_floats("pto.round", 1, "f32 f16 bf16", "np.copysign(np.floor(abs(x)) + (abs(x) % 1 >= 0.5), x)")
def _round(m: Machine, op: Op) -> Expr:
    """The nearest integer, of two the one further from zero."""
    return _each_tile(m, op, lambda tiles: _nearest(m, tiles[0]))


def _nearest(m: Machine, tile: Expr) -> Expr:
    size = m.b.tile("abs", tile)
    down = m.b.tile("floor", size)
    dtype = element_of(tile)
    up = m.b.tile("add", down, constant(1.0, dtype))
    near = where(m, m.b.tile("sub", size, down), CmpType.GE, constant(0.5, dtype), up, down)
    signed = where(m, tile, CmpType.LT, constant(0.0, dtype), m.b.tile("neg", near), near)
    return where(m, tile, CmpType.EQ, constant(0.0, dtype), tile, signed)


@_floats("pto.pow", 2, "f32 f16 2xf16", "np.power(x, y)")
def _power(m: Machine, op: Op) -> Expr:
    """A float to the power of another."""
    return _each_tile(m, op, lambda tiles: m.b.tile("pow", *tiles))


@_floats("pto.fmin fmax", 2, "f32 bf16 2xf16 2xbf16", {word: f"np.{word}(x, y)" for word in ("fmin", "fmax")})
def _extreme(m: Machine, op: Op) -> Expr:
    """The smaller or larger of two floats; one that is no number gives way to the other."""
    return _each(m, op, lambda numbers: number_of_two(m, op.name[-3:], *numbers))


@_floats("pto.fma", 3, "f32 f16 bf16 2xf16 2xbf16", "x * y + z")
def _fused(m: Machine, op: Op) -> Expr:
    """A product and a sum, rounded once."""
    return _each_tile(m, op, lambda tiles: _multiplied(m, *tiles))


def _multiplied(m: Machine, a: Expr, b: Expr, c: Expr) -> Expr:
    """Return a * b + c: shorter floats in fp64, which has so many bits more that rounding again changes nothing."""
    dtype = element_of(a)
    if dtype == dtypes.FP32:
        return m.b.tile("fma", a, b, c)
    return cast(m, m.b.tile("fma", *(cast(m, each, FP64) for each in (a, b, c))), dtype)


# integers


def _of(*types: str) -> Rule:
    """Return the rule of an op on integers of some types, whose operands are alike."""

    def rule(op: Op, constants: Constants) -> None:
        signed_integers(op, constants)
        for value in op.operands:
            if str(value.type) not in types:
                message = f"`{op.name}` takes {' or '.join(types)}, `%{value.name}` is {value.type}"
                raise PtoTypeMismatchError(message, help=f"make it {types[0]}")
            equal(op, "type", value.type, op.operands[0].type)

    return rule


@declare("pto.mulhi", free("ii", "i", SIGNS), rule=_of("i32", "i64"), example=NUMBERS)
def _high_half(m: Machine, op: Op, lhs: Expr, rhs: Expr) -> Expr:
    """The high half of a product."""
    dtype, is_signed = op.results[0].of(Scalar).dtype, "signed" in words_of(op)
    return m.b.cast(high_half(m, lhs, rhs, is_signed), dtype)


@declare("pto.mul_i32toi64", free("ii", "i", SIGNS), rule=_of("i32"), example=NUMBERS)
def _long_product(m: Machine, op: Op, lhs: Expr, rhs: Expr) -> Expr:
    """A product of 32-bit numbers, whole."""
    return m.b.cast(whole_product(m, lhs, rhs, "signed" in words_of(op)), op.results[0].of(Scalar).dtype)


@declare("pto.prmt", free("iii", "i"), rule=_of("i32"), example=NUMBERS)
def _permute(m: Machine, op: Op, high: Expr, low: Expr, selector: Expr) -> Expr:
    """Four bytes of eight: those of the second number, then those of the first, as four digits say."""
    b = m.b
    upper, lower, digits = (b.cast(b.cast(value, UINT32), UINT64) for value in (high, low, selector))
    pool = b.scalar("bit_or", lower, b.scalar("shl", upper, constant(32, UINT64)))
    made: Expr = constant(0, UINT64)
    for place in range(4):
        digit = b.scalar("bit_and", b.scalar("shr", digits, constant(4 * place, UINT64)), constant(7, UINT64))
        byte = b.scalar("shr", pool, b.scalar("mul", digit, constant(8, UINT64)))
        byte = b.scalar("bit_and", byte, constant(255, UINT64))
        made = b.scalar("bit_or", made, b.scalar("shl", byte, constant(8 * place, UINT64)))
    return b.cast(made, op.results[0].of(Scalar).dtype)


# conversions


def _convertible(op: Op, _: Constants) -> None:
    source, target = op.operands[0].of(Scalar), op.results[0].of(Scalar)
    words = words_of(op)
    is_mixed = source.is_integer != target.is_integer
    if "f64" in (source.name, target.name):
        help = "use `arith.extf`, `arith.truncf` and the like for doubles"
        raise PtoTypeMismatchError(f"`{op.name}` takes no f64: from {source} to {target}", help=help)
    if word_in(op, "round") not in tuple("rafczoh"):
        raise PtoAttributeError(f"`{op.name}` needs its rounding", help="as in `round(r)`: r, a, f, c, z, o or h")
    _refuse_rounding(op, source, target)
    if is_mixed != any(word in words for word in _SIGNS):
        told = "needs the sign of its integer" if is_mixed else "has no integer whose sign could matter"
        raise PtoAttributeError(f"`{op.name}` from {source} to {target} {told}", help="`signed` or `unsigned`")
    if target.is_integer and "sat" not in words:
        raise PtoAttributeError(f"`{op.name}` from {source} to {target} saturates", help="write `sat`")
    if source.is_integer and target.is_integer:
        raise PtoTypeMismatchError(f"`{op.name}` cannot go from {source} to {target}", help="use `arith.trunci`")
    if is_mixed and {source.name, target.name} in _BY_WAY_OF_F32:
        message = f"`{op.name}` cannot go from {source} to {target}"
        raise PtoTypeMismatchError(message, help="convert to f32, and then on from there")


def _refuse_rounding(op: Op, source: Scalar, target: Scalar) -> None:
    """Refuse a rounding that nothing rounds so on its way from one type to another."""
    mode = word_in(op, "round")
    if target.name in CODES or target.name in _BYTES:
        taken = "ah" if target.name == "hif8x2" else "r"
    else:
        taken = "rafczo" if (source.name, target.name) == ("f32", "f16") else "rafcz"
    if mode not in taken:
        where = {"o": ", which is for f32 to f16", "h": ", which is for hif8"}.get(mode, "")
        message = f"`{op.name}` from {source} to {target} has no rounding {mode}{where}"
        raise PtoAttributeError(message, help=f"write `round({taken[0]})`")


_BY_WAY_OF_F32 = ({"i64", "f16"}, {"i64", "bf16"})
CODES = {"hif8x2": "hif8", "f4E2M1x2": "f4E2M1", "f4E1M2x2": "f4E1M2"}
"""The formats of pairs of codes, by their type."""
_BYTES = frozenset([*SMALL_FLOATS, *(f"vector<2x{name}>" for name in SMALL_FLOATS)])
"""Floats of a byte, and pairs of them: what is made of wider ones is the nearest."""
_CONVERT = free("x", "x", f"round sat nosat {SIGNS}")


@declare("pto.convert", _CONVERT, rule=_convertible, knows_packed=True, example=NUMBERS)
def _convert(m: Machine, op: Op, value: Expr) -> Expr:
    """A number, or each of two, in another type."""
    source, target = op.operands[0].of(Scalar), op.results[0].of(Scalar)
    numbers = _decoded(m, op, value, source) if source.name in CODES else unpacked(m, op, value, source)
    if target.name in CODES:
        return _encoded(m, op, numbers, target)
    dtype = MEMBERS.get(target.name, target).dtype
    return packed(m, op, [_converted(m, op, number, dtype) for number in numbers], target)


def _decoded(m: Machine, op: Op, value: Expr, source: Scalar) -> list[Expr]:
    """Return the numbers of a pair of codes: bytes, or the halves of one byte."""
    if source.bits == 16:
        codes = reinterpreted(m, op, value, source, SCALARS["ui8"], 2)
    else:
        codes = [value, m.b.scalar("shr", value, constant(4, UINT8))]
    name = CODES[source.name]
    return [on_tile(m, lambda tiles: decoded(m, tiles[0], name), code) for code in codes]


def _encoded(m: Machine, op: Op, numbers: Sequence[Expr], target: Scalar) -> Expr:
    """Return a pair of codes of two numbers, the first one in the low bits."""
    name, saturates = CODES[target.name], "sat" in words_of(op)
    floats = [m.b.cast(number, FP32) for number in numbers]
    low, high = (
        m.b.cast(on_tile(m, lambda tiles: encoded(m, tiles[0], name, saturates), number), target.dtype)
        for number in floats
    )
    return m.b.scalar("bit_or", low, m.b.scalar("shl", high, constant(target.bits // 2, target.dtype)))


def _converted(m: Machine, op: Op, number: Expr, to: DataType) -> Expr:
    words, mode = words_of(op), MODES_BY_LETTER.get(word_in(op, "round").upper(), "round")
    held = UNSIGNED[to.get_byte()] if to.is_int() and "unsigned" in words else to
    come = element_of(number)
    if come.is_int() and "unsigned" in words:
        number = m.b.cast(number, UNSIGNED[come.get_byte()])
    made = on_tile(m, lambda tiles: converted_lanes(m, tiles[0], held, mode, "sat" in words), number)
    return m.b.cast(made, to)


def _as_many_bits(op: Op, _: Constants) -> None:
    source, target = op.operands[0].of(Scalar), op.results[0].of(Scalar)
    if source.bits != target.bits:
        raise PtoTypeMismatchError(f"`{op.name}` keeps bits: {source} has {source.bits}, {target} {target.bits}")


@declare("llvm.bitcast", free("s", "s", "to", Typing.RESULT), rule=_as_many_bits, knows_packed=True, example=NUMBERS)
def _bits(m: Machine, op: Op, value: Expr) -> Expr:
    """The same bits as another type, by way of memory."""
    return reinterpreted(m, op, value, op.operands[0].of(Scalar), op.results[0].of(Scalar))[0]
