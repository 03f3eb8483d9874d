"""Library functions: those of doubles, which the machine's own mathematical library has, one lane at a time.

Where multiply-adds round once they are vectors' own; what is called then are huge angles, and remainders of numbers far
apart. What is a single instruction stays one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TypeAlias

from tilewright.backends.cpu.compute import (
    double_arcs,
    double_differences,
    double_logs,
    double_math,
    double_powers,
    double_tails,
    double_trigonometry,
    error_functions,
)
from tilewright.backends.cpu.compute.doubles import few_products, is_few_products, part_way
from tilewright.backends.cpu.compute.vectormath import Emitter, exponent
from tilewright.native.llvm import F64, I32, Builder, Module, Value, lanes, mangled
from tilewright.native.rarities import unless
from tilewright.native.terms import Term

Function: TypeAlias = Callable[..., Value]

_NAMES = {
    **{name: name for name in ("exp", "log", "sin", "cos", "tanh", "erf", "erfc", "exp2", "expm1", "log2", "log10")},
    **{name: name for name in ("log1p", "sinh", "cosh", "fmod")},
    **{f"arc{name}": f"a{name}" for name in ("sin", "cos", "tan", "tan2", "sinh", "cosh", "tanh")},
    "power": "pow",
}
"""What the library calls each function."""


def called(name: str) -> Function:
    """Return a function of lanes that calls the library once for each."""

    def emit(b: Builder, *operands: Value) -> Value:
        b.module.intrinsic(name, F64, *[F64] * len(operands))
        count = lanes(operands[0].type)
        if count == 1:
            return b.call(F64, name, *operands)
        whole = Value(operands[0].type, "poison")
        for lane in range(count):
            given = [b.value(F64, f"extractelement {operand}, {I32} {lane}") for operand in operands]
            whole = b.value(whole.type, f"insertelement {whole}, {b.call(F64, name, *given)}, {I32} {lane}")
        return whole

    return emit


def _of_vectors(name: str, function: Callable[..., Term]) -> Function:
    """Return a function of lanes that is emitted where multiply-adds round once, and called elsewhere."""
    library = called(name)

    def emit(b: Builder, *operands: Value) -> Value:
        return function(*(Term(b, x) for x in operands)).value if b.module.fused else library(b, *operands)

    return emit


def _of_angles(name: str, function: Callable[[Term], Term]) -> Function:
    """Return a function of angles that is emitted where multiply-adds round once, and called for huge ones."""

    def emit(b: Builder, x: Value) -> Value:
        if not b.module.fused:
            return called(name)(b, x)
        near, is_huge = function(Term(b, x)), Term(b, x).magnitude() >= double_trigonometry.HUGE
        return _or_called(b, name, is_huge, near, x)

    return emit


def _or_called(b: Builder, name: str, mask: Term, near: Term, *operands: Value) -> Value:
    """Return what is near, and what the library says where a mask holds, which it hardly ever does."""
    type_ = near.type

    def mixed() -> Value:
        far = Term(b, b.call(type_, _out_of_line(b.module, name, *operands), *operands))
        return mask.choose(far, near).value

    return unless(b, mask.any(), near.value, mixed)


def _out_of_line(module: Module, name: str, *operands: Value) -> str:
    """Define, once, a function that calls the library for each lane; return its name."""
    type_ = operands[0].type
    own, params = f"far.{name}.{mangled(type_)}", [Value(type_, f"%x{k}") for k, _ in enumerate(operands)]
    if own not in module.defined:
        b = Builder(module, own, params, returns=type_, attrs="noinline cold")
        b.finish(called(name)(b, *params))
    return own


_ANGLES = {"sin": double_trigonometry.sin, "cos": double_trigonometry.cos}
_VECTORS = {
    **{name: getattr(double_math, name) for name in ("exp", "exp2", "log", "log2", "log10", "tanh")},
    **{name: getattr(double_differences, name) for name in ("expm1", "sinh", "cosh")},
    **{name: getattr(double_logs, name) for name in ("log1p", "arcsinh", "arccosh", "arctanh")},
    **{name: getattr(double_arcs, name) for name in ("arcsin", "arccos", "arctan", "arctan2")},
    "erf": error_functions.erf,
    "erfc": double_tails.erfc,
    "power": double_powers.power,
}
_OURS = {name: _of_vectors(_NAMES[name], function) for name, function in _VECTORS.items()}
_exp, _tail = _OURS["exp"], _of_vectors("erfc", double_tails.tail)


def _times_normal(b: Builder, x: Value) -> Value:
    tail = _tail(b, (Term(b, x) * -math.sqrt(0.5)).value)
    return (Term(b, x) * (Term(b, tail) * 0.5)).value


def _remainder(b: Builder, x: Value, y: Value) -> Value:
    """Return what a division leaves, which is exact where a double has the quotient; call for others."""
    if not b.module.fused:
        return called("fmod")(b, x, y)
    size, divisor = Term(b, x).magnitude(), Term(b, y).magnitude()
    part = (size / divisor).intrinsic("llvm.trunc")
    left = part.fma(divisor * -1.0, size)
    left = (left < 0.0).choose(left + divisor, left)
    left = (size < divisor).choose(size, left).signed_like(Term(b, x))
    lowest = exponent(divisor)
    is_far = (exponent(size) - lowest > 50) | lowest.compare("oeq", "eq", 0)  # of denormals nobody knows the exponent
    return _or_called(b, "fmod", is_far, left, x, y)


def _times_fast_normal(b: Builder, given: Value) -> Value:
    x = Term(b, given)
    y = x * (x * 0.044715 * x + 1.0) * math.sqrt(8 / math.pi)  # in this order, which is the reference's
    e = Term(b, _exp(b, (y.magnitude() * -1.0).value))
    return (x * ((y < 0.0).choose(e, 1.0) / (e + 1.0))).value


def _power(b: Builder, x: Value, y: Value) -> Value:
    """Return a power: few products are as near as the library, but where one that is divided by overflows."""
    exponent = Term(b, y).number
    if exponent is not None and exponent >= -1.0 and is_few_products(exponent, most=4.0):
        return few_products(Term(b, x), exponent).value
    return _OURS["power"](b, x, y)


def _between(b: Builder, *given: Value) -> Value:
    return part_way(*(Term(b, each) for each in given)).value


FUNCTIONS: Mapping[str, Function | Emitter] = {
    **{ours: called(theirs) for ours, theirs in _NAMES.items()},
    **_OURS,
    **{name: _of_angles(name, function) for name, function in _ANGLES.items()},
    "fmod": _remainder,
    "times_normal": _times_normal,
    "times_fast_normal": _times_fast_normal,
    "between": _between,
    "power": _power,
}
"""By the names that the references of ops have for them."""
NAMES = frozenset(_NAMES.values())
"""What is called for them."""
