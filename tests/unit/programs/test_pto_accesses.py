"""Elements and rows of tensors by index, one after the other, as PTO text: read back, they give every bit."""
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

import numpy as np
import pytest
from property.exported import read_back, run_exported

import tilewright.language as pl
from tilewright import ir, pto
from tilewright.core.program import Program
from tilewright.programs.pto_text.export import as_pto

KINDS = {
    "INT8": np.int8, "UINT16": np.uint16, "INT32": np.int32, "UINT32": np.uint32, "INT64": np.int64,
    "FP16": np.float16, "FP32": np.float32, "FP64": np.float64,
}  # fmt: skip


def about(statement: str, dtype: str, shape: str = "[4, 3, 8]") -> Program:
    """Return a program that changes a tensor `x` by indices `i`, a mask `m` for them and rows `v`."""
    lines = [
        "@pl.program",
        "class P:",
        "    @pl.function(type=pl.FunctionType.InCore)",
        f"    def main(self, x: pl.InOut[pl.Tensor[{shape}, pl.{dtype}]], p: pl.Tensor[[1, 6], pl.INT64],",
        f"             w: pl.Tensor[[6, 3, 8], pl.{dtype}], n: pl.Scalar[pl.INDEX],",
        f"             out: pl.Out[pl.Tensor[[6, 3, 8], pl.{dtype}]]):",
        "        i, v = pl.load(p, [0, 0], [1, 6]), pl.load(w, [0, 0, 0], [6, 3, 8])",
        "        few = pl.load(w, [0, 0, 0], [6, 3, 8], valid_shape=[n, 2, 5])",
        "        m = i != 2",
        "        row = pl.reshape(pl.load(w, [0, 0, 0], [1, 1, 6]), [1, 6])",
        f"        {statement}",
        "        return out",
    ]  # fmt: skip
    program = pl.parse("\n".join(lines))
    assert isinstance(program, Program)
    return program


def check(statement: str, dtype: str) -> None:
    program, rng = about(statement, dtype), np.random.default_rng(1)
    text = as_pto(program)
    x, w = (rng.integers(0, 9, shape).astype(KINDS[dtype]) for shape in ((4, 3, 8), (6, 3, 8)))
    places = np.array([[3, 0, 2, 3, 1, 2]])
    for platform in ("interpret", "cpu"):
        wanted, found = ([x.copy(), places, w, 5, np.zeros_like(w)] for _ in range(2))
        ir.compile(program, platform="interpret")(*wanted)
        run_exported(text, "main", found, {}, platform)
        for got, want in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(got, want, f"{platform}\n{text}")


STATEMENTS = [
    "out = pl.store(pl.take(x, i), [0, 0, 0], out)",
    "out = pl.store(pl.take(x, i, mask=m, pad=3), [0, 0, 0], out)",
    "out = pl.store(pl.reshape(pl.take(x, i * 7, axis=None), [1, 1, 6]), [0, 0, 0], out)",
    "pl.put(x, i, v, mask=m)",
    "pl.put(x, i, few)",
    "pl.put(x, i, 5)",
    "pl.put(x, i * 7, 5, mask=m, axis=None)",
    "old = pl.atomic_add(x, i, v)\n        out = pl.store(old, [0, 0, 0], out)",
    "old = pl.atomic_max(x, i, few, mask=m)\n        out = pl.store(old, [0, 0, 0], out)",
    "pl.atomic_min(x, i, 4)",
    "old = pl.atomic_xchg(x, i, v, mask=m)\n        out = pl.store(old, [0, 0, 0], out)",
    "pl.atomic_add(x, i * 7, row, mask=m, axis=None)",
]


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("statement", STATEMENTS)
def test_rows_and_elements_by_index(statement: str, dtype: str) -> None:
    check(statement, dtype)


@pytest.mark.parametrize("dtype", ["INT8", "UINT16", "INT32", "INT64"])
@pytest.mark.parametrize("word", ["and", "or", "xor"])
def test_bits_of_rows(word: str, dtype: str) -> None:
    check(f"old = pl.atomic_{word}(x, i, v)\n        out = pl.store(old, [0, 0, 0], out)", dtype)


@pytest.mark.parametrize("dtype", ["INT32", "FP16", "FP64"])
def test_rows_that_are_swapped_where_they_are_as_expected(dtype: str) -> None:
    check("old = pl.atomic_cas(x, i, 4, v)\n        out = pl.store(old, [0, 0, 0], out)", dtype)


@pl.jit
def of_a_window(x: pl.InOut[pl.Tensor[[8, 16], pl.INT16]], p: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        window, i = pl.tensor.slice(x, [4, 6], [2, 3]), pl.load(p, [0], [6])
        pl.store(pl.take(window, i), [0, 0], out)
        pl.atomic_add(window, i, 2)
        pl.atomic_max(window, i * 5, 9, axis=None)


def test_rows_of_windows() -> None:
    x, p = np.arange(128, dtype=np.int16).reshape(8, 16), np.array([3, 0, 2, 3, 1, 2], np.int32)
    wanted, found = read_back(of_a_window, lambda: [x.copy(), p, np.zeros((6, 6), np.int16)], "interpret")
    for got, want in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(got, want)


@pl.jit
def by_blocks(x: pl.InOut[pl.Tensor[[16], pl.INT8]], p: pl.Tensor[[4, 6], pl.INT32]):
    for r in pl.parallel(4):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.atomic_add(x, pl.load(p, [r, 0], [1, 6]), 1)


def test_small_elements_that_several_blocks_change_are_refused() -> None:
    with pytest.raises(pto.NoPtoError, match="which other blocks may change") as caught:
        by_blocks.compile(np.zeros(16, np.int8), np.zeros((4, 6), np.int32)).as_pto()
    assert "^" in str(caught.value) and "pl.range instead of pl.parallel" in str(caught.value)
