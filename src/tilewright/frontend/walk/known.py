"""Known values: what Python itself computes while a function is read."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterator, Mapping, MappingView, Sequence
from types import BuiltinFunctionType
from typing import Any, TypeAlias

from tilewright.errors import KernelError, StaticEvaluationError
from tilewright.frontend.value_keys import is_instance, is_plain
from tilewright.frontend.walk.walker import Listed, Value, Walker

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


BINARY: Mapping[type[ast.operator], _Known] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: _product,
    ast.Div: lambda a, b: a / b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: lambda a, b: a % b,
    ast.LShift: _shifted,
    ast.RShift: lambda a, b: a >> b,
    ast.BitAnd: lambda a, b: a & b,
    ast.BitOr: lambda a, b: a | b,
    ast.BitXor: lambda a, b: a ^ b,
    ast.Pow: power,
    ast.MatMult: lambda a, b: a @ b,
}

UNARY: Mapping[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: operator.neg,
    ast.Invert: operator.invert,
    ast.Not: operator.not_,
    ast.UAdd: operator.pos,
}

COMPARE: Mapping[type[ast.cmpop], _Known] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda item, container: operator.contains(container, item),
    ast.NotIn: lambda item, container: not operator.contains(container, item),
}

FUNCTIONS = (len, abs, int, float, bool, round, sum, divmod, pow, min, max, str, all, any, sorted)
SEQUENCES = (tuple, list, range, zip, enumerate, reversed)
"""Python's own functions that any language calls on known values; `SEQUENCES` make several values of several."""

_SHAPED_ONLY = (len, *SEQUENCES)
"""Functions that do not look at what a container holds."""


def is_mathematical(callee: object) -> bool:
    """Return whether a function is one of Python's `math`."""
    return isinstance(callee, BuiltinFunctionType) and callee.__module__ == math.__name__


def called(t: Walker, callee: Any, args: Sequence[Value], kwargs: Mapping[str, Value], node: ast.Call) -> Value:
    """Return what a function of Python's makes of known values."""
    if callee is not isinstance:
        deeply = all(callee is not each for each in _SHAPED_ONLY)
        check_plain(t, node, *args, *kwargs.values(), deeply=deeply)
    function = power if callee is pow else callee
    return _attempted(t, node, lambda: function(*map(as_python, args), **kwargs))


def known(t: Walker, node: ast.expr, meaning: Callable[..., Any], *values: Value) -> Value:
    """Return arithmetic on known values, done by Python itself."""
    check_plain(t, node, *values)
    return _attempted(t, node, lambda: meaning(*map(as_python, values)))


def _attempted(t: Walker, node: ast.expr, compute: Callable[[], Any]) -> Value:
    try:
        result = compute()
    except Exception as error:
        reason = error.message if isinstance(error, KernelError) else error
        raise t.error(StaticEvaluationError, node, f"cannot evaluate `{ast.unparse(node)}`: {reason}") from None
    if isinstance(result, _LAZY):
        result = _attempted(t, node, lambda: _gone_through(result))
    return t.listed(result) if isinstance(result, list) else result  # pyright: ignore[reportUnknownArgumentType]


_LAZY: tuple[Any, ...] = (range, zip, enumerate, reversed, Iterator, MappingView)
"""What Python goes through later, and a kernel at once."""


def _gone_through(values: Any) -> list[Any]:
    if isinstance(values, range):
        _checked(len(values))
    return list(values)


def check_plain(t: Walker, node: ast.expr, *values: Value, deeply: bool = True) -> None:
    """Raise for objects that Python cannot compute with here: nobody would notice when they change."""
    for value in values:
        if is_instance(value) or (deeply and not is_plain(value)):
            of = f"an object of type {type(value).__name__}, which the cache cannot follow"
            help = "use the numbers it holds: its attributes and items are followed one by one"
            raise t.error(StaticEvaluationError, node, f"`{ast.unparse(node)}` depends on all of {of}", help=help)


def as_python(value: Value) -> Value:
    """Return a value as Python has it, its lists lists again."""
    if not isinstance(value, tuple):
        return value
    elements = [as_python(element) for element in sequence(value)]  # pyright: ignore[reportUnknownArgumentType]
    return elements if isinstance(value, Listed) else tuple(elements)


def sequence(value: Value) -> tuple[Value, ...]:
    """Return several values as a tuple; a single one counts as one."""
    return tuple(value) if isinstance(value, (list, tuple)) else (value,)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
