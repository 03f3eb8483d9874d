"""Elements of two types: every operator and every ordered pair of types, at the edges of both.

Operators go by value: two integers meet in the narrowest type that holds both, and there the exact result wraps. No
type holds uint64 and negative numbers: those two only compare and shift, and are divided as floats. Native code and the
interpreter are held to a model in plain Python integers.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from ops.kernels import Array, kernel, out, tensor
from ops.native import Native
from ops.test_mixed_scalars import MODEL, TYPES, wrapped

import tilewright.language as pl
from tilewright.core.program import Function
from tilewright.core.stmt import AssignStmt
from tilewright.core.types import TensorType
from tilewright.dtypes import DataType, from_numpy, from_torch, to_torch
from tilewright.errors import DTypeMismatchError, OperandError

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


def combined(cases: list[tuple[str, DataType, DataType, DataType]]) -> Function:
    """Return one kernel that writes every case: the n-th result of a type is the n-th row of its tensor."""
    counts, lines = dict[DataType, int](), list[str]()
    for t in TYPES:
        lines += [f"{side}_{t} = pl.load({side}{t}, [0, 0], [1, {COUNT}])" for side in "ab"]
    for name, lhs, rhs, result in cases:
        place = counts[result] = counts.get(result, -1) + 1
        lines.append(f"pl.store({WRITTEN[name].format(f'a_{lhs}', f'b_{rhs}')}, [{place}, 0], out_{result})")
    given = {f"{side}{t}": tensor(t, 1, COUNT) for side in "ab" for t in TYPES}
    return kernel("\n".join(lines), **given, **{f"out_{t}": out(t, n + 1, COUNT) for t, n in counts.items()})


GROUPS = [
    ("add", "sub", "mul"), ("floordiv",), ("mod",), ("bit_and", "bit_or", "bit_xor", *SHIFTS),
    ("max", "min"), ("eq", "ne", "lt"), ("le", "gt", "ge"),
]  # fmt: skip


@pytest.mark.parametrize("names", GROUPS, ids="-".join)
def test_integers_of_two_types_meet_by_value(names: tuple[str, ...]) -> None:
    check_pairs(names, Native)


def check_pairs(names: tuple[str, ...], machine: Callable[[Function], Any]) -> None:
    """Fail unless a machine and the interpreter compute what the rule says for every pair of types."""
    cases, want = rows(names), dict[DataType, list[list[int]]]()
    for name, lhs, rhs, result in cases:
        pairs = itertools.product(edges(lhs), edges(rhs))
        want.setdefault(result, []).append([exact(name, a, b, result) for a, b in pairs])
    inputs = [grid(t, "ab".index(side)) for side in "ab" for t in TYPES]
    outputs = [np.zeros((len(each), COUNT), t.numpy) for t, each in want.items()]
    found = machine(combined(cases)).run([*inputs, *outputs])[len(inputs) :]
    for (result, expected), sides in zip(want.items(), found, strict=True):
        for side in sides:
            for row, wanted, case in zip(side.tolist(), expected, [c for c in cases if c[3] == result], strict=True):
                assert row == wanted, case


def test_every_pair_meets_in_the_type_that_it_does_in_torch() -> None:
    torch = pytest.importorskip("torch")
    types = [pl.UINT8, pl.INT8, pl.INT16, pl.INT32, pl.INT64, pl.FP16, pl.BF16, pl.FP32, pl.FP64, pl.BOOL]
    lines, wanted = dict[str, str](), dict[str, DataType]()
    for a, b in [*itertools.product(types, types)][:-1]:
        met = from_torch(torch.promote_types(to_torch(a), to_torch(b)))
        for text in ("a_{} + b_{}", "pl.where(a_{0} == b_{1}, a_{0}, b_{1})", "pl.maximum(a_{}, b_{})", "a_{} / b_{}"):
            name = f"c{len(lines)}"
            lines[name], wanted[name] = text.format(a, b), met if met.is_float() or "/" not in text else pl.FP32
    given = {f"{side}_{t}": tensor(t, 4) for side in "ab" for t in types}
    function = kernel("\n".join(f"{name} = {text}" for name, text in lines.items()), **given)
    found = {s.var.name_hint: s.var.type for s in function.body if isinstance(s, AssignStmt)}
    for name, type_ in wanted.items():
        assert found[name] == TensorType((4,), type_, (4,)), lines[name]


def test_what_no_type_holds_is_refused() -> None:
    for name in sorted(set(WRITTEN) - set(SHIFTS) - set(COMPARED)):
        for lhs, rhs in ((pl.UINT64, pl.INT64), (pl.INT8, pl.UINT64)):
            with pytest.raises(DTypeMismatchError, match=f"no integers hold both {lhs} and {rhs}"):
                kernel(f"c = {WRITTEN[name].format('a', 'b')}", a=tensor(lhs, 4), b=tensor(rhs, 4))


def check(statements: list[tuple[str, Array]], **given: Array) -> None:
    """Fail unless expressions give what is said, natively and in the interpreter; `t_x` is a tile of `x`."""
    lines = [f"t_{name} = pl.load({name}, {[0] * x.ndim}, {[*x.shape]})" for name, x in given.items()]
    outputs = {f"out{number}": want for number, (_, want) in enumerate(statements)}
    for (text, want), name in zip(statements, outputs, strict=True):
        is_tile, at = "t_" in text or "arange" in text, [0] * want.ndim
        lines.append(f"pl.store({text}, {at}, {name})" if is_tile else f"pl.assemble({name}, {text}, {at})")
    parameters = {name: tensor(from_numpy(x.dtype), *x.shape) for name, x in given.items()}
    results = {name: out(from_numpy(want.dtype), *want.shape) for name, want in outputs.items()}
    zeros = [np.zeros_like(want) for want in outputs.values()]
    found = Native(kernel("\n".join(lines), **parameters, **results)).run([*given.values(), *zeros])[len(given) :]
    for (text, want), sides in zip(statements, found, strict=True):
        for side in sides:
            ours, theirs = (each.astype(np.float64) if want.dtype.kind in "fV" else each for each in (side, want))
            np.testing.assert_array_equal(ours, theirs, err_msg=text)


def test_numbers_tensors_and_single_operands_go_the_same_way() -> None:
    statements = list[tuple[str, Array]]()
    given = {f"x{number}": grid(t, 0) for number, t in enumerate(TYPES)}
    for (name, x), t in zip(given.items(), TYPES, strict=True):
        three, seven, one = (np.asarray(number, t.numpy) for number in (3, 7, 1))
        with np.errstate(all="ignore"):
            statements += [
                (f"t_{name} % 3", x % three), (f"t_{name} // 3", x // three), (f"7 % t_{name}", seven % x),
                (f"7 // t_{name}", np.where(x == 0, 0 * x, seven // np.where(x == 0, one, x))),
                (f"{name} % 3", x % three), (f"pl.fmod(t_{name}, 3)", np.fmod(x, three)),
                (f"pl.div(t_{name}, 3)", _thirds(x)), (f"~t_{name}", ~x), (f"-t_{name}", 0 * x - x),
                (f"pl.abs(t_{name})", np.abs(x)), (f"t_{name} << 1", x << one), (f"t_{name} >> 1", x >> one),
                (f"1 << (t_{name} & 7)", one << (x & seven)), (f"7 ^ t_{name}", seven ^ x),
                (f"t_{name} / 4", x.astype(np.float32) / np.float32(4)),
                (f"{name} / {name}", x.astype(np.float32) / x.astype(np.float32)),
            ]  # fmt: skip
    check(statements, **given)


def _thirds(x: Array) -> Array:
    """Return integers divided by three, the fraction dropped."""
    return np.array([[abs(int(n)) // 3 * (1 if n > 0 else -1) for n in x[0]]], x.dtype)


def test_masks_count_as_ones_and_zeros_beside_numbers() -> None:
    x, n = np.array([[-1.5, 0.0, 0.5, 2.5]], np.float32), np.array([[1, 2, 3, 4]], np.int8)
    m, k, two = x > 0, x > 1, np.float32(2)
    check(
        [
            ("(t_x > 0) * 2.0", m * two), ("3 - (t_x > 0)", 3 - m.astype(np.int32)), ("(t_x > 0) * t_x", m * x),
            ("(t_x > 0) + t_n", m + n), ("(t_x > 0) ^ (t_x > 1)", m ^ k),
            ("(t_x > 0) / 2", m / two), ("~(t_x > 0)", ~m), ("(x > 0) * 2.0", m * two), ("(t_x > 0) > 0.5", m),
            ("(t_x > 0) < 2", m | True),
        ],
        x=x, n=n,
    )  # fmt: skip


@pytest.mark.parametrize("dtype", [pl.FP32, pl.FP16, pl.BF16, pl.FP64], ids=str)
def test_floats_are_divided_downwards_as_in_numpy(dtype: DataType) -> None:
    numbers = [0.0, -0.0, 1.0, -1.0, 0.1, -2.5, 3.0, 7.25, 0.0625, -60000.0, np.inf, -np.inf, np.nan]
    x, y = (np.array([[pair[side] for pair in itertools.product(numbers, repeat=2)]], dtype.numpy) for side in (0, 1))
    wide = x.astype(np.float64), y.astype(np.float64)
    with np.errstate(all="ignore"):
        floor, rest = (function(*wide).astype(dtype.numpy) for function in (np.floor_divide, np.mod))
    check([("t_x // t_y", floor), ("t_x % t_y", rest), ("x // y", floor), ("x % y", rest)], x=x, y=y)


COUNTED = [
    ("250, 256", pl.UINT8), ("100, 128", pl.INT8), ("5, -1, -1", pl.UINT8), ("256", pl.UINT8),
    ("2**63 - 2, 2**63", pl.INT64), ("0, 70000, 10000", pl.FP16),
]  # fmt: skip


def test_counting_may_stop_past_the_last_number_of_a_type() -> None:
    wanted = [(given, t, np.array(range(*eval(f"[{given}]"))).astype(t.numpy)) for given, t in COUNTED]
    check([(f"pl.arange({given}, dtype=pl.{t.symbol})", want) for given, t, want in wanted])
    for given, t, number in (("0, 300", pl.UINT8, 299), ("-1, 3", pl.UINT8, -1), ("3, -130, -1", pl.INT8, -129)):
        with pytest.raises(OperandError, match=f"{number} is not a number {t} can hold"):
            kernel(f"t = pl.arange({given}, dtype=pl.{t.symbol})")
    with pytest.raises(OperandError, match="is not a number int32 can hold"):
        kernel("t = pl.arange(2**31 - 2, 2**31 + 1)")
