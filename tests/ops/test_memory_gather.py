"""Gathers from memory: rows and elements into tiles, windows into accumulators, rows through a block table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
import pytest
import torch as half_typed
from ops.indexed import computed, refused, sample
from ops.kernels import Array, kernel, tensor, type_of

import tilewright.language as pl
from tilewright import ir
from tilewright.core.types import TileType
from tilewright.dtypes import DataType
from tilewright.errors import (
    AttributeValueError,
    DTypeMismatchError,
    OperandError,
    OutOfBoundsError,
    ParserError,
    ShapeMismatchError,
)

np: Any = numpy  # their stubs leave most of what is used here half typed
torch: Any = half_typed
RNG = np.random.default_rng(5)
FETCHED = (pl.INT8, pl.UINT16, pl.INT32, pl.FP16, pl.BF16, pl.FP32, pl.FP8E4M3FN, pl.FP8E5M2)


def same(got: Array, want: Any) -> None:
    assert got.tobytes() == np.ascontiguousarray(want).tobytes()


def bits(shape: tuple[int, ...], dtype: DataType) -> Any:
    raw: Any = RNG.integers(0, 120, (*shape, dtype.get_byte()), dtype=np.uint8).view(dtype.numpy)
    return raw[..., 0]


@pytest.mark.parametrize("dtype", FETCHED, ids=str)
def test_rows_are_taken_by_their_index(dtype: DataType) -> None:
    x, held = bits((9, 21), dtype), np.zeros((16, 21), dtype.numpy)
    index = RNG.integers(0, 9, (1, 16)).astype(np.int32)
    for text, valid in (("[1, 16]", "[1, n]"), ("[16, 1]", "[n, 1]")):
        given = index if text == "[1, 16]" else index.T.copy()
        body = f"i = pl.load(index, [0, 0], {text}, valid_shape={valid})\nout = pl.store(pl.mgather(x, i), [0, 0], out)"
        for n in (16, 7, 0):
            want = held.copy()
            want[:n] = x[index[0, :n]]
            same(computed(body, x=x, index=given, out=held, n=n), want)


@pytest.mark.parametrize("dtype", FETCHED, ids=str)
def test_elements_are_taken_by_their_number(dtype: DataType) -> None:
    x, held = bits((6, 5, 7), dtype), np.zeros((3, 37), dtype.numpy)
    index = RNG.integers(0, x.size, (3, 37)).astype(np.int32)
    body = (
        "i = pl.load(index, [0, 0], [3, 37], valid_shape=[rows, columns])\n"
        'out = pl.store(pl.mgather(x, i, coalesce="elem"), [0, 0], out)'
    )
    for rows, columns in ((3, 37), (2, 9), (0, 1)):
        want = held.copy()
        want[:rows, :columns] = x.reshape(-1)[index[:rows, :columns]]
        same(computed(body, x=x, index=index, out=held, rows=rows, columns=columns), want)
        flat = x.reshape(-1).copy()
        same(computed(body, x=flat, index=index, out=held, rows=rows, columns=columns), want)


MODES: dict[str, Callable[[int, int], int | None]] = {
    "clamp": lambda i, n: min(i, n - 1),
    "wrap": lambda i, n: i % n,
    "zero": lambda i, n: i if i < n else None,
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("coalesce", ["row", "elem"])
@pytest.mark.parametrize("rank", [2, 3])
def test_an_index_too_large_means_what_the_mode_says(mode: str, coalesce: str, rank: int) -> None:
    x = sample(RNG, pl.FP32, *((7, 12) if rank == 2 else (2, 3, 12)))
    count = x.size if coalesce == "elem" else x.size // 12
    index = np.array([[0, count - 1, count, -1, -2, 2**31 - 1, -(2**31), 1]], np.int32)
    rows = x.reshape(-1, 12) if coalesce == "row" else x.reshape(-1, 1)
    numbers = [MODES[mode](i % 2**32, count) for i in index[0].tolist()]
    want = np.stack([np.zeros_like(rows[0]) if i is None else rows[i] for i in numbers])
    body = (
        "i = pl.load(index, [0, 0], [1, 8])\n"
        f'r = pl.mgather(x, i, "{coalesce}", gather_oob="{mode}")\nout = pl.store(r, [0, 0], out)'
    )
    shape = (8, 12) if coalesce == "row" else (1, 8)
    same(computed(body, x=x, index=index, out=np.ones(shape, np.float32)), want.reshape(shape))
    numbered = body.replace(f'"{coalesce}"', str(["row", "elem"].index(coalesce)))
    numbered = numbered.replace(f'"{mode}"', str(["undefined", *MODES].index(mode)))
    same(computed(numbered, x=x, index=index, out=np.ones(shape, np.float32)), want.reshape(shape))


@pytest.mark.parametrize("coalesce", ["row", "elem"])
def test_an_index_too_large_is_refused_unless_a_mode_is_given(coalesce: str) -> None:
    x, out = np.zeros((4, 8), np.float32), np.zeros((4, 8) if coalesce == "row" else (1, 4), np.float32)
    body = f'i = pl.load(index, [0, 0], [1, 4])\nout = pl.store(pl.mgather(x, i, coalesce="{coalesce}"), [0, 0], out)'
    for bad in (4 if coalesce == "row" else 32, -1):
        index = np.array([[0, 1, bad, 2]], np.int32)
        native, meant = refused(body, x=x, index=index, out=out)
        assert f"index {bad % 2**32} in `idx`" in native and f"index {bad % 2**32} at [" in meant


@pytest.mark.parametrize("coalesce", ["row", "elem"])
def test_matrix_memory_is_filled_by_indices_in_memory(coalesce: str) -> None:
    x = sample(RNG, pl.FP16, 40, 32)
    by_row = coalesce == "row"
    index = RNG.integers(0, 40 if by_row else x.size, (1, 16) if by_row else (16, 32)).astype(np.int32)
    scratch = "" if by_row else ", scratch=room"
    want = x[index[0]] if by_row else x.reshape(-1)[index]
    for valid in ("", ", valid_shape=[9, 20]"):
        body = (
            f'r = pl.mgather(x, index, "{coalesce}", target_memory=pl.Mem.Mat{scratch}{valid})\n'
            "out = pl.store(pl.move(r, target_memory=pl.Mem.Vec), [0, 0], out)"
        )
        expected = np.zeros((16, 32), np.float16)
        window = np.s_[:9, :20] if valid else np.s_[:, :]
        expected[window] = want[window]
        given = {"x": x, "index": index, "room": np.zeros((16, 32), np.float16)}
        same(computed(body, **given, out=np.zeros((16, 32), np.float16)), expected)


def test_rows_are_gathered_by_indices_that_a_loop_computes() -> None:
    x, index = sample(RNG, pl.FP32, 20, 16), RNG.integers(0, 10, (6, 8)).astype(np.int32)
    body = (
        "for r in pl.range(6):\n"
        "    i = pl.add(pl.load(index, [r, 0], [1, 8]), 3)\n"
        "    rows = pl.mgather(x, i)\n"
        "    out = pl.store(pl.add(rows, 1.0), [r * 8, 0], out)"
    )
    same(computed(body, x=x, index=index, out=np.zeros((48, 16), np.float32)), x[index.reshape(-1) + 3] + np.float32(1))


def test_what_was_stored_is_what_is_gathered() -> None:
    x = sample(RNG, pl.FP32, 4, 16)
    body = (
        "i = pl.load(index, [0, 0], [1, 4])\n"
        "out = pl.store(pl.mul(pl.load(x, [0, 0], [4, 16]), 2.0), [0, 0], out)\n"
        "r = pl.mgather(out, i)\n"
        "out = pl.store(r, [4, 0], out)"
    )
    index = np.array([[3, 1, 1, 0]], np.int32)
    got = computed(body, x=x, index=index, out=np.zeros((8, 16), np.float32))
    same(got, np.concatenate([x * 2, (x * 2)[index[0]]]))


def test_gathering_works_inside_scopes_on_strided_tensors_of_any_extent() -> None:
    @pl.jit
    def kernel(x: pl.Tensor, index: pl.Tensor[[1, 8], pl.INT32], out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            rows = pl.mgather(x, pl.load(index, [0, 0], [1, 8]))
            out = pl.store(rows, [0, 0], out)
        return out

    index = torch.from_numpy(RNG.integers(0, 10, (1, 8)).astype(np.int32))
    whole = torch.from_numpy(RNG.normal(size=(20, 40)).astype(np.float32))
    for x in (whole[::2, :10], whole[::2, 1:31:3], whole.t()[::3, ::2][:, :10]):
        out = torch.zeros(8, 10)
        kernel(x, index, out)
        assert torch.equal(out, x[index[0].long()])


@pytest.mark.parametrize("is_tile", [True, False])
@pytest.mark.parametrize("transpose", [True, False])
def test_windows_are_laid_side_by_side(is_tile: bool, transpose: bool) -> None:
    x = sample(RNG, pl.FP16, 30, 20)
    rows = RNG.integers(0, 27, (1, 4)).astype(np.int32)
    made = "pl.create_tile([12, 12], dtype=pl.FP16)" if is_tile else "pl.create_l1([12, 12], pl.FP16)"
    place = "[0, 3 * k]" if transpose else "[3 * k, 0]"
    body = (
        f"acc = {made}\n"
        "for k in pl.range(4):\n"
        "    first = pl.cast(pl.read(index, [0, k]), pl.INDEX)\n"
        f"    acc = pl.gather_row(acc, x, {place}, [first, 5], [3, 12], transpose={transpose})\n"
        f"out = pl.store({'acc' if is_tile else 'pl.load(acc, [0, 0], [12, 12])'}, [0, 0], out)"
    )
    want = np.concatenate([x[r : r + 3, 5:17] for r in rows[0].tolist()])
    got = computed(body, x=x, index=rows, out=np.zeros((12, 12), np.float16))
    same(got, want.T if transpose else want)


def test_a_tile_that_is_read_later_keeps_what_it_held() -> None:
    x = sample(RNG, pl.FP32, 8, 16)
    body = (
        "a = pl.load(x, [0, 0], [4, 16])\n"
        "b = pl.gather_row(a, x, [1, 0], [6, 0], [1, 16])\n"
        "out = pl.store(a, [0, 0], out)\n"
        "out = pl.store(b, [4, 0], out)"
    )
    want = np.concatenate([x[:4], x[:4]])
    want[5] = x[6]
    same(computed(body, x=x, out=np.zeros((8, 16), np.float32)), want)


def test_of_a_window_only_the_valid_part_is_copied_and_has_to_fit() -> None:
    x, held = sample(RNG, pl.FP32, 5, 8), np.ones((6, 8), np.float32)
    body = (
        "a = pl.load(out, [0, 0], [6, 8])\n"
        "a = pl.gather_row(a, x, [3, 2], [2, 3], [4, 6], valid_shape=[rows, columns])\n"
        "out = pl.store(a, [0, 0], out)"
    )
    for rows, columns in ((3, 5), (1, 2), (0, 4), (3, 0)):
        want = held.copy()
        want[3 : 3 + rows, 2 : 2 + columns] = x[2 : 2 + rows, 3 : 3 + columns]
        same(computed(body, x=x, out=held, rows=rows, columns=columns), want)
    for rows, columns in ((4, 2), (1, 6), (5, 1), (-1, 2)):
        assert len(refused(body, x=x, out=held, rows=rows, columns=columns)) == 2


PAGED = (pl.FP16, pl.BF16, pl.FP32, pl.INT8)


@pytest.mark.parametrize("dtype", PAGED, ids=str)
@pytest.mark.parametrize("is_trans", [True, False])
def test_rows_are_found_through_a_block_table(dtype: DataType, is_trans: bool) -> None:
    pool, table = bits((40, 24), dtype), np.array([3, 0, 7, 1, 9, 4], np.int32)
    index = RNG.integers(0, 24, 11).astype(np.int32)
    rows = table[index // 4] * 4 + index % 4
    want = np.zeros((16, 10), pool.dtype)
    want[:11] = pool[rows, 5:15]
    want = np.ascontiguousarray(want.T) if is_trans else want
    for listed in (index, index[None]):
        body = (
            f"r = pl.paged_gather(x, index, table, 4, 10, 16, col_off=first, is_trans={is_trans})\n"
            f"out = pl.store(pl.load(r, [0, 0], {list(want.shape)}), [0, 0], out)"
        )
        given = {"x": pool, "index": listed, "table": table if listed.ndim == 1 else table[None]}
        same(computed(body, **given, out=np.ones(want.shape, pool.dtype), first=5), want)


def test_an_index_or_a_block_outside_is_refused() -> None:
    body = (
        "r = pl.paged_gather(x, index, table, 4, 8, 4, col_off=first)\n"
        "out = pl.store(pl.load(r, [0, 0], [4, 8]), [0, 0], out)"
    )
    x, out = np.zeros((16, 8), np.float32), np.zeros((4, 8), np.float32)
    for bad, block, first, name in (
        (12, 0, 0, "`indices`"), (-1, 0, 0, "`indices`"), (3, 4, 0, "`block_table`"), (3, -1, 0, "`block_table`"),
        (3, 0, 1, "columns"), (3, 0, -1, "columns"),
    ):  # fmt: skip
        index, table = np.array([0, bad, 1], np.int32), np.array([block, 0, 0], np.int32)
        assert all(name in error for error in refused(body, x=x, index=index, table=table, out=out, first=first))


@pytest.mark.parametrize(
    ("body", "error", "match"),
    [
        ('r = pl.mgather(x, j, coalesce="col")', AttributeValueError, "`coalesce` cannot be 'col'"),
        ('r = pl.mgather(x, j, gather_oob="skip")', AttributeValueError, "`gather_oob` cannot be 'skip'"),
        ("r = pl.mgather(x, j)", ShapeMismatchError, r"an idx of \[1, R\] or \[R, 1\]"),
        ("r = pl.mgather(x, i)", OperandError, "idx must be a tile for Vec"),
        ("r = pl.mgather(x, j, 1, target_memory=pl.Mem.Mat)", OperandError, "idx must be a tensor for Mat"),
        ("r = pl.mgather(x, i, 1, target_memory=pl.Mem.Mat)", OperandError, "needs a scratch tensor"),
        ("r = pl.mgather(x, i, 1, target_memory=pl.Mem.Mat, scratch=x)", OperandError, "a tensor of its own"),
        ("r = pl.mgather(x, i, 1, target_memory=pl.Mem.Mat, scratch=h)", ShapeMismatchError, "hold fp32 elements"),
        ("r = pl.mgather(x, row, scratch=h)", OperandError, "takes no scratch tensor"),
        ("r = pl.mgather(x, row, valid_shape=[2, 4])", AttributeValueError, "valid_shape is for target_memory"),
        ("r = pl.mgather(x, row, target_memory=pl.Mem.Acc)", AttributeValueError, "fills Vec or Mat, not Acc"),
        ("r = pl.mgather(x, pl.cast(row, pl.INT16))", DTypeMismatchError, "`idx` must hold int32"),
        ("r = pl.mgather(x, pl.slice(i, [1, 8], [0, 0]), target_memory=pl.Mem.Mat)", ShapeMismatchError, "of 16 rows"),
        ("r = pl.gather_row(a, h, [0, 0], [0, 0], [1, 8])", DTypeMismatchError, "fp16 elements cannot go into fp32"),
        ("r = pl.gather_row(a, x, [0, 0], [8, 0], [1, 8])", OutOfBoundsError, "axis 0: elements 8 to 9 lie outside"),
        ("r = pl.gather_row(a, x, [0, 30], [0, 0], [8, 8], transpose=False)", OutOfBoundsError, "axis 1"),
        ("r = pl.gather_row(a, x, [0, 0], [0, 0], [4, 9], transpose=True)", OutOfBoundsError, "axis 0"),
        ("r = pl.gather_row(a, x, [0, 0], [0, 0], [4, 8], True, valid_shape=[1, 1])", AttributeValueError, "transpose"),
        ("r = pl.create_l1([pl.cast(pl.read(i, [0, 0]), pl.INDEX), 4], pl.FP32)", ParserError, "static"),
        ("r = pl.paged_gather(x, ids, ids, 4, 8, 16, is_trans=True, space=pl.Mem.Vec)", AttributeValueError, "lie in"),
        ("r = pl.paged_gather(x, ids, ids, 0, 8, 16)", AttributeValueError, "block_size must be positive"),
        ("r = pl.paged_gather(x, ids, ids, 4, 8, 15)", ShapeMismatchError, "16 indices are more than max_indices, 15"),
        ("r = pl.paged_gather(x, i, ids, 4, 8, 16)", ShapeMismatchError, r"`indices` must be \[n\] or \[1, n\]"),
        ("r = pl.paged_gather(x, ids, ids, 4, 8, 16, col_off=25)", OutOfBoundsError, "columns 25 to 33"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(body: str, error: type[ParserError], match: str) -> None:
    given = {"x": tensor(pl.FP32, 8, 32), "i": tensor(pl.INT32, 8, 32), "h": tensor(pl.FP16, 8, 32)}
    given |= {"ids": tensor(pl.INT32, 16), "d": tensor(pl.FP32, 16, 4)}
    loads = "a = pl.load(x, [0, 0], [8, 32])\nj = pl.load(i, [0, 0], [8, 32])\nrow = pl.load(i, [0, 0], [1, 32])\n"
    with pytest.raises(error, match=match):
        kernel(loads + body, **given)


def test_rows_are_as_many_as_indices_are_valid() -> None:
    function = kernel(
        "j = pl.load(i, [0, 0], [1, 32], valid_shape=[1, 9])\nr = pl.mgather(x, j)\ns = pl.mgather(x, j, 1)",
        x=tensor(pl.FP32, 8, 16),
        i=tensor(pl.INT32, 1, 32),
    )
    assert type_of(function, "r") == TileType((32, 16), pl.FP32, (9, 16))
    assert type_of(function, "s") == TileType((1, 32), pl.FP32, (1, 9))


@pytest.mark.parametrize(
    "gather", ["pl.mgather(x, i)", 'pl.mgather(x, i, gather_oob="zero")', "x[i]"], ids=["rows", "zero", "take"]
)
def test_rows_that_go_straight_to_their_store_are_those_of_a_tile(gather: str) -> None:
    x, index, held = bits((9, 21), pl.FP16), RNG.integers(0, 9, (1, 8)).astype(np.int32), bits((2, 12, 30), pl.FP16)
    body = (
        "i = pl.load(index, [0, 0], [1, 8], valid_shape=[1, n])\n"
        f"t = {gather}\nout = pl.store(t, [1, row, 4], out)\n"
        f"u = {gather}\nout = pl.store(pl.move(u, target_memory=pl.Mem.Vec), [0, row, 4], out)"
    )
    for n, row in ((8, 3), (5, 7), (0, 12)):
        got = computed(body, x=x, index=index, out=held, n=n, row=row)
        want = held.copy()
        want[:, row : row + n, 4:25] = x[index[0, :n]]
        same(got, want)
    outside = refused(body, x=x, index=index, out=held, n=8, row=5)
    assert all("store" in message for message in outside)


def test_rows_of_a_large_tensor_are_written_past_the_caches_where_they_are_aligned() -> None:
    x, index = bits((40, 1088), pl.FP32), RNG.integers(0, 40, (1, 8)).astype(np.int32)
    table = RNG.permutation(10).astype(np.int32)
    body = (
        "i = pl.load(index, [0, 0], [1, 8])\nout = pl.store(pl.mgather(x, i), [4, column], out)\n"
        "rows = pl.paged_gather(x, index, table, 4, 1088, 8)\nout = pl.assemble(out, rows, [20, column])"
    )
    held, places = np.zeros((960, 1104), np.float32), index[0]
    for column in (0, 4, 8, 12, 5):  # wherever the memory begins, one of them is aligned
        want = held.copy()
        want[4:12, column : column + 1088] = x[places]
        want[20:28, column : column + 1088] = x[table[places // 4] * 4 + places % 4]
        same(computed(body, x=x, index=index, table=table, out=held, column=column), want)


def test_rows_gathered_from_what_they_are_stored_to_are_read_first() -> None:
    x, index = bits((8, 40), pl.FP32), np.arange(8, dtype=np.int32)[::-1].reshape(1, 8).copy()
    body = "i = pl.load(index, [0, 0], [1, 8])\nout = pl.store(pl.mgather(out, i), [0, 0], out)"
    same(computed(body, index=index, out=x.copy()), x[::-1])


@pl.program
class Twice:
    @pl.function(type=pl.FunctionType.InCore)
    def turned(
        self,
        x: pl.Tensor[[8, 40], pl.FP32],
        index: pl.Tensor[[1, 8], pl.INT32],
        out: pl.InOut[pl.Tensor[[8, 40], pl.FP32]],
    ) -> pl.Tensor[[8, 40], pl.FP32]:
        return pl.store(pl.mgather(x, pl.load(index, [0, 0], [1, 8])), [0, 0], out)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self, index: pl.Tensor[[1, 8], pl.INT32], x: pl.InOut[pl.Tensor[[8, 40], pl.FP32]]
    ) -> pl.Tensor[[8, 40], pl.FP32]:
        return self.turned(x, index, x)  # pyright: ignore[reportCallIssue, reportUnknownVariableType]


def test_one_buffer_given_twice_is_read_before_it_is_written() -> None:
    x, index = bits((8, 40), pl.FP32), np.arange(8, dtype=np.int32)[::-1].reshape(1, 8).copy()
    want = x[::-1].copy()
    ir.compile(Twice, platform="cpu")(index, x)
    same(x, want)


FILLED = {
    "tile": ("pl.create_tile([8, 21], dtype=pl.FP16)", "acc"),
    "tensor": ("pl.create_l1([8, 21], pl.FP16)", "pl.load(acc, [0, 0], [8, 21])"),
}


@pytest.mark.parametrize("kind", FILLED)
def test_a_buffer_filled_row_by_row_is_stored_as_one(kind: str) -> None:
    made, whole = FILLED[kind]
    body = (
        f"acc = {made}\nfor k in pl.range(0, 8, 2):\n    n = pl.read(index, [0, k])\n"
        f"    acc = pl.gather_row(acc, x, [k, 0], [n, 2], [2, 21])\nout = pl.store({whole}, [row, 4], out)"
    )
    x, index, held = bits((9, 30), pl.FP16), RNG.integers(0, 8, (1, 8)).astype(np.int32), bits((12, 30), pl.FP16)
    want = held.copy()
    want[3:11, 4:25] = np.concatenate([x[n : n + 2, 2:23] for n in index[0, ::2]])
    same(computed(body, x=x, index=index, out=held, row=3), want)
    for outside in (5, -1):
        assert all("store" in message for message in refused(body, x=x, index=index, out=held, row=outside))
    own = body.replace("acc, x,", "acc, out,")
    want[3:11, 4:25] = np.concatenate([held[n : n + 2, 2:23] for n in index[0, ::2]])
    same(computed(own, index=index, out=held, row=3), want)
    index[0, 6] = 8
    assert all("fit" in message for message in refused(body, x=x, index=index, out=held, row=0))
