"""Element types: what frameworks call them, both ways, and calls with each of them."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
from unit.programs.programs import program_of

from tilewright import ir
from tilewright.dtypes import (
    FP4,
    HF8,
    STORABLE,
    TORCH_NAMES,
    TORCH_PACKED,
    DataType,
    from_numpy,
    from_torch,
    to_torch,
)

TEXT = """
import tilewright.language as pl

@pl.program
class Copy:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[4, 8], pl.{0}], out: pl.Out[pl.Tensor[[4, 8], pl.{0}]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            out = pl.store(pl.load(x, [0, 0], [4, 8]), [0, 0], out)
        return out
"""


def values(dtype: DataType) -> Any:
    numbers: Any = np.arange(32) % 4
    return numbers.reshape(4, 8).astype(dtype.numpy)


@pytest.mark.parametrize("dtype", STORABLE, ids=str)
def test_numpy_and_ml_dtypes_have_every_type_there_and_back(dtype: DataType) -> None:
    assert from_numpy(dtype.numpy) == dtype
    assert hasattr(np, str(dtype.numpy_name)) or hasattr(ml_dtypes, str(dtype.numpy_name))


@pytest.mark.parametrize("name", TORCH_NAMES | TORCH_PACKED)
def test_torch_has_its_types_there_and_back(name: str) -> None:
    dtype = from_torch(getattr(torch, name))
    assert dtype == (TORCH_NAMES | TORCH_PACKED)[name]
    assert to_torch(dtype) == getattr(torch, name)


@pytest.mark.parametrize("dtype", STORABLE, ids=str)
def test_every_type_is_called_with_numpy(dtype: DataType) -> None:
    result = ir.compile(program_of(TEXT.format(dtype.symbol)))(values(dtype))
    assert result.dtype == dtype.numpy and result.tobytes() == values(dtype).tobytes()


@pytest.mark.parametrize("name", TORCH_NAMES)
def test_every_type_is_called_with_torch(name: str) -> None:
    dtype = TORCH_NAMES[name]
    x = torch.as_tensor(values(dtype).view(f"i{dtype.get_byte()}")).view(getattr(torch, name))
    result = ir.compile(program_of(TEXT.format(dtype.symbol)))(x)
    assert result.dtype == x.dtype and torch.equal(result.view(torch.uint8), x.view(torch.uint8))


def test_packed_tensors_are_taken_apart_and_put_together() -> None:
    compiled = ir.compile(program_of(TEXT.format("FP4")))
    x = torch.arange(16, dtype=torch.uint8).reshape(4, 4).mul(7).view(torch.float4_e2m1fn_x2)
    result = compiled(x)
    assert result.dtype == x.dtype and torch.equal(result.view(torch.uint8), x.view(torch.uint8))
    out = torch.zeros(4, 8, dtype=torch.uint8)[:, ::2].view(torch.float4_e2m1fn_x2)
    assert compiled(x, out) is None
    assert torch.equal(out.view(torch.uint8), x.view(torch.uint8))


def test_the_first_element_of_a_packed_byte_is_its_lower_half() -> None:
    compiled = ir.compile(program_of(TEXT.format("FP4")))
    x = torch.full((4, 4), 0x21, dtype=torch.uint8).view(torch.float4_e2m1fn_x2)
    out = np.zeros((4, 8), FP4.numpy)
    compiled(x, out)
    assert out[0].astype(np.float32).tolist() == [0.5, 1.0] * 4


def test_types_that_nobody_has_list_those_there_are() -> None:
    with pytest.raises(TypeError, match=r"Unsupported array dtype complex64; supported: bool, int4, .*, bfloat16"):
        from_numpy(np.dtype(np.complex64))
    with pytest.raises(TypeError, match=r"Unsupported torch dtype torch.complex64; supported: float16, .*_x2"):
        from_torch(torch.complex64)
    with pytest.raises(TypeError, match="torch has no dtype for hf8; it has one for fp16, .*, fp4"):
        to_torch(HF8)


@pytest.mark.parametrize("array", [np.zeros((4, 8), np.complex64), torch.zeros(4, 8, dtype=torch.complex64)], ids=str)
def test_a_call_with_such_a_type_names_the_parameter_and_lists_them(array: Any) -> None:
    with pytest.raises(TypeError, match="`x`: Unsupported .* dtype .*; supported: .*fp|`x`: Unsupported .*float32"):
        ir.compile(program_of(TEXT.format("FP32")))(array)
