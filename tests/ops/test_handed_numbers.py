"""Numbers of every element type that are handed on: out of scopes, round loops, through branches and helpers."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import TARGETS

import tilewright.language as pl
from tilewright import ir

DTYPES = (
    "FP8E4M3FN", "FP8E5M2", "FP8E8M0", "BF16", "FP16", "FP32", "FP64",
    "INT4", "INT8", "UINT8", "INT16", "UINT16", "INT32", "UINT32", "INT64", "UINT64", "BOOL",
)  # fmt: skip
WAYS = {
    "a scope": "r = pl.cast(s, pl.FP32)",
    "a loop": """
        for (k, c) in pl.while_(init_values=(0, s)):
            pl.cond(k < n)
            k_end, c_end = pl.yield_(k + 1, c)
        r = pl.cast(c_end, pl.FP32)
    """,
    "a branch": """
        if n > 2:
            v = s
        else:
            v = other
        r = pl.cast(v, pl.FP32)
    """,
    "a helper": "r = self.back(s)",
    "parallel turns": """
        for i in pl.parallel(4):
            with pl.at(level=pl.Level.CORE_GROUP):
                pl.write(out, [0, i + 1], pl.cast(s, pl.FP32))
        r = pl.cast(other, pl.FP32)
    """,
}
PROGRAM = """
import tilewright.language as pl
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def back(self, v: pl.Scalar[pl.{dtype}]) -> pl.Scalar[pl.FP32]:
        return pl.cast(v, pl.FP32)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, n: pl.Scalar[pl.INDEX], x: pl.Tensor[[1, 8], pl.FP32], out: pl.InOut[pl.Tensor[[1, 8], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.cast(pl.load(x, [0, 0], [1, 8]), pl.{dtype})
            s = pl.read(t, [0, 2])
            other = pl.read(t, [0, 3])
{way}
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.write(out, [0, 0], r)
"""


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.skipif("cuda" in TARGETS, reason="runs programs on arrays of the host")
def test_a_number_is_what_it_was_when_it_is_handed_on(dtype: str, way: str) -> None:
    text = WAYS[way] if "\n" in WAYS[way] else f"        {WAYS[way]}"
    program = pl.parse(PROGRAM.format(dtype=dtype, way=text))
    x, found = np.array([[1, 2, 1.5, 0.25, 1, 1, 1, 1]], np.float32), list[object]()
    for platform in ("cpu", "interpret"):
        out = np.zeros((1, 8), np.float32)
        ir.compile(program, platform=platform)(3, x, out)
        found.append(out.tolist())
    assert found[0] == found[1] and out.any()
