"""Generators: numbers that count, ones in a triangle, random bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from ops.kernels import Array, kernel, out, run, scalar, tensor

import tilewright.language as pl
from tilewright.dtypes import DataType
from tilewright.errors import AttributeValueError, DTypeMismatchError, KernelError, NotStaticError, ShapeMismatchError
from tilewright.ops.generate import COUNTED, ONES

pytestmark = pytest.mark.usefixtures("on_target")

_torch: Any = torch


@pytest.mark.parametrize("dtype", sorted(COUNTED, key=str), ids=str)
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("first", ["5", "n"])
def test_numbers_count_and_wrap_around(dtype: DataType, descending: bool, first: str) -> None:
    start = int(dtype.limits[descending ^ 1]) + (3 if descending else -3)
    given = first if first == "n" else str(start)
    function = kernel(
        f"""
        t = pl.tile.ci({given}, [1, 75], dtype=pl.{dtype.symbol}, descending={descending})
        out = pl.store(t, [0, 0], out)
        out = pl.assemble(out, pl.arange({given}, [1, 75], pl.{dtype.symbol}, {descending}), [1, 0])
        out = pl.assemble(out, pl.tensor.arange({given}, [1, 75], pl.{dtype.symbol}, {descending}), [2, 0])
        out = pl.store(pl.tile.arange({given}, [1, 75], pl.{dtype.symbol}, {descending}), [3, 0], out)
        """,
        n=scalar(dtype),
        out=out(dtype, 4, 75),
    )
    mask = (1 << dtype.bits) - 1
    numbers = [(start - k if descending else start + k) & mask for k in range(75)]
    wrapped: Any = np.array([numbers] * 4, np.uint64).astype(f"uint{dtype.bits}")
    want = wrapped.view(dtype.numpy)
    assert run(function, start).tolist() == want.tolist()


@pytest.mark.parametrize(
    ("use", "error"),
    [
        ("pl.arange(0, [2, 64])", ShapeMismatchError),
        ("pl.tile.ci(0, [64, 1])", ShapeMismatchError),
        ("pl.tile.ci(0, [1, n])", NotStaticError),
        ("pl.tile.ci(0, [1, 64], dtype=pl.FP32)", DTypeMismatchError),
        ("pl.tile.ci(n, [1, 64], dtype=pl.INT32)", DTypeMismatchError),
        ("pl.tile.ci(-1, [1, 64], dtype=pl.UINT16)", KernelError),
        ("pl.tri(0, [2, 3, 4])", ShapeMismatchError),
        ("pl.tri(0, [n, 4])", NotStaticError),
        ("pl.tri(0, [4, 4], valid_shape=[5, 4])", ShapeMismatchError),
        ("pl.tri(0, [4, 4], valid_shape=[0, 4])", ShapeMismatchError),
        ("pl.tri(0, [4, 4], dtype=pl.INT64)", DTypeMismatchError),
        ("pl.tri(m, [4, 4])", DTypeMismatchError),
        ("pl.random(0, 0, 0, 0, 0, 0, [4, 4], rounds=8)", AttributeValueError),
        ("pl.random(0, 0, 0, 0, 0, 0, [4])", ShapeMismatchError),
        ("pl.random(0, 0, 0, 0, 0, 0, [4, n])", NotStaticError),
        ("pl.random(0, 0, 0, 0, 0, 0, [4, 4], dtype=pl.FP32)", DTypeMismatchError),
        ("pl.random(0, 0, 4294967296, 0, 0, 0, [4, 4])", DTypeMismatchError),
        ("pl.random(m, 0, 0, 0, 0, 0, [4, 4])", DTypeMismatchError),
    ],
)
def test_what_cannot_be_generated_is_refused(use: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        kernel(f"t = {use}", n=scalar(pl.INDEX), m=scalar(pl.INT16))


@pytest.mark.parametrize("dtype", sorted(ONES, key=str), ids=str)
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("shape", [(7, 37), (20, 5), (1, 1)], ids=str)
def test_ones_fill_a_triangle(dtype: DataType, upper: bool, shape: tuple[int, int]) -> None:
    lines = [
        f"out = pl.store(pl.tri({d}, {list(shape)}, dtype=pl.{dtype.symbol}, upper={upper}), [{row}, 0], out)"
        for row, d in zip(range(0, 9 * shape[0], shape[0]), (0, 1, -1, 3, -3, 40, -40, "n", "m"), strict=True)
    ]
    function = kernel("\n".join(lines), n=scalar(pl.INT32), m=scalar(pl.INDEX), out=out(dtype, 9 * shape[0], shape[1]))
    side = _torch.triu if upper else _torch.tril
    ones = torch.ones(shape)
    diagonals = (0, 1, -1, 3, -3, 40, -40, 2, -(1 << 31))
    want = np.concatenate([side(ones, max(d, -100)).numpy() for d in diagonals])
    assert run(function, 2, -(1 << 31)).astype(np.float64).tolist() == want.tolist()


def test_a_triangle_is_written_where_it_is_valid() -> None:
    function = kernel(
        "out = pl.store(pl.tri(1, [8, 40], valid_shape=[5, 20], dtype=pl.FP32), [0, 0], out)", out=out(pl.FP32, 8, 40)
    )
    want = np.full((8, 40), 7.0)
    want[:5, :20] = torch.tril(torch.ones(5, 20), 1).numpy()
    assert run(function, fill=7).tolist() == want.tolist()


def philox(key: list[int], counter: list[int], rounds: int) -> list[int]:
    """Return one block, from the paper's own words."""
    mask = 0xFFFFFFFF
    a, b, c, d = counter
    k, m = key
    for _ in range(rounds):
        x, y = a * 0xD2511F53, c * 0xCD9E8D57
        a, b, c, d = (y >> 32) ^ b ^ k, y & mask, (x >> 32) ^ d ^ m, x & mask
        k, m = (k + 0x9E3779B9) & mask, (m + 0xBB67AE85) & mask
    return [a, b, c, d]


