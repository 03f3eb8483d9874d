"""Clones and extracts: tensors repeated to fill others, parts of tiles."""

from __future__ import annotations

import numpy as np
import pytest
from ops.kernels import counting, inout, kernel, launch, out, run, scalar, tensor, type_of
from ops.test_shape import from_tile

import tilewright.language as pl
from tilewright.core.enums import MemorySpace
from tilewright.core.types import TileType
from tilewright.dtypes import DataType
from tilewright.errors import DTypeMismatchError, ExecutionError, OutOfBoundsError, ShapeMismatchError

pytestmark = pytest.mark.usefixtures("on_target")

SHAPES = [((1, 3, 40), (4, 3, 40)), ((4, 1, 40), (4, 3, 40)), ((4, 3, 1), (4, 3, 40)), ((4, 3, 40), (4, 3, 40))]
SMALL = [((1, 1, 1), (1, 1, 5)), ((1, 1, 1), (1, 1, 1))]


@pytest.mark.parametrize(("source", "into"), SHAPES + SMALL)
@pytest.mark.parametrize("dtypes", [(pl.FP32, pl.FP32), (pl.BF16, pl.FP32), (pl.INT8, pl.INT32), (pl.INT16, pl.INT16)])
def test_a_tensor_is_repeated_along_its_axis_of_one(
    source: tuple[int, ...], into: tuple[int, ...], dtypes: tuple[DataType, DataType]
) -> None:
    body = "out = pl.expand_clone(x, out)"
    function = kernel(body, x=tensor(dtypes[0], *source), out=out(dtypes[1], *into))
    x = counting(*source, dtype=dtypes[0])
    np.testing.assert_array_equal(run(function, x).astype(np.float32), np.broadcast_to(x.astype(np.float32), into))


@pytest.mark.parametrize("view", ["x", "pl.slice(x, [a, b, c], [0, 0, 0])"])
def test_extents_that_only_the_program_knows(view: str) -> None:
    body = f"pl.expand_clone({view}, pl.slice(y, [d, b, c], [0, 0, 0]))"
    numbers = dict.fromkeys("abcd", scalar(pl.INDEX))
    function = kernel(body, x=tensor(pl.FP32, 1, 3, 5), **numbers, y=inout(pl.FP32, 4, 3, 5))
    for extents in [(1, 3, 5, 4), (1, 3, 5, 1), (1, 3, 5, 0)]:
        y, want = np.zeros((4, 3, 5), np.float32), np.zeros((4, 3, 5), np.float32)
        want[: extents[3]] = counting(1, 3, 5)
        launch(function, counting(1, 3, 5), *extents, y)
        np.testing.assert_array_equal(y, want)


def test_the_valid_part_is_written() -> None:
    body = "pl.expand_clone(pl.slice(x, [1, 3, 4], [0, 0, 0], valid_shape=[1, n, 2]), y)"
    function = kernel(body, x=tensor(pl.FP32, 1, 3, 4), n=scalar(pl.INDEX), y=inout(pl.FP32, 2, 3, 4))
    y, want = np.full((2, 3, 4), -1, np.float32), np.full((2, 3, 4), -1, np.float32)
    want[:, :2, :2] = counting(1, 3, 4)[:, :2, :2]
    launch(function, counting(1, 3, 4), 2, y)
    np.testing.assert_array_equal(y, want)


def test_a_part_of_a_tensor_fills_the_whole_of_it() -> None:
    y = counting(3, 2, 4)
    launch(kernel("pl.expand_clone(pl.slice(y, [1, 2, 4], [1, 0, 0]), y)", y=inout(pl.FP32, 3, 2, 4)), y)
    np.testing.assert_array_equal(y, np.broadcast_to(counting(3, 2, 4)[1:2], (3, 2, 4)))


def test_extents_that_do_not_meet_are_refused_when_it_runs() -> None:
    body = "pl.expand_clone(pl.slice(x, [n, 3, 4], [0, 0, 0]), y)"
    function = kernel(body, x=tensor(pl.FP32, 2, 3, 4), n=scalar(pl.INDEX), y=inout(pl.FP32, 4, 3, 4))
    with pytest.raises(ExecutionError, match="cannot be repeated"):
        launch(function, counting(2, 3, 4), 2, counting(4, 3, 4))


