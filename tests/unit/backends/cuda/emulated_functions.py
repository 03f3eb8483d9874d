"""Functions of CUDA's library and instructions of the GPU's, computed by NumPy: each as exact as its type holds."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy

from tilewright.backends.cuda.ttir.control import HIDDEN
from tilewright.backends.cuda.ttir.elements import EXP, QUICK_EXP

np: Any = numpy  # elements are of any type here
Function = Callable[..., Any]


def _by_element(function: Callable[[float], float]) -> Callable[[Any], Any]:
    return lambda x: np.frompyfunc(function, 1, 1)(x).astype(np.float64)


def _away(x: Any) -> Any:
    """Return floats made whole, halves away from zero."""
    whole = np.trunc(x)
    return np.where(np.abs(x - whole) >= 0.5, whole + np.copysign(1, x), whole)


NAMED: dict[str, Function] = {
    **{name: getattr(np, name) for name in ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos")},
    **{name: getattr(np, name) for name in ("tanh", "sinh", "cosh", "sqrt", "trunc", "rint", "floor", "ceil", "fmod")},
    **{f"a{name}": getattr(np, f"arc{name}") for name in ("sin", "cos", "tan", "tan2", "sinh", "cosh", "tanh")},
    "pow": np.power, "erf": _by_element(math.erf), "erfc": _by_element(math.erfc), "round": _away,
}  # fmt: skip
"""Functions of mathematics, by the names that CUDA has for those of doubles."""


def computed(name: str, *operands: Any) -> Any:
    """Return a function of floats, computed in doubles and rounded once."""
    with np.errstate(all="ignore"):
        return np.asarray(NAMED[name](*(x.astype(np.float64) for x in operands))).astype(operands[0].dtype)


def called(symbol: str, *operands: Any) -> Any:
    """Return what a function of the library gives: `__nv_expf` of floats of 32 bits, `__nv_exp` of doubles."""
    name = symbol.removeprefix("__nv_")
    is_double = operands[0].dtype == np.float64
    assert is_double or name.endswith("f"), symbol
    return computed(name if is_double else name.removesuffix("f"), *operands)


def saturated(x: Any, dtype: Any) -> Any:
    """Return floats as integers of 32 or 64 bits, as the GPU cuts them: the nearest there is, by the bits they have."""
    limits = np.iinfo(dtype)
    cut = np.trunc(np.where(np.isnan(x), 0, x).astype(np.longdouble))
    return np.clip(cut, limits.min, limits.max).astype(dtype).view(f"i{dtype.itemsize}")


def _flushed(x: Any) -> Any:
    return np.where(np.abs(x) < np.finfo(np.float32).tiny, np.copysign(np.float32(0), x), x)


INSTRUCTIONS: dict[str, Callable[[Any], Any]] = {
    HIDDEN: lambda x: x,
    EXP: lambda x: computed("exp", x),
    QUICK_EXP: lambda x: np.where(np.isinf(x) | (x > 88.8), np.float32(np.nan), _flushed(computed("exp", x))),
    "rcp.approx.ftz.f32 $0, $1;": lambda x: _flushed(1 / _flushed(x)),
    "ex2.approx.ftz.f32 $0, $1;": lambda x: _flushed(computed("exp2", _flushed(x))),
    "shl.b32 $0, $2, 16; and.b32 $1, $2, 0xffff0000;": lambda x: x.astype(np.float32),
}
"""What instructions make of the elements that they are given."""


def instruction(text: str, *operands: Any) -> Any:
    """Return what an instruction makes of elements."""
    if found := re.fullmatch(r"cvt\.rzi\.([su])(32|64)\.f(?:32|64) \$0, \$1;", text):
        return saturated(operands[0], np.dtype(f"{'i' if found[1] == 's' else 'u'}{int(found[2]) // 8}"))
    with np.errstate(all="ignore"):
        return INSTRUCTIONS[text](*operands)
