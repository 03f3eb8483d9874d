"""Elements of two types: every operator and every ordered pair of types, at the edges of both.

Operators go by value: two integers meet in the narrowest type that holds both, and there the exact result wraps. No
type holds uint64 and negative numbers: those two only compare and shift, and are divided as floats. Native code and the
interpreter are held to a model in plain Python integers.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from ops.kernels import Array, kernel, out, tensor
from ops.native import Native
from ops.test_mixed_scalars import MODEL, TYPES, wrapped

import tilewright.language as pl
from tilewright.dtypes import DataType

COMPARED = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
SHIFTS = {"shl": "<<", "shr": ">>"}
SIGNS = {
    "add": "+", "sub": "-", "mul": "*", "floordiv": "//", "mod": "%", "bit_and": "&", "bit_or": "|", "bit_xor": "^",
    **SHIFTS, **COMPARED,
}  # fmt: skip
CALLS = {"max": "pl.maximum({}, {})", "min": "pl.minimum({}, {})"}
WRITTEN = {**{name: f"{{}} {sign} {{}}" for name, sign in SIGNS.items()}, **CALLS}
"""How each operator is written."""

GRID = 5
COUNT = GRID * GRID


def met(name: str, lhs: DataType, rhs: DataType) -> DataType | None:
    """Return the type the stated rule gives, found by looking at every type there is; None for a refusal."""
    if name in COMPARED:
        return pl.BOOL
    low, high = min(lhs.limits[0], rhs.limits[0]), max(lhs.limits[1], rhs.limits[1])
    holding = [t for t in TYPES if t.limits[0] <= low and high <= t.limits[1]]
    if not holding:
        return lhs if name in SHIFTS and lhs.bits == 64 else None
    return min(holding, key=lambda t: t.bits)


def edges(dtype: DataType) -> list[int]:
    """Return the numbers of a type where it ends, and around zero."""
    low, high = (int(limit) for limit in dtype.limits)
    return [low, high, -1 if low < 0 else high - 1, 0, 3]


def grid(dtype: DataType, position: int) -> Array:
    """Return the edges of a type, each beside every one of another."""
    numbers = [pair[position] for pair in itertools.product(edges(dtype), repeat=2)]
    return np.array([numbers], dtype.numpy)


def exact(name: str, a: int, b: int, result: DataType) -> int:
    """Return what the rule says, from Python's integers alone; what is divided by zero is zero."""
    if name in SHIFTS:
        return wrapped(MODEL[name](wrapped(a, result), b % result.bits), result)
    return wrapped(int(MODEL[name](a, b)) if b or name not in ("floordiv", "mod") else 0, result)


def rows(names: tuple[str, ...]) -> list[tuple[str, DataType, DataType, DataType]]:
    """Return every operator with every pair of types that it takes, and the type of its result."""
    found = ((n, a, b, met(n, a, b)) for n, a, b in itertools.product(names, TYPES, TYPES))
    return [(name, a, b, result) for name, a, b, result in found if result is not None]


def combined(cases: list[tuple[str, DataType, DataType, DataType]]) -> Native:
    """Return one kernel that writes every case: the n-th result of a type is the n-th row of its tensor."""
    counts, lines = dict[DataType, int](), list[str]()
    for t in TYPES:
        lines += [f"{side}_{t} = pl.load({side}{t}, [0, 0], [1, {COUNT}])" for side in "ab"]
    for name, lhs, rhs, result in cases:
        place = counts[result] = counts.get(result, -1) + 1
        lines.append(f"pl.store({WRITTEN[name].format(f'a_{lhs}', f'b_{rhs}')}, [{place}, 0], out_{result})")
    given = {f"{side}{t}": tensor(t, 1, COUNT) for side in "ab" for t in TYPES}
    return Native(kernel("\n".join(lines), **given, **{f"out_{t}": out(t, n + 1, COUNT) for t, n in counts.items()}))


@pytest.mark.parametrize(
    "names",
    [
        ("add",),
        ("sub", "mul"),
        ("floordiv",),
        ("mod",),
        ("bit_and", "bit_or", "bit_xor"),
        ("shl", "shr"),
        ("max", "min"),
        tuple(COMPARED),
    ],
    ids="-".join,
)
def test_integers_of_two_types_meet_by_value(names: tuple[str, ...]) -> None:
    cases = rows(names)
    want = dict[DataType, list[list[int]]]()
    for name, lhs, rhs, result in cases:
        pairs = itertools.product(edges(lhs), edges(rhs))
        want.setdefault(result, []).append([exact(name, a, b, result) for a, b in pairs])
    inputs = [grid(t, "ab".index(side)) for side in "ab" for t in TYPES]
    outputs = [np.zeros((len(each), COUNT), t.numpy) for t, each in want.items()]
    found = combined(cases).run([*inputs, *outputs])[len(inputs) :]
    for (result, expected), sides in zip(want.items(), found, strict=True):
        for side in sides:
            for row, wanted, case in zip(side.tolist(), expected, [c for c in cases if c[3] == result], strict=True):
                assert row == wanted, case
