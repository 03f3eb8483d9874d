"""Positions: the first largest or smallest element of rows and columns, as torch finds it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from ops.kernels import Array, inout, kernel, launch, out, run, run_all, scalar, tensor

import tilewright.language as pl
from tilewright.dtypes import DataType
from tilewright.errors import ExecutionError, MixedKindsError, OperandError, ShapeMismatchError
from tilewright.ops.declare import NUMBERS

pytestmark = pytest.mark.usefixtures("on_target")

NAMES = ["row_argmax", "row_argmin", "col_argmax", "col_argmin"]
every_name = pytest.mark.parametrize("name", NAMES)


def expected(name: str, x: Array) -> Array:
    find: Any = torch.argmax if name.endswith("max") else torch.argmin
    dim = -1 if name.startswith("row") else -2
    wide = torch.tensor(x.astype(np.float64).tolist()) if x.dtype.kind not in "iu" else torch.tensor(x.tolist())
    return find(wide, dim=dim, keepdim=True).numpy().astype(np.int32)


def shape_of(name: str, *shape: int) -> list[int]:
    folded = list(shape)
    folded[-1 if name.startswith("row") else -2] = 1
    return folded


def drawn(dtype: DataType, *shape: int, seed: int = 0) -> Array:
    """Return elements of which many are equal."""
    rng = np.random.default_rng(seed)
    low = 0 if dtype.is_unsigned_int() else -4
    return rng.integers(low, 5, shape).astype(dtype.numpy)


@every_name
@pytest.mark.parametrize("shape", [(5, 37), (33, 70), (1, 7), (6, 1), (2, 5, 19)], ids=str)
def test_the_first_of_equal_elements_is_found(name: str, shape: tuple[int, ...]) -> None:
    dtypes = sorted(NUMBERS - {pl.UINT64}, key=str)
    zeros, result = [0] * len(shape), shape_of(name, *shape)
    lines = [
        f"out_{t} = pl.store(pl.{name}(pl.load(x_{t}, {zeros}, {list(shape)}), "
        f"pl.create_tile({list(shape)}, dtype=pl.{t.symbol})), {zeros}, out_{t})"
        for t in dtypes
    ]
    inputs, outputs = (
        {f"x_{t}": tensor(t, *shape) for t in dtypes},
        {f"out_{t}": out(pl.INT32, *result) for t in dtypes},
    )
    given = [drawn(t, *shape) for t in dtypes]
    found = run_all(kernel("\n".join(lines), **inputs, **outputs), *given)
    for t, x, places in zip(dtypes, given, found, strict=True):
        assert places.tolist() == expected(name, x).tolist(), t


@every_name
def test_special_elements_are_found_as_torch_finds_them(name: str) -> None:
    function = kernel(
        f"out = pl.assemble(out, pl.{name}(x), [0, 0])",
        x=tensor(pl.FP32, 20, 40),
        out=out(pl.INT32, *shape_of(name, 20, 40)),
    )
    for number in (np.nan, np.inf, -np.inf, -0.0, 0.0):
        x = np.random.default_rng(1).choice(np.array([number, 1.5, -1.5, 0.0, -0.0], np.float32), (20, 40))
        assert run(function, x).tolist() == expected(name, x).tolist(), number
        alone = np.full((20, 40), number, np.float32)
        assert not run(function, alone).any(), number


@pytest.mark.parametrize("name", ["row_argmax", "row_argmin"])
@pytest.mark.parametrize("dtype", [pl.FP32, pl.BF16], ids=str)
def test_wherever_in_a_long_row_it_is_the_first_is_found(name: str, dtype: DataType) -> None:
    width = 203  # blocks of any machine's vectors, and a rest
    function = kernel(
        f"""
        t = pl.load(x, [0, 0], [{2 * width}, {width}])
        out = pl.store(pl.{name}(t, pl.create_tile([{2 * width}, {width}], dtype=pl.{dtype.symbol})), [0, 0], out)
        best = pl.store(pl.{name.replace("arg", "")}(t), [0, 0], best)
        """,
        x=tensor(dtype, 2 * width, width),
        out=out(pl.INT32, 2 * width, 1),
        best=out(dtype, 2 * width, 1),
    )
    for number in (9.0 if name == "row_argmax" else -9.0, np.nan, -np.nan):
        x = drawn(dtype, 2 * width, width)
        for row in range(2 * width):
            x[row, row // 2 :: 60 if row % 2 else width] = number
        places, best = run_all(function, x)
        assert places.tolist() == expected(name, x).tolist(), number
        assert (np.isnan(best) if np.isnan(number) else best == number).all(), number


@every_name
@pytest.mark.parametrize("valid", [(3, 17), (5, 1), (1, 37), (5, 37)], ids=str)
def test_only_the_valid_part_is_looked_at(name: str, valid: tuple[int, int]) -> None:
    function = kernel(
        f"""
        t = pl.load(x, [0, 0], [5, 37], valid_shape=[rows, columns])
        out = pl.store(pl.{name}(t * 2.0, pl.create_tile([5, 37], dtype=pl.FP32)), [0, 0], out)
        """,
        x=tensor(pl.FP32, 5, 37),
        rows=scalar(pl.INDEX),
        columns=scalar(pl.INDEX),
        out=out(pl.INT32, *shape_of(name, 5, 37)),
    )
    x = drawn(pl.FP32, 5, 37)
    want = np.full(shape_of(name, 5, 37), -1, np.int32)
    part = expected(name, x[: valid[0], : valid[1]])
    want[: part.shape[0], : part.shape[1]] = part
    assert run(function, x, *valid, fill=-1).tolist() == want.tolist()


@every_name
@pytest.mark.parametrize("dtype", [pl.FP32, pl.INT8, pl.FP16], ids=str)
def test_tensors_of_any_extents_are_searched_block_by_block(name: str, dtype: DataType) -> None:
    result = ["M", 1] if name.startswith("row") else [1, "N"]
    function = kernel(
        f"out = pl.assemble(out, pl.{name}(x), [0, 0])",
        x=f"pl.Tensor[[pl.dynamic('M'), pl.dynamic('N')], pl.{dtype.symbol}]",
        out="pl.Out[pl.Tensor[[" + ", ".join(f"pl.dynamic('{e}')" if e != 1 else "1" for e in result) + "], pl.INT32]]",
    )
    for shape in ((3, 5), (70, 3000), (200, 300)):
        x = drawn(dtype, *shape, seed=2)
        if dtype.is_float():
            x[1, shape[1] // 2 :] = np.nan
            x[shape[0] // 2 :, 1] = np.nan
        given = np.zeros(shape_of(name, *shape), np.int32)
        launch(function, x, given)
        assert given.tolist() == expected(name, x).tolist(), shape


@every_name
def test_where_nothing_is_valid_there_is_no_position(name: str) -> None:
    function = kernel(
        f"""
        t = pl.load(x, [0, 0], [4, 8], valid_shape=[rows, columns])
        out = pl.store(pl.{name}(t, pl.create_tile([4, 8], dtype=pl.FP32)), [0, 0], out)
        """,
        x=tensor(pl.FP32, 4, 8),
        rows=scalar(pl.INDEX),
        columns=scalar(pl.INDEX),
        out=inout(pl.INT32, *shape_of(name, 4, 8)),
    )
    given = np.zeros(shape_of(name, 4, 8), np.int32)
    extents = (4, 0) if name.startswith("row") else (0, 8)
    with pytest.raises(ExecutionError, match="no element to choose"):
        launch(function, drawn(pl.FP32, 4, 8), *extents, given)


@every_name
def test_an_axis_without_elements_is_refused(name: str) -> None:
    extents = [4, 0] if name.startswith("row") else [0, 8]
    body = f"""
        t = pl.load(x, [0, 0], [4, 8], valid_shape={extents})
        r = pl.{name}(t, pl.create_tile([4, 8], dtype=pl.FP32))
    """
    with pytest.raises(ShapeMismatchError, match="no element to choose"):
        kernel(body, x=tensor(pl.FP32, 4, 8))


@every_name
def test_tiles_bring_scratch_along(name: str) -> None:
    with pytest.raises(OperandError, match="tmp_tile is missing") as raised:
        kernel(f"r = pl.tile.{name}(tile=pl.load(x, [0, 0], [4, 8]))", x=tensor(pl.FP32, 4, 8))
    assert isinstance(raised.value, TypeError)


@every_name
def test_tensors_bring_no_scratch_along(name: str) -> None:
    with pytest.raises(MixedKindsError):
        kernel(f"r = pl.{name}(x, pl.create_tile([4, 8], dtype=pl.FP32))", x=tensor(pl.FP32, 4, 8))


def test_the_scratch_of_rows_is_like_them_and_that_of_columns_anything() -> None:
    body = "r = pl.{}(pl.load(x, [0, 0], [4, 8]), pl.create_tile([1, 8], dtype=pl.FP32))"
    with pytest.raises(ShapeMismatchError, match="tmp_tile needs the shape"):
        kernel(body.format("row_argmax"), x=tensor(pl.FP32, 4, 8))
    kernel(body.format("col_argmax"), x=tensor(pl.FP32, 4, 8))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int32, torch.int64], ids=str)
def test_the_largest_element_and_the_few_largest_are_found_in_one_kernel(dtype: torch.dtype) -> None:
    @pl.jit
    def route(x: pl.Tensor, first: pl.Out[pl.Tensor], some: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [0, 0], [8, 128])
            pl.store(pl.argmax(t, axis=-1), [0], first)
            pl.store(pl.topk(t, 2, axis=-1)[0], [0, 0], some)

    x = torch.stack([torch.randperm(128) for _ in range(8)]).to(dtype)
    first, some = torch.zeros(8, dtype=torch.int32), torch.zeros(8, 2, dtype=dtype)
    route(x, first, some)
    assert torch.equal(first, x.argmax(-1).int()) and torch.equal(some, x.topk(2).values)
