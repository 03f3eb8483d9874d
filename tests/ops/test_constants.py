"""Numbers written in a kernel: every op that takes one, at the edges of every element type and beyond.

A number means its value. Elements it meets hold it (floats rounded once, to the nearest), or it is refused at its line,
by the front end: what is accepted gives the same natively and in the interpreter.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from random import Random
from typing import Any, TypeVar
from zlib import crc32

import numpy as np
import pytest
from ops.kernels import Array, inout, kernel, out, scalar, tensor
from ops.native import Native, assert_converted, assert_same
from ops.test_mixed_scalars import BINARY, COMPARISONS, DIVISIONS, REAL, WHOLE, exact, result_of
from ops.test_scalar import spelled
from soon import soon

import tilewright.language as pl
from tilewright.core.op import OPS, Kind, OpSpec, Role, specs
from tilewright.dtypes import STORABLE, DataType
from tilewright.errors import AnnotationError, AttributeValueError, DTypeMismatchError, KernelError, OperandError
from tilewright.ops import masks
from tilewright.ops.declare import FLOATS, INTEGERS
from tilewright.ops.generate import COUNTED
from tilewright.ops.indices import PICKED

Number = int | float
T = TypeVar("T")

LIMITS = sorted({int(limit) + d for t in INTEGERS for limit in t.limits for d in (-1, 0, 1)})
MANY: list[Number] = [
    *LIMITS, 7, 8, -8, -9, 15, 16, 2, 100, 448, 2049, 65504, 65519, 65520, 2**24 + 1, 2**60 + 2**36 + 1, 2**70,
    -(10**30), 10**38, 10**39, 10**400, 0.5, 1.7, -2.0, 255.0, 256.0, 0.1, 1e38, 1e39, -1e39, 65520.0, 6e-8, 1e-40,
    1e-46, -0.0, math.inf, -math.inf, math.nan,
]  # fmt: skip


FEW: list[Number] = [
    -1,
    0,
    3,
    2**63,
    2**64,
    2**70,
    10**400,
    -2.0,
    0.5,
    0.1,
    1e38,
    1e39,
    1e-46,
    -0.0,
    -math.inf,
    math.nan,
]


def numbers_for(use: Use, dtype: DataType) -> list[Number]:
    """Return numbers at the edges of a type and beyond; many for ops that only pass them on."""
    if use.spec.name in ONLY_THE_NUMBER and dtype in FLOATS | INTEGERS:
        return MANY
    ends = [int(limit) + d for limit in dtype.limits for d in (-1, 0, 1)] if dtype.is_int() else [65519, 65520]
    return [*ends, *FEW]


ONLY_THE_NUMBER = ("full", "create", "expands")
"""Ops whose result is the number itself."""


def text(number: Number) -> str:
    """Return a number as a kernel writes it."""
    if isinstance(number, float) and not math.isfinite(number):
        return f'float("{number}")'
    return "10**400" if isinstance(number, int) and number == 10**400 else repr(number)


LARGEST = {
    pl.FP16: 65504, pl.BF16: 2**128 - 2**120, pl.FP32: 2**128 - 2**104, pl.FP8E5M2: 57344, pl.FP8E4M3FN: 448,
    pl.FP8E8M0: 2**127, pl.FP4: 6, pl.FP64: 2**1024 - 2**971,
}  # fmt: skip
"""The largest number of each type of floats."""


def holds(dtype: DataType, number: Number) -> bool:
    """Return whether the language lets elements of a type be a number."""
    if dtype.is_float():
        least = 1 if dtype == pl.FP8E8M0 else -LARGEST[dtype]
        return isinstance(number, float) or least <= number <= LARGEST[dtype]
    low, high = dtype.limits
    return low <= number <= high and number == int(number)  # NaN lies nowhere


def data(dtype: DataType) -> Array:
    """Return a row of elements of a type, its edges among them."""
    low, high = dtype.limits
    if dtype.is_float():
        return np.array([[0.0, -0.0, 1.0, -1.5, 4.0, 0.25, math.inf, math.nan]], np.float32).astype(dtype.numpy)
    return np.array([[int(n) for n in (low, high, 0, 1, 2, 3, 5, high - 1)]], dtype.numpy)


@dataclass
class Use:
    """One way to give an op a number: the expression around it, and the type of what it gives."""

    spec: OpSpec
    kind: Kind
    expression: str
    dtypes: frozenset[DataType]
    result: Callable[[DataType], DataType] = lambda dtype: dtype
    columns: int = 8

    @property
    def compares(self) -> bool:
        """Whether the number need not be one of the elements it is compared with."""
        return any(p.unheld for p in self.spec.parameters)

    def __str__(self) -> str:
        return f"{self.kind.value} {self.expression}"


def _is_number(role: Role) -> bool:
    return role in (Role.NUMBER, Role.EITHER)


def elementwise_uses(spec: OpSpec) -> list[Use]:
    """Return each operand of an elementwise op as a number, the other a tile or tensor."""
    found: list[Use] = []
    for kind, at in itertools.product(spec.kinds, spec.operands):
        if _is_number(at.role):
            others = [p for p in spec.operands if p.name in spec.data]
            shown = ["{n}" if p is at else "t" for p in others]
            result = _bool if spec.name in masks.__all__ else _itself
            accepted = frozenset(spec.accepts) - {pl.BOOL}
            found.append(Use(spec, kind, f"pl.{spec.name}({', '.join(shown)})", accepted, result))
    return found


def _mask(dtype: DataType) -> DataType:
    return pl.UINT8


def _bool(dtype: DataType) -> DataType:
    return pl.BOOL


def _column(dtype: DataType) -> DataType:
    return pl.INT32


def _itself(dtype: DataType) -> DataType:
    return dtype


ANY = frozenset(STORABLE)
_HELD = "pl.create_tensor([1, 8], dtype=pl.{dtype}, init_value=1)"
_PLACES = "pl.tile.ci(0, [1, 8], dtype=pl.INT32)"
_ATOMICS = [
    (op.spec.name, ", 1" if "compare" in op.spec.data else "", frozenset(op.spec.accepts))
    for name, op in OPS.items() if name.startswith("tile.atomic_")
]  # fmt: skip
STRUCTURED: dict[str, tuple[str, frozenset[DataType]]] = {
    "tile.sels": ("pl.sels(pl.cmp(t, t, cmp_type=pl.CmpType.LT), t, scalar={n})", FLOATS | INTEGERS),
    "tile.where": ("pl.where(t == t, {n}, t)", FLOATS | INTEGERS),
    "tensor.where": ("pl.where(t == t, {n}, t)", FLOATS | INTEGERS),
    "tile.clamp": ("pl.clamp(t, {n}, t)", FLOATS | INTEGERS),
    "tensor.clamp": ("pl.clamp(t, max={n})", FLOATS | INTEGERS),
    "tile.iota": ("pl.iota([1, 8], start={n}, dtype=pl.{dtype})", COUNTED),
    "tile.take": (f"pl.take({_HELD}, {_PLACES}, mask={_PLACES} < 4, pad={{n}}, axis=None)", FLOATS | INTEGERS),
    "tile.cmp": ("pl.cmp(t, {n}, cmp_type=pl.CmpType.LE)", FLOATS | INTEGERS),
    "tensor.cmp": ("pl.cmp(t, {n}, cmp_type=pl.CmpType.LE)", FLOATS | INTEGERS),
    "tensor.gather": ('pl.gather(t, kvalue={n}, cmp_mode="le", out_cols=8)[0]', PICKED),
    "tile.gather_compare": ('pl.tile.gather_compare(t, {n}, cmp_mode="le", out_cols=8)[0]', PICKED),
    "tile.ci": ("pl.tile.ci({n}, [1, 8], dtype=pl.{dtype})", COUNTED),
    "tensor.ci": ("pl.arange({n}, [1, 8], dtype=pl.{dtype})", COUNTED),
    **{
        f"tile.{name}": (f"pl.{name}({_HELD}, {_PLACES}, {{n}}{rest}, axis=None)", accepted)
        for name, rest, accepted in _ATOMICS
    },
    "tile.expands": ("pl.expands(t, {n})", FLOATS | INTEGERS),
    "tensor.expands": ("pl.expands(t, {n})", FLOATS | INTEGERS),
    "tile.full": ("pl.tile_full([1, 8], dtype=pl.{dtype}, value={n})", ANY - {pl.BOOL}),
    "tensor.full": ("pl.full([1, 8], dtype=pl.{dtype}, value={n})", ANY - {pl.BOOL}),
    "tensor.create": ("pl.create_tensor([1, 8], dtype=pl.{dtype}, init_value={n})", ANY - {pl.BOOL}),
    "tile.write": ("pl.write(t, [0, 1], {n})", ANY - {pl.BOOL}),
    "tensor.write": (
        "pl.write(pl.create_tensor([1, 8], dtype=pl.{dtype}, init_value=1), [0, 1], {n})",
        ANY - {pl.BOOL},
    ),
}
"""How ops of no family are given a number, and the types that have one there."""

RESULTS = {"tile.cmp": (_mask, 32), "tensor.gather": (_column, 8), "tile.gather_compare": (_column, 8)}
"""What ops give that do not give elements of their own type: the type, and how many columns of it."""

ELSEWHERE = {
    "array.update_element",
    "scalar.cast",
    "tile.cast",
    "tensor.cast",
    "tile.arange",
    "tile.put",
    "system.print_value",
}
"""Ops whose numbers have tests of their own: casts convert, arrays hold scalars, arange is iota, put gives nothing."""


def takes_a_number(spec: OpSpec) -> bool:
    return any(_is_number(p.role) or p.name == "init_value" for p in spec.parameters)


def uses() -> list[Use]:
    """Return every use of a number as an element that the registry knows of."""
    found: list[Use] = []
    for spec in specs():
        if spec.family == "elementwise":
            found += elementwise_uses(spec)
        elif takes_a_number(spec) and spec.family != "scalar":
            for kind in spec.kinds:
                name = f"{kind.value}.{spec.name}"
                if name not in ELSEWHERE:
                    expression, dtypes = STRUCTURED[name]
                    found.append(Use(spec, kind, expression, dtypes, *RESULTS.get(name, (_itself, 8))))
    return found


USES = uses()


def body(use: Use, dtype: DataType, numbers: list[Number]) -> list[str]:
    """Return statements that use each number and put what comes of it into a row of its own."""
    is_tile, x, to = use.kind is Kind.TILE, f"x_{dtype}", f"out_{dtype}"
    lines = [f"t = pl.load({x}, [0, 0], [1, 8])" if is_tile else f"t = pl.slice({x}, [1, 8], [0, 0])"]
    for row, number in enumerate(numbers):
        shown = use.expression.format(n=text(number), dtype=dtype.symbol)
        lines.append(f"r = {shown}")
        put = f"pl.store(r, [{row}, 0], {to})" if is_tile else f"pl.assemble({to}, r, [{row}, 0])"
        lines.append(f"{to} = {put}")
    return lines


def parsed(use: Use, numbers: Mapping[DataType, list[Number]]) -> Any:
    """Return a kernel that uses numbers of some types, those of each in a matrix of its own."""
    parameters: dict[str, str] = {}
    for dtype, some in numbers.items():
        parameters[f"x_{dtype}"] = tensor(dtype, 1, 8)
        parameters[f"out_{dtype}"] = out(use.result(dtype), len(some), use.columns)
    lines = [line for dtype, some in numbers.items() for line in body(use, dtype, some)]
    return kernel("\n".join(lines), **parameters)


@pytest.mark.parametrize("use", USES, ids=str)
def test_a_number_means_its_value_or_is_refused(use: Use) -> None:
    taken: dict[DataType, list[Number]] = {}
    for dtype in sorted(use.dtypes, key=lambda t: t.code()):
        numbers = numbers_for(use, dtype)
        taken[dtype] = [number for number in numbers if _is_taken(use, dtype, number)]
        _check_refused(use, dtype, [number for number in numbers if not _is_taken(use, dtype, number)])
    results = {dtype: np.zeros((len(some), use.columns), use.result(dtype).numpy) for dtype, some in taken.items()}
    with soon(crc32(str(use).encode()) % 2 == 0):
        native = Native(parsed(use, taken))
    pairs = native.run([a for dtype, result in results.items() for a in (data(dtype), result)])
    for dtype, (got, want) in zip(taken, pairs[1::2], strict=True):
        for row, number in enumerate(taken[dtype]):
            try:
                assert_converted(got[row], want[row], use.spec.accuracy(dtype))
            except AssertionError as error:
                raise AssertionError(f"{use} with {number} in {dtype}: {error}") from None
            if use.spec.name in ONLY_THE_NUMBER:
                _check_value(want[row], number, dtype)
            if use.compares and not holds(dtype, number):
                _check_compared(use, want[row], number, dtype)


def _is_taken(use: Use, dtype: DataType, number: Number) -> bool:
    """Return whether a number is accepted, which is so exactly where elements of the type can be it, or compare."""
    return use.compares or holds(dtype, number) or _stands_for_bits(use, dtype, number)


def _check_refused(use: Use, dtype: DataType, numbers: list[Number]) -> None:
    """Fail unless numbers are refused: all of them by ops that only pass them on, four of them by each other op."""
    is_every = use.spec.name in ONLY_THE_NUMBER or len(numbers) < 4
    for number in numbers if is_every else Random(f"{use} {dtype}").sample(numbers, 4):
        with pytest.raises(OperandError) as caught:
            parsed(use, {dtype: [number]})
        assert f"is not a number {dtype} can hold" in caught.value.message and caught.value.place.is_known


def _stands_for_bits(use: Use, dtype: DataType, number: Number) -> bool:
    """Return whether a negative integer is accepted for the unsigned one with the same bits."""
    keeps = any(p.keeps_bits for p in use.spec.parameters)
    return keeps and dtype.is_unsigned_int() and isinstance(number, int) and -(1 << (dtype.bits - 1)) <= number < 0


def _check_value(row: Array, number: Number, dtype: DataType) -> None:
    """Fail unless elements are the numbers of their type nearest to one."""
    if not dtype.is_float():
        assert [int(n) for n in row] == [int(number)] * len(row), number
    elif math.isfinite(number) and dtype in FLOATS:
        found = float(row[0])
        there = np.array([found]).astype(dtype.numpy)
        with np.errstate(over="ignore"):
            neighbours = [np.nextafter(there, there.dtype.type(side)) for side in (-math.inf, math.inf)]
        for other in neighbours:
            if math.isfinite(found) and math.isfinite(float(other[0])):
                assert abs(Fraction(found) - Fraction(number)) <= abs(Fraction(float(other[0])) - Fraction(number))


def _check_compared(use: Use, row: Array, number: Number, dtype: DataType) -> None:
    """Fail unless elements compare with a number as Python's own numbers do, exactly."""
    compare, is_left = getattr(operator, use.spec.name), "({n}" in use.expression
    elements = [float(e) if dtype.is_float() else int(e) for e in data(dtype)[0]]
    want = [compare(number, e) if is_left else compare(e, number) for e in elements]
    assert row.tolist() == want, f"{use} with {number} in {dtype}"


