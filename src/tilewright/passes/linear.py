"""Linear forms: numbers as sums of multiples of others that nobody looks into."""

from __future__ import annotations

from collections.abc import Mapping

from tilewright.core.expr import Call, ConstInt, Expr, Var
from tilewright.core.types import ScalarType
from tilewright.dtypes import INDEX, INT64, UINT64


def is_long(number: Expr) -> bool:
    """Return whether a number is an integer of a type that holds all that are counted."""
    return isinstance(number.type, ScalarType) and number.type.dtype in (INDEX, INT64, UINT64)


def distance(made: Mapping[Var, Call], first: Expr, second: Expr) -> int | None:
    """Return how much more a number is than another, as far as what makes them tells; None where it does not."""
    more = _sum(_form(made, second), _form(made, first), -1)
    number = more.pop(None, 0)
    return None if any(more.values()) else number


_Form = dict[Expr | None, int]
"""How often each number is counted; None is one."""


def _form(made: Mapping[Var, Call], number: Expr) -> _Form:
    """Return a number as a sum of multiples of others."""
    if isinstance(number, ConstInt):
        return {None: int(number.value)}
    value = made.get(number) if isinstance(number, Var) else number
    if not isinstance(value, Call) or not is_long(value):
        return {number: 1}  # shorter ones may wrap around
    name, (lhs, *others) = value.op.name, value.args
    if name == "scalar.cast" and is_long(lhs):
        return _form(made, lhs)
    if name in ("scalar.add", "scalar.sub"):
        return _sum(_form(made, lhs), _form(made, others[0]), 1 if name == "scalar.add" else -1)
    if name == "scalar.mul":
        for each, times in ((lhs, others[0]), (others[0], lhs)):
            if isinstance(times, ConstInt):
                return _sum({}, _form(made, each), int(times.value))
    return {number: 1}


def _sum(one: _Form, other: _Form, times: int) -> _Form:
    return {key: one.get(key, 0) + times * other.get(key, 0) for key in {**one, **other}}
