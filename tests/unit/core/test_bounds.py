"""Bounds: how far scalar expressions can reach."""

from __future__ import annotations

import pytest

from tilewright.core.build import scalar
from tilewright.core.expr import Var, constant
from tilewright.core.extents import bounds
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