@pytest.mark.parametrize(
    ("source", "into", "error", "message"),
    [
        (tensor(pl.FP32, 3, 4), inout(pl.FP32, 3, 4), ShapeMismatchError, "takes 3-D tensors"),
        (tensor(pl.FP32, 2, 3, 4), inout(pl.FP32, 4, 3, 4), ShapeMismatchError, "cannot be repeated"),
        (tensor(pl.FP32, 1, 1, 4), inout(pl.FP32, 4, 3, 4), ShapeMismatchError, "repeated along two axes"),
        (tensor(pl.FP32, 1, 3, 4), inout(pl.BF16, 4, 3, 4), DTypeMismatchError, "fp32 elements cannot go into"),
    ],
)
def test_what_cannot_be_cloned(source: str, into: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        kernel("y = pl.expand_clone(x, y)", x=source, y=into)


def test_a_part_of_a_tile_is_extracted() -> None:
    result = from_tile("pl.tile.extract(a, 1, 2, [2, 3], target_memory=pl.Mem.Left)", counting(4, 6), 2, 3)
    np.testing.assert_array_equal(result, counting(4, 6)[1:3, 2:5])


@pytest.mark.parametrize(("n", "m"), [(0, 0), (2, 3), (1, 2)])
def test_an_extract_is_valid_where_its_tile_is(n: int, m: int) -> None:
    body = """
    a = pl.load(x, [0, 0], [4, 6], valid_shape=[3, 4])
    out = pl.store(pl.tile.extract(a, n, m, [2, 3], target_memory=pl.Mem.Mat), [0, 0], out)
    """
    numbers = {"n": scalar(pl.INDEX), "m": scalar(pl.INDEX)}
    function = kernel(body, x=tensor(pl.FP32, 4, 6), **numbers, out=out(pl.FP32, 2, 3))
    want = np.full((2, 3), -1, np.float32)
    live = counting(4, 6)[:3, :4][n : n + 2, m : m + 3]
    want[: live.shape[0], : live.shape[1]] = live
    np.testing.assert_array_equal(run(function, counting(4, 6), n, m, fill=-1), want)


def test_an_extract_lies_in_the_memory_it_was_asked_for() -> None:
    body = "r = pl.tile.extract(pl.load(x, [0, 0], [4, 6]), 0, 0, [4, 3], target_memory=pl.Mem.Right)"
    type_ = type_of(kernel(body, x=tensor(pl.FP32, 4, 6)), "r")
    assert isinstance(type_, TileType) and type_.memory is MemorySpace.Right


def test_adding_to_an_extract_leaves_its_tile_alone() -> None:
    body = """
    a = pl.load(x, [0, 0], [4, 4])
    acc = pl.matmul(a, a)
    part = pl.tile.extract(acc, 0, 0, [4, 2], target_memory=pl.Mem.Acc)
    pl.matmul_acc(part, a, pl.slice(a, [4, 2], [0, 0]))
    out = pl.store(acc, [0, 0], out)
    """
    x = counting(4, 4)
    np.testing.assert_array_equal(run(kernel(body, x=tensor(pl.FP32, 4, 4), out=out(pl.FP32, 4, 4)), x), x @ x)


def test_an_extract_outside_its_tile_is_refused() -> None:
    for place in ("3, 0", "0, 4", "-1, 0"):
        with pytest.raises(OutOfBoundsError, match="lie outside"):
            from_tile(f"pl.tile.extract(a, {place}, [2, 3], target_memory=pl.Mem.Left)", counting(4, 6), 2, 3)
    with pytest.raises(ShapeMismatchError, match="2-D tile"):
        from_tile("pl.tile.extract(a, 0, 0, [2], target_memory=pl.Mem.Left)", counting(4), 2)


def test_an_extract_outside_its_tile_is_refused_when_it_runs() -> None:
    body = "r = pl.tile.extract(pl.load(x, [0, 0], [4, 6]), n, 0, [2, 6], target_memory=pl.Mem.Left)"
    function = kernel(
        f"{body}\nout = pl.store(r, [0, 0], out)", x=tensor(pl.FP32, 4, 6), n=scalar(pl.INDEX), out=out(pl.FP32, 2, 6)
    )
    with pytest.raises(ExecutionError, match="does not fit"):
        run(function, counting(4, 6), 3)
