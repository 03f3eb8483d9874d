"""Bounds: how far scalar expressions can reach."""

from __future__ import annotations

import itertools

import pytest

from tilewright.core.build import scalar
from tilewright.core.expr import Var, constant
from tilewright.core.extents import bounds
from tilewright.core.op import OPS
from tilewright.core.types import ScalarType
from tilewright.dtypes import INDEX, INT8, INT32, UINT8, DataType


@pytest.mark.parametrize(
    ("dtype", "reach", "factor", "expected"),
    [
        (INDEX, (0, 7), 1 << 30, (0, 7 << 30)),
        (INT32, (0, 7), 1 << 10, (0, 7 << 10)),
        (INT32, (0, 7), 1 << 30, None),
        (INT8, (-8, 8), 16, None),
        (INT8, (-8, 7), 16, (-128, 112)),
        (UINT8, (0, 15), 17, (0, 255)),
        (INDEX, (0, 1 << 40), 1 << 40, None),
    ],
)
def test_what_may_wrap_around_can_be_anything(
    dtype: DataType, reach: tuple[int, int], factor: int, expected: tuple[int, int] | None
) -> None:
    number = Var("n", ScalarType(dtype), bounds=reach)
    assert bounds(scalar("mul", number, constant(factor, dtype))) == expected


@pytest.mark.parametrize("op", ["div", "floordiv", "mod"])
def test_quotients_and_remainders_by_positive_numbers_lie_between_the_bounds(op: str) -> None:
    ends = [(low, high) for low in range(-7, 8) for high in range(low, 8)]
    for reach, by in itertools.product(ends, [each for each in ends if each[0] > 0]):
        n, d = (Var(name, ScalarType(INDEX), bounds=found) for name, found in (("n", reach), ("d", by)))
        spec, found = OPS[f"scalar.{op}"].spec, bounds(scalar(op, n, d))
        assert spec.evaluate is not None and found is not None
        pairs = itertools.product(range(reach[0], reach[1] + 1), range(by[0], by[1] + 1))
        given = [spec.evaluate(ScalarType(INDEX), lhs=a, rhs=b) for a, b in pairs]
        assert found[0] <= min(given) and max(given) <= found[1]


@pytest.mark.parametrize("op", ["div", "floordiv", "mod"])
def test_nothing_is_known_of_a_quotient_whose_divisor_may_not_be_positive(op: str) -> None:
    n, d = Var("n", ScalarType(INDEX), bounds=(0, 9)), Var("d", ScalarType(INDEX), bounds=(0, 3))
    assert bounds(scalar(op, n, d)) is None
