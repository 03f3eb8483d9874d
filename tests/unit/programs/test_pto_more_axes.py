"""Ops on more axes, bytes and lists that are valid in part, as PTO text: read back, they give every bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from property.exported import read_back_text

Case = tuple[str, str, list[Any]]
rng = np.random.default_rng(0)
CUBE = "x: pl.Tensor[[3, 16, 32], pl.FP32], n: pl.Scalar[pl.INDEX], out: pl.InOut[pl.Tensor[[3, 16, 32], pl.FP32]]"
NUMBERS = [rng.integers(-3, 4, (3, 16, 32)).astype(np.float32), 3, np.zeros((3, 16, 32), np.float32)]
CHOSEN = """
    c = pl.cmp({}, cmp_type={})
    d = pl.sel(c, a, pl.mul(a, 2.0))
    out = pl.store(d, [0, 0, 0], out)
"""


def compared(loads: str, sides: str, how: int) -> Case:
    return CUBE, f"{loads}{CHOSEN.format(sides, how)}", NUMBERS


WHOLE, PART = "a = pl.load(x, [0, 0, 0], [3, 16, 32])", ", valid_shape=[n - 1, n + 9, 30]"
COMPARED = {
    "a matrix": compared(f"    {WHOLE}\n    b = pl.load(x, [1, 0, 0], [1, 16, 32])\n", "a, b", 1),
    "the other way": compared(f"    {WHOLE}\n    b = pl.load(x, [1, 0, 0], [1, 16, 32])\n", "b, a", 2),
    "a column of each": compared(f"    {WHOLE}\n    b = pl.load(x, [0, 0, 0], [3, 1, 1])\n", "a, b", 4),
    "in part": compared(
        f"    {WHOLE[:-1]}{PART})\n    b = pl.load(x, [1, 0, 0], [1, 16, 32], valid_shape=[1, n + 9, 30])\n",
        "b, a",
        5,
    ),
}
MASKS = {
    f"a mask of {high}x{wide} for {rows}x{columns}": (
        CUBE,
        f"""
            a = pl.load(x, [0, 0, 0], [2, {rows}, {columns}])
            b = pl.load(x, [0, 0, 0], [3, {high}, {wide}])
            out = pl.store(pl.sels(pl.cmp(b, 0.0, cmp_type=4), a, scalar=7.0), [0, 0, 0], out)
        """,
        NUMBERS,
    )
    for rows, columns, high, wide in ((10, 32, 16, 32), (10, 1, 16, 1), (1, 20, 16, 32), (16, 20, 16, 32))
}
KINDS = {
    "FP32": np.float32,
    "FP16": np.float16,
    "INT8": np.int8,
    "INT16": np.int16,
    "INT32": np.int32,
    "INT64": np.int64,
}


def seen(come: str, shape: tuple[int, ...], go: str, other: tuple[int, ...], valid: str, asked: str = "") -> Case:
    head = (
        f"x: pl.Tensor[{list(shape)}, pl.{come}], n: pl.Scalar[pl.INDEX], "
        f"out: pl.InOut[pl.Tensor[{list(other)}, pl.{go}]]"
    )
    zeros = ", ".join("0" for _ in shape)
    lines = f"""
        a = pl.load(x, [{zeros}], {list(shape)}{valid and f", valid_shape={valid}"})
        m = pl.tile.reinterpret_view(a, dtype=pl.{go}{asked and f", shape={asked}"})
        out = pl.store(m, [{", ".join("0" for _ in other)}], out)
    """
    return head, lines, [rng.integers(0, 99, shape).astype(KINDS[come]), 3, np.zeros(other, KINDS[go])]


SEEN = {
    **{
        f"{come} as {go}, {valid}": seen(come, (4, 8, have), go, (4, 8, want), valid.format(have))
        for come, have, go, want in (
            ("FP32", 24, "FP16", 48),
            ("FP16", 24, "FP32", 12),
            ("INT8", 8, "INT64", 1),
            ("INT32", 3, "INT8", 12),
        )
        for valid in ("", "[3, n, {}]", "[n, 5, {}]")
    },
    **{
        f"a column of {come} as {go}, {valid}": seen(come, (4, 16, 1), go, (4, want, 1), valid)
        for come, go, want in (("INT64", "INT8", 128), ("INT8", "INT64", 2), ("FP32", "INT32", 16))
        for valid in ("", "[n, 8, 1]")
    },
    "rows that fill no lines": seen("FP16", (32, 24), "FP32", (16, 24), "", "[16, 24]"),
    "bytes as a column": seen("INT8", (4, 6), "INT16", (12, 1), "", "[12, 1]"),
}
PAIRS = "x: pl.Tensor[[2, 1280], pl.{0}], n: pl.Scalar[pl.INDEX], out: pl.InOut[pl.Tensor[[2, 1280], pl.{0}]]"
RUNS = """
    a = pl.load(x, [0, 0], [2, 1280], valid_shape=[2, n])
    out = pl.store(pl.mrgsort(a, block_len=64), [0, 0], out)
"""
LISTS = """
    a = pl.load(x, [0, 0], [2, 640], valid_shape=[2, n // 4 * 2])
    b = pl.load(x, [0, 640], [2, 640], valid_shape=[2, pl.max(n - 640, 0)])
    out = pl.store(pl.mrgsort(a, b, tmp=pl.create_tile([2, 1280], pl.{})), [0, 0], out)
"""
MERGED = {
    f"{what} of {kind}, {n}": (
        PAIRS.format(kind),
        lines.format(kind),
        [rng.integers(-9, 9, (2, 1280)).astype(KINDS[kind]), n, np.zeros((2, 1280), KINDS[kind])],
    )
    for what, lines in (("runs", RUNS), ("lists", LISTS))
    for kind in ("FP32", "FP16")
    for n in (1280, 1000, 254, 2, 0)
}
CASES: dict[str, Case] = {**COMPARED, **MASKS, **SEEN, **MERGED}


@pytest.mark.parametrize("platform", ["interpret", "cpu"])
@pytest.mark.parametrize("name", CASES)
def test_every_bit_is_the_same_when_it_is_read_back(name: str, platform: str) -> None:
    head, lines, arguments = CASES[name]
    wanted, found = read_back_text(head, lines, lambda: [np.copy(a) if np.ndim(a) else a for a in arguments], platform)
    np.testing.assert_array_equal(found[-1].view(np.uint8), wanted[-1].view(np.uint8))