def literals(dtype: DataType) -> list[Number]:
    low, high = dtype.limits
    ends = [int(limit) + d for limit in (low, high) for d in (-1, 0, 1)] if dtype.is_int() else []
    return [*dict.fromkeys([*ends, -1, 0, 3, 2**63 - 1, -(2**63)]), 2**63, 2**64, 2**70, -(2**70), 10**400, 2.0, 0.1,
            1e39, 1e-46, -0.0, math.inf, math.nan]  # fmt: skip


@dataclass(frozen=True)
class Literal:
    """A number beside a scalar of the running program, on its left or right, and the type that it takes there."""

    dtype: DataType
    number: Number
    is_left: bool

    @property
    def own(self) -> DataType | None:
        """The scalar's type, else index; None where neither can be the number."""
        if self.dtype.is_float():
            return self.dtype if holds(self.dtype, self.number) else None
        if isinstance(self.number, float):
            return None
        return next((t for t in (self.dtype, pl.INDEX) if holds(t, self.number)), None)

    def result(self, spec: OpSpec) -> DataType | None:
        """Return the type of an op between the two, None where it is refused."""
        own = self.own
        if own is None or own.is_float():
            return own if own is None or spec.symbol not in COMPARISONS else pl.BOOL
        return result_of(spec, *self.sides(own, self.dtype))

    def sides(self, number: T, other: T) -> tuple[T, T]:
        """Return what belongs to the number and to the scalar as they stand."""
        return (number, other) if self.is_left else (other, number)

    def applied(self, spec: OpSpec) -> str:
        """Return the expression of an op between the two."""
        return spelled(spec, *self.sides(f"({text(self.number)})", f"a_{self.dtype}"))


