"""Scalars of two types: every scalar op and every ordered pair of types, at the edges of both.

Two integers meet in the narrowest type that holds both; there the exact result wraps. No type holds uint64 and negative
numbers: those two only compare, by value, and shift. Native code, the interpreter and the constant folder are held to
a model in plain Python integers.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from ops.kernels import Array, kernel, scalar
from ops.native import Native, assert_same
from ops.test_scalar import SCALARS, spelled

import tilewright.language as pl
from tilewright.core.build import rebuild
from tilewright.core.build import scalar as applied
from tilewright.core.expr import Call, Const, Expr, Var, constant
from tilewright.core.op import OpSpec
from tilewright.core.types import ScalarType
from tilewright.dtypes import DataType, round_scalar
from tilewright.errors import DTypeMismatchError
from tilewright.ops.declare import FLOATS, INTEGERS

TYPES = sorted(INTEGERS, key=lambda t: t.code())
WHOLE = [*TYPES, pl.INDEX]
REAL = sorted(FLOATS, key=lambda t: t.code())
COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
DIVISIONS = ("/", "//", "%")

BINARY = [s for s in SCALARS if len(s.operands) == 2 and s.symbol not in ("and", "or")]
"""The ops of two numbers."""


def _quotient(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


MODEL: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": _quotient,
    "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "shl": lambda a, b: a << b,
    "shr": lambda a, b: a >> b,
    "bit_and": lambda a, b: a & b,
    "bit_or": lambda a, b: a | b,
    "bit_xor": lambda a, b: a ^ b,
    "min": min,
    "max": max,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}
"""What each op means between Python's own integers."""


def result_of(spec: OpSpec, lhs: DataType, rhs: DataType) -> DataType | None:
    """Return the type the stated rule gives, found by looking at every type there is; None for a refusal."""
    if spec.symbol in COMPARISONS:
        return pl.BOOL
    low, high = min(lhs.limits[0], rhs.limits[0]), max(lhs.limits[1], rhs.limits[1])
    holding = [t for t in TYPES if t.limits[0] <= low and high <= t.limits[1]]
    if not holding:
        is_shift = spec.symbol in ("<<", ">>")
        return (pl.UINT64 if lhs == pl.UINT64 else pl.INT64) if is_shift else None
    narrowest = min(holding, key=lambda t: t.bits)
    return pl.INDEX if pl.INDEX in (lhs, rhs) else narrowest


def wrapped(number: int, dtype: DataType) -> int:
    """Return the number of a type that has the same last bits."""
    low = int(dtype.limits[0])
    return bool(number) if dtype == pl.BOOL else (number - low) % (1 << dtype.bits) + low


def exact(spec: OpSpec, a: int, b: int, result: DataType) -> int:
    """Return what the rule says, from Python's integers alone."""
    if spec.symbol in ("<<", ">>"):
        return wrapped(MODEL[spec.name](wrapped(a, result), b % result.bits), result)
    return wrapped(int(MODEL[spec.name](a, b)), result)


def edges(dtype: DataType, position: int, spec: OpSpec) -> list[int]:
    """Return the numbers of a type where it ends, and around zero; what divides is not zero."""
    low, high = (int(limit) for limit in dtype.limits)
    found = [low, high, -1 if low < 0 else high - 1, 0, 1, 3]
    return [n or 2 for n in found] if position == 1 and spec.symbol in DIVISIONS else found


def cases(spec: OpSpec) -> list[tuple[DataType, DataType, DataType]]:
    """Return the ordered pairs of integers that an op takes, each with the type of its result."""
    found = ((lhs, rhs, result_of(spec, lhs, rhs)) for lhs, rhs in itertools.product(WHOLE, WHOLE))
    return [(lhs, rhs, result) for lhs, rhs, result in found if result is not None]


def combined(spec: OpSpec, pairs: list[tuple[DataType, DataType, DataType]], types: list[DataType]) -> Native:
    """Return one kernel that writes an op of every pair: the n-th result of a type is the n-th of its tensor."""
    counts, lines = dict[DataType, int](), list[str]()
    for lhs, rhs, result in pairs:
        place = counts[result] = counts.get(result, -1) + 1
        lines.append(f"pl.write(out_{result}, [{place}], {spelled(spec, f'a_{lhs}', f'b_{rhs}')})")
    parameters = {f"{side}_{t}": scalar(t) for side in "ab" for t in types}
    outputs = {
        f"out_{t}": f"pl.Out[pl.Tensor[[{n + 1}], pl.{_stored(t).symbol}]]" for t, n in sorted_by_code(counts).items()
    }
    return Native(kernel("\n".join(lines), **parameters, **outputs))


def sorted_by_code(counts: dict[DataType, int]) -> dict[DataType, int]:
    return dict(sorted(counts.items(), key=lambda item: item[0].code()))


def _stored(dtype: DataType) -> DataType:
    """Return the type of tensors that scalars of a type are written to as they are."""
    return pl.INT64 if dtype == pl.INDEX else dtype


def both(native: Native, numbers: list[Any], results: list[DataType]) -> dict[DataType, tuple[Array, Array]]:
    """Return what native code and the interpreter give, by type."""
    counts = {t: results.count(t) for t in sorted(set(results), key=lambda t: t.code())}
    outputs = [np.zeros(count, _stored(t).numpy) for t, count in counts.items()]
    return dict(zip(counts, native.run([*numbers, *outputs]), strict=True))


