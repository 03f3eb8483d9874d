"""Assembly: values written into a part of others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ops.kernels import Array, counting, inout, kernel, launch, out, run, scalar, tensor

import tilewright.language as pl
from tilewright import ir
from tilewright.dtypes import DataType
from tilewright.errors import ControlPlaneComputeError, DTypeMismatchError, OperandError, OutOfBoundsError

pytestmark = pytest.mark.usefixtures("on_target")


def test_assembling_into_a_tensor_writes_it() -> None:
    function = kernel("y = pl.assemble(x, s, [1])", x=inout(pl.FP32, 4), s=tensor(pl.FP32, 2))
    x = counting(4)
    launch(function, x, np.array([8, 9], np.float32))
    assert x.tolist() == [0, 8, 9, 3]


def test_assembling_into_a_tile_makes_another() -> None:
    body = """
    a = pl.load(x, [0], [4])
    b = pl.assemble(a, pl.slice(a, [2], [0]), [2])
    out = pl.store(pl.sub(b, a), [0], out)
    """
    assert run(kernel(body, x=tensor(pl.FP32, 4), out=out(pl.FP32, 4)), counting(4)).tolist() == [0, 0, -2, -2]


def test_assembling_outside_is_refused() -> None:
    with pytest.raises(OutOfBoundsError, match="axis 0: elements 3 to 5 lie outside 0 to 4") as caught:
        kernel("y = pl.assemble(x, s, [3])", x=inout(pl.FP32, 4), s=tensor(pl.FP32, 2))
    assert caught.value.blame == ("offset",) and "clamp" not in caught.value.help


def test_assembling_another_element_type_is_refused() -> None:
    with pytest.raises(DTypeMismatchError, match="fp16 elements cannot go into fp32"):
        kernel("y = pl.assemble(x, s, [0])", x=inout(pl.FP32, 4), s=tensor(pl.FP16, 2))


def test_a_tile_does_not_take_a_tensor() -> None:
    with pytest.raises(OperandError, match="a tile cannot take a tensor"):
        kernel("y = pl.assemble(pl.load(x, [0], [4]), x, [0])", x=tensor(pl.FP32, 4))


def test_an_atomic_assemble_adds() -> None:
    function = kernel("y = pl.assemble(x, pl.load(x, [0], [4]), [0], atomic=pl.AtomicType.Add)", x=inout(pl.FP32, 4))
    x = counting(4)
    launch(function, x)
    assert x.tolist() == [0, 2, 4, 6]


AWKWARD = np.array([[1 + 2**-9, -(1 + 2**-8), 3e38, -0.0], [np.nan, np.inf, 1e-40, 65519.0]], np.float32)


@pytest.mark.parametrize("dtype", [pl.BF16, pl.FP16], ids=str)
@pytest.mark.parametrize("kind", ["tile", "tensor"])
@pytest.mark.parametrize("n", [0, 1, 2])
def test_a_tile_of_fp32_is_rounded_on_the_way(dtype: DataType, kind: str, n: int) -> None:
    body = f"""
    a = pl.load(x, [0, 0], [2, 4], valid_shape=[n, 4])
    into = pl.tile.full([3, 6], dtype=pl.{dtype.symbol}, value=2.0)
    out = pl.store(pl.assemble(into, a, [1, n]), [0, 0], out)
    """
    if kind == "tensor":
        body = "out = pl.assemble(out, pl.load(x, [0, 0], [2, 4], valid_shape=[n, 4]), [1, n])"
    function = kernel(body, x=tensor(pl.FP32, 2, 4), n=scalar(pl.INDEX), out=inout(dtype, 3, 6))
    numpy: Any = dtype.numpy
    result: Array = np.full((3, 6), 2, numpy)
    launch(function, AWKWARD, n, result)
    want: Array = np.full((3, 6), 2, numpy)
    with np.errstate(over="ignore"):
        want[1 : 1 + n, n : n + 4] = AWKWARD[:n].astype(numpy)
    np.testing.assert_array_equal(result.astype(np.float32), want.astype(np.float32))


def test_a_column_that_is_not_there_is_not_rounded() -> None:
    body = """
    a = pl.load(x, [0, 0], [4, 1], valid_shape=[4, n])
    out = pl.store(pl.assemble(pl.tile.full([4, 2], dtype=pl.BF16, value=2.0), a, [0, 1]), [0, 0], out)
    """
    function = kernel(body, x=tensor(pl.FP32, 4, 1), n=scalar(pl.INDEX), out=out(pl.BF16, 4, 2))
    for n in (0, 1):
        want = [[2, 2]] * 4 if n == 0 else [[2, k] for k in range(4)]
        assert run(function, counting(4, 1), n).tolist() == want


@pytest.mark.parametrize(("source", "into"), [(pl.FP16, pl.FP32), (pl.BF16, pl.FP16), (pl.FP32, pl.INT32)])
def test_no_other_elements_are_converted(source: DataType, into: DataType) -> None:
    with pytest.raises(DTypeMismatchError, match="elements cannot go into"):
        kernel("x = pl.assemble(x, pl.load(s, [0], [2]), [0])", x=inout(into, 4), s=tensor(source, 2))


def test_a_tensor_is_not_rounded() -> None:
    with pytest.raises(DTypeMismatchError, match="fp32 elements cannot go into bfloat16"):
        kernel("x = pl.assemble(x, s, [0])", x=inout(pl.BF16, 4), s=tensor(pl.FP32, 2))


def test_all_of_a_tile_has_to_fit() -> None:
    with pytest.raises(OutOfBoundsError, match="axis 0: elements 2 to 6 lie outside 0 to 4"):
        body = "x = pl.assemble(x, pl.load(s, [0], [4], valid_shape=[2]), [2])"
        kernel(body, x=inout(pl.FP32, 4), s=tensor(pl.FP32, 4))


def test_the_valid_part_of_a_tensor_has_to_fit() -> None:
    body = "x = pl.assemble(x, pl.slice(s, [4], [0], valid_shape=[2]), [2])"
    x = counting(4)
    launch(kernel(body, x=inout(pl.FP32, 4), s=tensor(pl.FP32, 4)), x, counting(4) - 9)
    assert x.tolist() == [0, 1, -9, -8]


@pl.program
class Added:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self, a: pl.Tensor[[8, 8], pl.FP32], b: pl.Tensor[[8, 8], pl.FP32], total: pl.InOut[pl.Tensor[[10, 8], pl.FP32]]
    ):
        with pl.at(level=pl.Level.CORE_GROUP):
            total = pl.assemble(total, pl.matmul(a, b), [2, 0], atomic=pl.AtomicType.Add)
        with pl.at(level=pl.Level.CORE_GROUP):
            c = pl.add(a, b)
            pl.tensor.assemble(total, c, [0, 0], atomic=pl.AtomicType.Add)
        return total


def test_a_kernel_adds_what_it_has_computed(target: str) -> None:
    a, b = (np.random.default_rng(k).standard_normal((8, 8)).astype(np.float32) for k in (1, 2))
    total = counting(10, 8)
    want: Array = total.astype(np.float64)
    want[2:] += a.astype(np.float64) @ b.astype(np.float64)
    want[:8] += a + b
    ir.compile(Added, platform=target)(a, b, total)
    np.testing.assert_allclose(total, want, rtol=1e-5, atol=1e-5)


def test_the_valid_part_of_a_computed_tensor_is_added() -> None:
    body = """
    s = pl.neg(pl.slice(x, [4, 4], [0, 0], valid_shape=[n, 3]))
    pl.assemble(y, s, [0, 1], atomic=pl.AtomicType.Add)
    """
    function = kernel(body, x=tensor(pl.FP32, 4, 4), n=scalar(pl.INDEX), y=inout(pl.FP32, 4, 5))
    for n in (0, 2, 4):
        y, want = np.ones((4, 5), np.float32), np.ones((4, 5), np.float32)
        want[:n, 1:4] -= counting(4, 4)[:n, :3]
        launch(function, counting(4, 4), n, y)
        np.testing.assert_array_equal(y, want)


@pytest.mark.parametrize("source", ["x", "pl.slice(x, [4], [0])", "pl.create_tensor([4], dtype=pl.FP32)"])
def test_a_buffer_is_not_added_atomically(source: str) -> None:
    with pytest.raises(OperandError, match="is a buffer"):
        kernel(
            f"y = pl.assemble(y, {source}, [0], atomic=pl.AtomicType.Add)", x=tensor(pl.FP32, 4), y=inout(pl.FP32, 4)
        )


def test_a_tile_is_not_added_to_atomically() -> None:
    with pytest.raises(OperandError, match="an atomic assemble adds to a tensor"):
        kernel("a = pl.load(x, [0], [4])\nb = pl.assemble(a, a, [0], atomic=pl.AtomicType.Add)", x=tensor(pl.FP32, 4))


def test_an_atomic_assemble_takes_the_types_that_an_atomic_store_does() -> None:
    with pytest.raises(DTypeMismatchError, match="atomic add does not take int64"):
        kernel("x = pl.assemble(x, pl.load(x, [0], [4]), [0], atomic=pl.AtomicType.Add)", x=inout(pl.INT64, 4))


def test_nothing_is_added_atomically_outside_a_kernel() -> None:
    @pl.program
    class Outside:
        @pl.function(type=pl.FunctionType.Orchestration)
        def main(self, a: pl.Tensor[[8, 8], pl.FP32], total: pl.InOut[pl.Tensor[[8, 8], pl.FP32]]):
            with pl.at(level=pl.Level.CORE_GROUP):
                b = pl.add(a, a)
            total = pl.assemble(total, b, [0, 0], atomic=pl.AtomicType.Add)
            return total

    with pytest.raises((ControlPlaneComputeError, OperandError), match="inside a kernel|is a buffer"):
        ir.compile(Outside)