def beside(spec: OpSpec) -> list[Literal]:
    """Return numbers on either side of every type that an op takes."""
    types = [*WHOLE, *(REAL if all(_is_number(p.role) for p in spec.operands) else [])]
    found = [Literal(t, n, is_left) for t in types for is_left in (False, True) for n in literals(t)]
    return [one for one in found if one.is_left or one.number != 0 or spec.symbol not in DIVISIONS]


@pytest.mark.parametrize("spec", BINARY, ids=lambda s: s.name)
def test_a_number_beside_a_scalar_is_refused_where_no_type_holds_it(spec: OpSpec) -> None:
    for one in beside(spec):
        if one.result(spec) is None:
            with pytest.raises((OperandError, DTypeMismatchError)) as caught:
                kernel(f"c = {one.applied(spec)}", **{f"a_{one.dtype}": scalar(one.dtype)})
            assert caught.value.place.is_known and caught.value.help


@pytest.mark.parametrize("spec", BINARY, ids=lambda s: s.name)
def test_a_number_beside_a_scalar_means_its_value(spec: OpSpec) -> None:
    taken = [(one, result) for one in beside(spec) if (result := one.result(spec)) is not None]
    stored = [pl.INT64 if result == pl.INDEX else result for _, result in taken]
    lines = [
        f"pl.write(out_{t}, [{at}], {one.applied(spec)})"
        for at, ((one, _), t) in enumerate(zip(taken, stored, strict=True))
    ]
    kinds, types = (sorted(set(some), key=lambda t: t.code()) for some in (stored, [one.dtype for one, _ in taken]))
    parameters = {f"a_{t}": scalar(t) for t in types} | {f"out_{t}": inout(t, len(taken)) for t in kinds}
    native = Native(kernel("\n".join(lines), **parameters))
    for position in range(3):
        given = {t: _sample(t, position) for t in types}
        pairs = native.run([*given.values(), *(np.zeros(len(taken), t.numpy) for t in kinds)])
        found = dict(zip(kinds, pairs, strict=True))
        for at, (one, result) in enumerate(taken):
            ours, theirs = (side[at : at + 1] for side in found[stored[at]])
            assert_same(ours, theirs)
            if one.dtype.is_int():
                a, b = one.sides(int(one.number), int(given[one.dtype]))
                assert theirs.item() == exact(spec, a, b, result), (spec.name, one, a, b)


