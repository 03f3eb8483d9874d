"""Sums into memory that others add to: every element type, apart or in one run, and many threads at once."""

from __future__ import annotations

import threading
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tilewright.dtypes import BF16, FP16, FP32, INT8, INT16, INT32, DataType
from tilewright.native.added import add

TYPES: list[tuple[DataType, Any]] = [
    (FP16, np.float16), (BF16, ml_dtypes.bfloat16), (FP32, np.float32),
    (INT32, np.int32), (INT16, np.int16), (INT8, np.int8),
]  # fmt: skip


@pytest.mark.parametrize(("dtype", "numpy"), TYPES, ids=lambda each: str(each))
def test_elements_are_added_where_they_lie(dtype: DataType, numpy: Any) -> None:
    into, given = np.ones((3, 4), numpy), np.full((3, 2), 2, numpy)
    size = into.itemsize
    add(dtype, into.ctypes.data + size, (3, 2), (4 * size, size), given.ctypes.data)
    assert into.astype(np.float32).tolist() == [[1, 3, 3, 1]] * 3


@pytest.mark.parametrize(("dtype", "numpy"), [(FP16, np.float16), (BF16, ml_dtypes.bfloat16)], ids=["fp16", "bf16"])
def test_no_sum_of_two_bytes_is_lost_between_threads(dtype: DataType, numpy: Any) -> None:
    into, one = (np.full(4, value).astype(numpy) for value in (0, 1))

    def adds() -> None:
        for _ in range(60):
            add(dtype, into.ctypes.data, (4,), (2,), one.ctypes.data)

    threads = [threading.Thread(target=adds) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert into.astype(np.float32).tolist() == [240.0] * 4