@pytest.mark.parametrize("spec", BINARY, ids=lambda s: s.name)
def test_integers_of_two_types_mean_what_the_rule_says(spec: OpSpec) -> None:
    pairs = cases(spec)
    native = combined(spec, pairs, WHOLE)
    for i, j in itertools.product(range(6), range(6)):
        given = [edges(t, 0, spec)[i] for t in WHOLE] + [edges(t, 1, spec)[j] for t in WHOLE]
        want: dict[DataType, list[int]] = {}
        for lhs, rhs, result in pairs:
            a, b = edges(lhs, 0, spec)[i], edges(rhs, 1, spec)[j]
            want.setdefault(result, []).append(exact(spec, a, b, result))
        for result, (ours, theirs) in both(native, given, [r for *_, r in pairs]).items():
            assert ours.tolist() == want[result], (spec.name, result, i, j)
            assert theirs.tolist() == want[result], (spec.name, result, i, j)


@pytest.mark.parametrize("spec", BINARY, ids=lambda s: s.name)
def test_folded_integers_of_two_types_mean_what_the_rule_says(spec: OpSpec) -> None:
    for lhs, rhs, result in cases(spec):
        for a, b in itertools.product(edges(lhs, 0, spec), edges(rhs, 1, spec)):
            want = constant(exact(spec, a, b, result), result)
            folded = applied(spec.name, constant(a, lhs), constant(b, rhs))
            assert folded == want, (spec.name, lhs, rhs, a, b)
            assert _substituted(spec, (a, b), (lhs, rhs)) == want, (spec.name, lhs, rhs, a, b)


def _substituted(spec: OpSpec, numbers: tuple[int, int], types: tuple[DataType, DataType]) -> Expr:
    """Return an op of two variables once passes know first the one and then the other."""
    first, second = (Var("n", ScalarType(t)) for t in types)
    before = applied(spec.name, first, second)
    known = [constant(n, t) for n, t in zip(numbers, types, strict=True)]
    assert isinstance(before, Call)
    half = rebuild(before, [known[0], second])
    assert half.type == before.type, (spec.name, *types)
    return rebuild(half, [half.args[0], known[1]]) if isinstance(half, Call) else known[1]


@pytest.mark.parametrize("spec", BINARY, ids=lambda s: s.name)
def test_what_no_type_holds_is_refused(spec: OpSpec) -> None:
    for lhs, rhs in itertools.product(WHOLE, WHOLE):
        if result_of(spec, lhs, rhs) is None:
            assert pl.UINT64 in (lhs, rhs) and (lhs.is_signed_int() or rhs.is_signed_int())
            with pytest.raises(DTypeMismatchError, match=f"no type holds the numbers of both {lhs} and {rhs}"):
                kernel(f"c = {spelled(spec, 'a', 'b')}", a=scalar(lhs), b=scalar(rhs))


@pytest.mark.parametrize("dtype", [pl.INT4, pl.UINT4, pl.FP8E4M3FN, pl.BOOL], ids=str)
def test_numbers_too_narrow_to_compute_with_are_refused(dtype: DataType) -> None:
    with pytest.raises(DTypeMismatchError, match="arithmetic needs numbers"):
        kernel("c = a + b", a=scalar(dtype), b=scalar(pl.INT32 if dtype.is_int() else pl.FP32))


FLOAT_EDGES = [0.0, -0.0, 1.0, -1.0, 0.1, -2.5, 3.0, 6.1e-5, 1e-40, 65504.0, -65504.0, 3.4e38, math.inf, -math.inf,
               math.nan]  # fmt: skip
FLOAT_OPS = [s for s in BINARY if all(p.role.name == "NUMBER" for p in s.operands)]


@pytest.mark.parametrize("spec", FLOAT_OPS, ids=lambda s: s.name)
def test_floats_of_two_types_meet_in_the_one_that_holds_both(spec: OpSpec) -> None:
    pairs = [(a, b, _wider(spec, a, b)) for a, b in itertools.product(REAL, REAL)]
    native = combined(spec, pairs, REAL)
    for a, b in itertools.product(FLOAT_EDGES, FLOAT_EDGES):
        given = [round_scalar(n, t) for n in (a, b) for t in REAL]
        for ours, theirs in both(native, given, [r for *_, r in pairs]).values():
            assert_same(ours, theirs)


def _wider(spec: OpSpec, lhs: DataType, rhs: DataType) -> DataType:
    return pl.BOOL if spec.symbol in COMPARISONS else lhs if lhs == rhs else pl.FP32


@pytest.mark.parametrize("spec", [s for s in SCALARS if s.name in ("neg", "invert")], ids=lambda s: s.name)
def test_an_integer_alone_wraps_in_its_own_type(spec: OpSpec) -> None:
    lines = [f"pl.write(out_{t}, [0], {spec.symbol}a_{t})" for t in WHOLE]
    outputs = {f"out_{t}": f"pl.Out[pl.Tensor[[1], pl.{_stored(t).symbol}]]" for t in WHOLE}
    native = Native(kernel("\n".join(lines), **{f"a_{t}": scalar(t) for t in WHOLE}, **outputs))
    for i in range(6):
        numbers = [edges(t, 0, spec)[i] for t in WHOLE]
        found = native.run([*numbers, *(np.zeros(1, _stored(t).numpy) for t in WHOLE)])
        want = [wrapped(-n if spec.name == "neg" else ~n, t) for n, t in zip(numbers, WHOLE, strict=True)]
        assert [ours.item() for ours, _ in found] == [theirs.item() for _, theirs in found] == want
        assert [_value(applied(spec.name, constant(n, t))) for n, t in zip(numbers, WHOLE, strict=True)] == want


def _value(expr: Expr) -> float:
    assert isinstance(expr, Const)
    return expr.value
