"""Known values: Python's own sequences and arithmetic inside a kernel, computed while it is read."""

from __future__ import annotations

import numpy as np
import pytest
from unit.frontend.texts import in_core, jitted, ramp

import tilewright.language as pl
from tilewright.errors import StaticEvaluationError

SIZES = [4, 16]


def test_lists_join_lists_and_tuples_join_tuples() -> None:
    kernel = jitted(
        in_core(
            "ends = [0] + [0] * 1",
            "shape = (4,) + tuple(SIZES[1:])",
            "pl.static_assert(SIZES == [4] + SIZES[1:] and shape == (4, 16))",
            "pl.store(pl.load(x, ends, list(shape)), [0] * 2, out)",
        ),
        SIZES=SIZES,
    )
    np.testing.assert_array_equal(kernel(ramp(4, 16)), ramp(4, 16))


def test_a_list_equals_no_tuple_and_is_a_list() -> None:
    kernel = jitted(
        """
        pl.static_assert([4, 16] != (4, 16) and SIZES[:] != (4, 16))
        pl.static_assert(isinstance(SIZES, list) and isinstance([1] + [2], list) and not isinstance((1,), list))
        out[:, :] = x
        """,
        SIZES=SIZES,
    )
    np.testing.assert_array_equal(kernel(ramp(4, 16)), ramp(4, 16))


def test_a_list_from_outside_joins_no_tuple_either() -> None:
    kernel = jitted("shape = SIZES + (1,)", SIZES=SIZES)
    with pytest.raises(StaticEvaluationError, match="can only concatenate list"):
        kernel(ramp(4, 16), ramp(4, 16))


def test_a_shape_is_a_tuple_that_has_slices() -> None:
    kernel = jitted("""
        rows, cols = x.shape[-2:]
        pl.static_assert(x.shape[:-2] == (2,) and x.shape[::2] == (2, 8) and x.shape[5:] == () and rows == 4)
        for b in pl.range(x.shape[0]):
            with pl.at(level=pl.Level.CORE_GROUP):
                pl.store(pl.load(x, [b, 0, 0], (1,) + x.shape[-2:]), [b, 0, 0], out)
    """)
    np.testing.assert_array_equal(kernel(ramp(2, 4, 8)), ramp(2, 4, 8))


@pytest.mark.parametrize(
    "text", ["9**9**9", "1 << 10**9", "[0] * 10**9", "10**9 * (0,)", "pow(9, 9**8)", "'a' * 10**9"]
)
def test_what_would_take_all_memory_is_refused(text: str) -> None:
    with pytest.raises(StaticEvaluationError, match="more than 65536 bits or elements"):
        pl.parse(f"@pl.function\ndef kernel(x: pl.Tensor[[4], pl.FP32]):\n    y = {text}\n")
