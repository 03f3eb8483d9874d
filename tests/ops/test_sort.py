"""Sorting: runs of 32, lists merged, and both together as torch sorts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from ops.kernels import Array, inout, kernel, launch, out, run, scalar, tensor

import tilewright.language as pl
from tilewright.dtypes import DataType
from tilewright.errors import AttributeValueError, DTypeMismatchError, ExecutionError, ShapeMismatchError

pytestmark = pytest.mark.usefixtures("on_target")

_torch: Any = torch


def in_order(values: Array, indices: Array) -> list[int]:
    """Return where the values go: NaN first, then the largest; of equal ones the smallest index."""

    def before(at: int) -> tuple[bool, float, int]:
        value = float(values[at])
        return (value == value, 0.0 if value != value else -value, int(indices[at]))

    return sorted(range(len(values)), key=before)


def paired(values: Array, indices: Array, order: list[int]) -> Array:
    """Return pairs of values and the bits of their indices."""
    kept: Any = indices[order].astype(np.uint16 if values.dtype.itemsize == 2 else np.uint32)
    pairs = np.empty(2 * len(order), values.dtype)
    pairs[::2], pairs[1::2] = values[order], kept.view(values.dtype)
    return pairs


def sorted_runs(x: Array, index: Array) -> Array:
    rows = [
        np.concatenate([
            paired(row[at : at + 32], i[at : at + 32], in_order(row[at : at + 32], i[at : at + 32]))
            for at in range(0, len(row), 32)
        ])
        for row, i in zip(x, index, strict=True)
    ]  # fmt: skip
    return np.stack(rows)


def bits(array: Any) -> Any:
    """Return elements as integers: an index may look like NaN."""
    return array.view(np.uint16 if array.itemsize == 2 else np.uint32).tolist()


def drawn(dtype: DataType, kind: str, *shape: int) -> Array:
    rng = np.random.default_rng(len(kind))
    if kind == "ordinary":
        return rng.standard_normal(shape).astype(dtype.numpy)
    if kind == "equal":
        return rng.integers(-2, 3, shape).astype(dtype.numpy)
    special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.5], dtype.numpy)
    return rng.choice(special, shape)


@pytest.mark.parametrize("dtype", [pl.FP32, pl.FP16], ids=str)
@pytest.mark.parametrize("kind", ["ordinary", "equal", "special"])
@pytest.mark.parametrize("shape", [(2, 32), (3, 64), (2, 576), (1, 45)], ids=str)
def test_runs_of_32_come_in_descending_order(dtype: DataType, kind: str, shape: tuple[int, int]) -> None:
    function = kernel(
        f"""
        pairs = pl.sort32(pl.load(x, [0, 0], {list(shape)}), pl.load(i, [0, 0], {list(shape)}))
        out = pl.store(pairs, [0, 0], out)
        out = pl.assemble(out, pl.sort32(x, i), [{shape[0]}, 0])
        """,
        x=tensor(dtype, *shape),
        i=tensor(pl.UINT32, *shape),
        out=out(dtype, 2 * shape[0], 2 * shape[1]),
    )
    x, index = drawn(dtype, kind, *shape), np.random.default_rng(1).permuted(np.arange(shape[1], dtype=np.uint32))
    indices = np.tile(index, (shape[0], 1))
    want = sorted_runs(x, indices)
    assert bits(run(function, x, indices)) == bits(np.concatenate([want, want]))


@pytest.mark.parametrize("columns", [0, 5, 32, 40, 300])
def test_only_the_valid_part_is_sorted(columns: int) -> None:
    function = kernel(
        """
        a = pl.load(x, [0, 0], [2, 320], valid_shape=[2, n])
        pairs = pl.sort32(a, pl.load(i, [0, 0], [2, 320], valid_shape=[2, n]))
        out = pl.store(pairs, [0, 0], out)
        """,
        x=tensor(pl.FP32, 2, 320),
        i=tensor(pl.UINT32, 2, 320),
        n=scalar(pl.INDEX),
        out=out(pl.FP32, 2, 640),
    )
    x, index = drawn(pl.FP32, "ordinary", 2, 320), np.tile(np.arange(320, dtype=np.uint32), (2, 1))
    want = np.zeros((2, 640), np.float32)
    if columns:
        want[:, : 2 * columns] = sorted_runs(x[:, :columns], index[:, :columns])
    assert bits(run(function, x, index, columns)) == bits(want)


def merged(lists: list[Array]) -> Array:
    """Return one list of pairs, always the largest first pair of those left."""
    queues = [[*np.reshape(each, (len(each) // 2, 2))] for each in lists]
    result: list[Any] = []
    while any(queues):
        left = [queue for queue in queues if queue]
        best = left[0]
        for queue in left[1:]:
            a, b = float(best[0][0]), float(queue[0][0])
            best = queue if a == a and (b != b or b > a) else best
        result.append(best.pop(0))
    return np.reshape(np.array(result, lists[0].dtype), (2 * len(result),))


def list_of(dtype: DataType, kind: str, pairs: int, seed: int) -> Array:
    """Return a sorted list of pairs whose indices say which list it was."""
    values = np.roll(drawn(dtype, kind, 1, max(pairs, 1))[0], seed)[:pairs]
    indices = np.arange(pairs, dtype=np.uint32) + 1000 * seed
    return paired(values, indices, in_order(values, indices))


@pytest.mark.parametrize("dtype", [pl.FP32, pl.FP16], ids=str)
@pytest.mark.parametrize("kind", ["ordinary", "equal", "special"])
@pytest.mark.parametrize("length", ["64", "128", "n"])
def test_four_runs_become_one(dtype: DataType, kind: str, length: str) -> None:
    given = 64 if length == "n" else int(length)
    function = kernel(
        f"""
        out = pl.store(pl.mrgsort(pl.load(x, [0, 0], [1, 1160]), block_len={length}), [0, 0], out)
        out = pl.assemble(out, pl.mrgsort(x, block_len={length}), [1, 0])
        """,
        x=tensor(dtype, 1, 1160),
        n=scalar(pl.INDEX),
        out=out(dtype, 2, 1160),
    )
    lists = [list_of(dtype, kind, given // 2, seed) for seed in range(1160 // given)]
    rest = np.arange(1160 - given * len(lists)).astype(dtype.numpy)
    groups = [merged(lists[at : at + 4]) for at in range(0, len(lists) // 4 * 4, 4)]
    want = np.concatenate([*groups, *lists[len(lists) // 4 * 4 :], rest])
    x = np.reshape(np.concatenate([*lists, rest]), (1, 1160))
    assert bits(run(function, x, 64)) == bits(np.stack([want, want]))


@pytest.mark.parametrize("dtype", [pl.FP32, pl.FP16], ids=str)
@pytest.mark.parametrize("sizes", [(32, 32), (7, 50), (40, 8, 16), (16, 1, 64, 9)], ids=str)
@pytest.mark.parametrize("exhausted", [False, True])
def test_lists_become_one(dtype: DataType, sizes: tuple[int, ...], exhausted: bool) -> None:
    names, total = [f"src{number}" for number in range(len(sizes))], 2 * sum(sizes)
    tiles = [f"{name}=pl.load({name}, [0, 0], [1, {2 * size}])" for name, size in zip(names, sizes, strict=True)]
    scratch = f"tmp=pl.create_tile([1, {total}], dtype=pl.{dtype.symbol})"
    function = kernel(
        f"""
        out = pl.store(pl.mrgsort({", ".join(tiles)}, {scratch}, exhausted={exhausted}), [0, 0], out)
        out = pl.assemble(out, pl.tensor.mrgsort({", ".join(names)}, exhausted={exhausted}), [1, 0])
        """,
        **{name: tensor(dtype, 1, 2 * size) for name, size in zip(names, sizes, strict=True)},
        out=out(dtype, 2, total),
    )
    for kind in ("ordinary", "equal", "special"):
        lists = [list_of(dtype, kind, size, seed) for seed, size in enumerate(sizes)]
        want = merged(lists)
        given = [np.reshape(each, (1, len(each))) for each in lists]
        assert bits(run(function, *given)) == bits(np.stack([want, want])), kind


def test_a_row_is_sorted_as_torch_sorts_it() -> None:
    function = kernel(
        """
        pairs = pl.sort32(pl.load(x, [0, 0], [1, 2048]), pl.tile.ci(0, [1, 2048], dtype=pl.UINT32))
        pairs = pl.mrgsort(pairs, block_len=64)
        pairs = pl.mrgsort(pairs, block_len=256)
        pairs = pl.mrgsort(pairs, block_len=1024)
        out = pl.store(pairs, [0, 0], out)
        """,
        x=tensor(pl.FP32, 1, 2048),
        out=out(pl.FP32, 1, 4096),
    )
    for kind in ("ordinary", "equal", "special"):
        x = drawn(pl.FP32, kind, 1, 2048)
        values, order = _torch.sort(_torch.from_numpy(x), dim=-1, descending=True, stable=True)
        given: Any = run(function, x)
        assert given[:, ::2].tobytes() == values.numpy().tobytes()
        assert given[:, 1::2].copy().view(np.uint32).tolist() == order.tolist()


def test_the_length_of_runs_is_looked_at_when_the_program_runs() -> None:
    function = kernel(
        "out = pl.store(pl.mrgsort(pl.load(x, [0, 0], [1, 512]), block_len=n), [0, 0], out)",
        x=tensor(pl.FP32, 1, 512),
        n=scalar(pl.INDEX),
        out=inout(pl.FP32, 1, 512),
    )
    x = np.zeros((1, 512), np.float32)
    for length in (0, -64, 63, 100):
        with pytest.raises(ExecutionError, match="positive multiple of 64"):
            launch(function, x, length, np.zeros((1, 512), np.float32))


@pytest.mark.parametrize(
    ("use", "error"),
    [
        ("pl.mrgsort(a, block_len=0)", AttributeValueError),
        ("pl.mrgsort(a, block_len=96)", AttributeValueError),
        ("pl.mrgsort(a, a, block_len=64)", AttributeValueError),
        ("pl.mrgsort(a)", AttributeValueError),
        ("pl.mrgsort(a, a)", AttributeValueError),
        ("pl.mrgsort(a, a, src3=a, tmp=pl.create_tile([1, 768], dtype=pl.FP32))", AttributeValueError),
        ("pl.mrgsort(a, a, tmp=pl.create_tile([1, 256], dtype=pl.FP32))", ShapeMismatchError),
        ("pl.mrgsort(a, h, tmp=pl.create_tile([1, 512], dtype=pl.FP32))", DTypeMismatchError),
        ("pl.mrgsort(i, block_len=64)", DTypeMismatchError),
        ("pl.sort32(a, a)", DTypeMismatchError),
        ("pl.sort32(i, i)", DTypeMismatchError),
        ("pl.sort32(a, pl.slice(i, [1, 128], [0, 0]))", ShapeMismatchError),
    ],
)
def test_what_cannot_be_sorted_is_refused(use: str, error: type[Exception]) -> None:
    lines = [f"{name} = pl.load({name}0, [0, 0], [1, 256])" for name in ("a", "h", "i")]
    given = {"a0": tensor(pl.FP32, 1, 256), "h0": tensor(pl.FP16, 1, 256), "i0": tensor(pl.UINT32, 1, 256)}
    with pytest.raises(error):
        kernel("\n".join([*lines, f"r = {use}"]), **given)


@pytest.mark.parametrize("shape", [(3, 45), (2, 4500), (1, 64)], ids=str)
def test_tensors_of_any_extents_are_sorted_block_by_block(shape: tuple[int, int]) -> None:
    extents = "pl.dynamic('M'), pl.dynamic('N')"
    function = kernel(
        "out = pl.assemble(out, pl.sort32(x, i), [0, 0])",
        x=f"pl.Tensor[[{extents}], pl.FP32]",
        i=f"pl.Tensor[[{extents}], pl.UINT32]",
        out=inout(pl.FP32, shape[0], 2 * shape[1]),
    )
    x, index = drawn(pl.FP32, "equal", *shape), np.tile(np.arange(shape[1], dtype=np.uint32), (shape[0], 1))
    given = np.zeros((shape[0], 2 * shape[1]), np.float32)
    launch(function, x, index, given)
    assert bits(given) == bits(sorted_runs(x, index))


@pytest.mark.parametrize("rows", [1, 3])
def test_rows_of_tensors_are_merged_one_by_one(rows: int) -> None:
    function = kernel(
        """
        both = pl.mrgsort(x, y)
        out = pl.assemble(out, both, [0, 0])
        four = pl.mrgsort(z, block_len=64)
        out = pl.assemble(out, four, [0, 96])
        """,
        x="pl.Tensor[[pl.dynamic('M'), 64], pl.FP32]",
        y="pl.Tensor[[pl.dynamic('M'), 32], pl.FP32]",
        z="pl.Tensor[[pl.dynamic('M'), 256], pl.FP32]",
        out=inout(pl.FP32, rows, 352),
    )
    lists = [[list_of(pl.FP32, "equal", size, 3 * row + at) for at, size in enumerate((32, 16))] for row in range(rows)]
    runs = [[list_of(pl.FP32, "ordinary", 32, 4 * row + at) for at in range(4)] for row in range(rows)]
    want = [np.concatenate([merged(pair), merged(four)]) for pair, four in zip(lists, runs, strict=True)]
    given = np.zeros((rows, 352), np.float32)
    x, y = (np.stack([pair[which] for pair in lists]) for which in range(2))
    launch(function, x, y, np.stack([np.concatenate(four) for four in runs]), given)
    assert bits(given) == bits(np.stack(want))