def words(key: list[int], counter: list[int], shape: tuple[int, int], rounds: int) -> Array:
    """Return the words of a matrix in the device's order."""
    total = sum(word << (32 * place) for place, word in enumerate(counter))
    base, rows = 0, list[list[int]]()
    for _ in range(shape[0]):
        row = list[int]()
        for column in range(shape[1]):
            run_of_256, rest = divmod(column, 256)
            at = (total + base + 64 * run_of_256 + rest // 4) % (1 << 128)
            split = [(at >> (32 * place)) & 0xFFFFFFFF for place in range(4)]
            row.append(philox(key, split, rounds)[rest % 4])
        rows.append(row)
        base += 64 * (-(-shape[1] // 256) - 1) + (shape[1] - 1) % 64 + 1
    return np.array(rows, np.uint32)


KNOWN = [
    (10, [0] * 2, [0] * 4, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
    (10, [-1] * 2, [-1] * 4, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
    (7, [0] * 2, [0] * 4, [0x5F6FB709, 0x0D893F64, 0x4F121F81, 0x4F730A48]),
]
"""Answers that the authors of Philox publish with it."""


@pytest.mark.parametrize(("rounds", "key", "counter", "want"), KNOWN)
def test_random_words_are_the_published_ones(rounds: int, key: list[int], counter: list[int], want: list[int]) -> None:
    given = ", ".join(map(str, [*key, *counter]))
    function = kernel(
        f"out = pl.store(pl.tile.random({given}, [1, 4], rounds={rounds}), [0, 0], out)", out=out(pl.UINT32, 1, 4)
    )
    assert run(function).tolist() == [want]


@pytest.mark.parametrize("shape", [(3, 512), (5, 100), (4, 1), (3, 300), (2, 67), (1, 8)], ids=str)
@pytest.mark.parametrize("rounds", [7, 10])
@pytest.mark.parametrize("dtype", [pl.UINT32, pl.INT32], ids=str)
def test_random_bits_come_in_the_order_of_the_device(shape: tuple[int, int], rounds: int, dtype: DataType) -> None:
    options = f"dtype=pl.{dtype.symbol}, rounds={rounds}"
    function = kernel(
        f"""
        out = pl.store(pl.tile.random(a, 7, b, -1, 0xFFFFFFFF, 4294967295, {list(shape)}, {options}), [0, 0], out)
        more = pl.random(a, 7, b, -1, 0xFFFFFFFF, 4294967295, {list(shape)}, {options})
        out = pl.assemble(out, more, [{shape[0]}, 0])
        """,
        a=scalar(pl.INT32),
        b=scalar(pl.UINT32),
        out=out(dtype, 2 * shape[0], shape[1]),
    )
    near = 0xFFFFFFF0
    want: Any = words([(-5) & 0xFFFFFFFF, 7], [near, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF], shape, rounds)
    twice: Any = np.concatenate([want, want])
    twice = twice.view(dtype.numpy)
    assert run(function, -5, near).tolist() == twice.tolist()


@pytest.mark.parametrize("valid", [(3, 100), (4, 300), (2, 256), (0, 5), (3, 0), (1, 1)], ids=str)
def test_random_bits_follow_the_valid_columns(valid: tuple[int, int]) -> None:
    function = kernel(
        "t = pl.tile.random(1, 2, 3, 4, 5, 6, [4, 300], valid_shape=[m, n])\nout = pl.store(t, [0, 0], out)",
        m=scalar(pl.INDEX),
        n=scalar(pl.INDEX),
        out=out(pl.UINT32, 4, 300),
    )
    want = np.full((4, 300), 9, np.uint32)
    if all(valid):
        want[: valid[0], : valid[1]] = words([1, 2], [3, 4, 5, 6], valid, 10)
    assert run(function, *valid, fill=9).tolist() == want.tolist()


def test_generated_tiles_are_operands_like_any_others() -> None:
    function = kernel(
        """
        a = pl.load(x, [0, 0], [8, 32])
        kept = pl.mul(a, pl.tri(0, [8, 32], dtype=pl.FP32))
        counts = pl.cast(pl.tile.arange(0, [1, 32]), pl.FP32)
        out = pl.store(pl.add(kept, counts), [0, 0], out)
        """,
        x=tensor(pl.FP32, 8, 32),
        out=out(pl.FP32, 8, 32),
    )
    x = np.random.default_rng(0).standard_normal((8, 32)).astype(np.float32)
    assert run(function, x).tolist() == (np.tril(x) + np.arange(32, dtype=np.float32)).tolist()
