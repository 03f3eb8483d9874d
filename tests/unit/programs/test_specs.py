"""Specs: the tensors and numbers of a test."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
import torch

import tilewright.language as pl
from tilewright.runtime import RunResult, ScalarSpec, TensorSpec


def test_a_tensor_starts_as_zeros_a_number_an_array_or_what_a_function_gives() -> None:
    assert torch.equal(TensorSpec("x", [2, 3], torch.bfloat16).create_tensor(), torch.zeros(2, 3, dtype=torch.bfloat16))
    assert torch.equal(TensorSpec("x", [2], torch.int32, 7).create_tensor(), torch.tensor([7, 7], dtype=torch.int32))
    assert torch.equal(TensorSpec("x", [2], torch.float32, torch.arange(2)).create_tensor(), torch.tensor([0.0, 1.0]))
    assert torch.equal(TensorSpec("x", [2], torch.float16, lambda: [1, 2]).create_tensor(), torch.tensor([1, 2]).half())


def test_factories_are_called_with_the_shape() -> None:
    assert torch.equal(TensorSpec("x", [3], torch.float32, torch.ones).create_tensor(), torch.ones(3))
    assert TensorSpec("x", [64], torch.float32, torch.randn).create_tensor().std() > 0.5
    np.testing.assert_array_equal(TensorSpec("x", [3], np.int8, np.ones).create_tensor(), np.ones(3, np.int8))


def test_other_element_types_give_numpy_arrays() -> None:
    made = TensorSpec("x", [2], pl.BF16, 1.5).create_tensor()
    assert (type(made), made.dtype, made.tolist()) == (np.ndarray, ml_dtypes.bfloat16, [1.5, 1.5])


def test_outputs_start_as_zeros() -> None:
    assert not TensorSpec("out", [4], np.float32, 3, is_output=True).create_tensor().any()


def test_an_initial_array_is_copied() -> None:
    given = np.ones(2, np.float32)
    TensorSpec("x", [2], np.float32, given).create_tensor()[:] = 5
    assert given.tolist() == [1, 1]


def test_what_cannot_be_an_initial_value_is_named() -> None:
    with pytest.raises(ValueError, match=r"`x` has shape \[2\], and starts as \[3\]"):
        TensorSpec("x", [2], np.float32, np.ones(3)).create_tensor()
    with pytest.raises(TypeError, match="`x` cannot start as str"):
        TensorSpec("x", [2], np.float32, "ones").create_tensor()


def test_a_scalar_has_a_type_of_c() -> None:
    assert ScalarSpec("n", 3) == ScalarSpec("n", 3, "int64")
    with pytest.raises(ValueError, match="`n` cannot be 'int8'; one of int64, int32, uint64, uint32, float, double"):
        ScalarSpec("n", 3, "int8")


def test_a_result_reads_as_one_line() -> None:
    assert str(RunResult(True, "softmax", execution_time=0.25)) == "PASS softmax in 0.250 s"
    assert str(RunResult(False, error="`out` is wrong")) == "FAIL: `out` is wrong"