def _sample(dtype: DataType, position: int) -> float:
    """Return a number of a type that can divide."""
    if dtype.is_float():
        return (1.5, -0.0, math.inf)[position]
    return int((dtype.limits[0] or 1, dtype.limits[1], 1)[position])


PLACES = {
    "a loop": "for i in pl.range({n}):\n    pl.write(x, [0, 0], 1.0)",
    "where a loop starts": "for i in pl.range({n}, 4):\n    pl.write(x, [0, 0], 1.0)",
    "a parallel loop": "for i in pl.parallel({n}):\n    pl.write(x, [0, 0], 1.0)",
    "an unrolled loop": "for i in pl.unroll({n}):\n    pl.write(x, [0, 0], 1.0)",
    "what a loop carries": "for i, (c,) in pl.range(2, init_values=({n},)):\n    c = pl.yield_(c)",
    "an offset": "t = pl.load(x, [{n}, 0], [1, 4])",
    "a shape": "t = pl.create_tensor([{n}, 4], dtype=pl.FP32)",
    "a tile": "t = pl.tile_full([{n}], dtype=pl.FP32, value=0.0)",
    "an index": "n = pl.read(x, [{n}, 0])",
    "a valid extent": "t = pl.set_validshape(pl.load(x, [0, 0], [4, 4]), {n}, 4)",
    "what is returned": "return {n}",
    "what is converted": "n = pl.cast({n}, pl.UINT8)",
    "a number with a type": "n = pl.const({n}, pl.INT64)",
    "an annotated number": "n: pl.Scalar[pl.INT64] = {n}",
}


def test_an_extent_that_64_bits_cannot_hold_is_refused() -> None:
    with pytest.raises(AnnotationError, match="no extent can be 9223372036854775808"):
        kernel("return", x=tensor(pl.FP32, 2**63))
    with pytest.raises(AttributeValueError, match="no array can have 9223372036854775808 elements"):
        kernel("a = pl.array.create(2**63, pl.INT32)")


@pytest.mark.parametrize("number", [2**63, 2**64, 2**64 + 3, -(2**63) - 1, 2**70, 10**400], ids=lambda n: text(n)[:9])
@pytest.mark.parametrize("place", PLACES)
def test_a_number_that_counts_is_refused_where_64_bits_cannot_hold_it(place: str, number: int) -> None:
    with pytest.raises(KernelError, match=r"is not a number (index|int64) can hold") as caught:
        kernel(PLACES[place].format(n=text(number)), x=inout(pl.FP32, 4, 4))
    assert caught.value.place.is_known and "reaches from" in caught.value.help
