"""Rows that are reduced in place: the bits that `ops/collectives.py` says, whichever of them holds the result."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilewright.core.enums import ReduceOp
from tilewright.dtypes import BF16, FP16, FP32, FP64, INT8, INT32
from tilewright.ops.collectives import reduced
from tilewright.programs.distributed.row_reductions import BLOCK, reducing

RARE = [np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1e38, -1e38, 3e-39]


def rows_of(dtype: Any, count: int, size: int) -> list[Any]:
    random = np.random.default_rng(size)
    if dtype.numpy.kind in "iu":
        return [random.integers(-100, 100, size).astype(dtype.numpy) for _ in range(count)]
    rows = random.standard_normal((count, size)).astype(np.float32)
    rows[:, -len(RARE) :] = [random.permutation(RARE) for _ in range(count)]
    with np.errstate(all="ignore"):
        return [row.astype(dtype.numpy) for row in rows]


@pytest.mark.parametrize("dtype", [FP32, FP64, FP16, BF16, INT8, INT32], ids=str)
@pytest.mark.parametrize("op", ReduceOp, ids=lambda op: op.name)
@pytest.mark.parametrize(("count", "size"), [(2, 37), (3, 37), (4, BLOCK + 37)])
def test_rows_make_the_bits_that_the_meaning_says(dtype: Any, op: ReduceOp, count: int, size: int) -> None:
    pytest.importorskip("torch")
    for own in (None, *range(count)):
        rows = rows_of(dtype, count, size)
        wanted = reduced(rows, op)
        into = np.empty_like(wanted) if own is None else rows[own]
        reducing(rows, op, into)()
        assert into.tobytes() == wanted.tobytes(), own
