"""Chains in native code: products, what is done to their rows, and products again, on their side."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from unit.backends.cpu.running import Array, Native, program_of

from tilewright.backends.cpu.backend import CPU
from tilewright.dtypes import BF16, FP32, DataType
from tilewright.passes.manager import PassManager

KERNEL = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def main(
        self, q: pl.Tensor[[{rows}, {depth}], pl.{dtype}], k: pl.Tensor[[{length}, {depth}], pl.{dtype}],
        v: pl.Tensor[[{length}, {width}], pl.{dtype}], bias: pl.Tensor[[1, {length}], pl.FP32],
        out: pl.Out[pl.Tensor[[{rows}, {width}], pl.FP32]],
    ):
        place = pl.iota([{rows}, 1], axis=0)
        queries = pl.load(q, [0, 0], [{rows}, {depth}])
        best = pl.tile.full([{rows}, 1], dtype=pl.FP32, value=-1e30)
        total = pl.tile.full([{rows}, 1], dtype=pl.FP32, value=0.0)
        mean = pl.tile.full([{rows}, {width}], dtype=pl.FP32, value=0.0)
        for first in pl.range(0, {length}, {keys}):
            scores = queries @ pl.load(k, [first, 0], [{keys}, {depth}]).T
            {worked}
            higher = pl.maximum(best, pl.row_max(scores))
            weights, kept = pl.exp(scores - higher), pl.exp(best - higher)
            total = total * kept + pl.row_sum(weights)
            mean = mean * kept + pl.cast(weights, pl.{dtype}) @ pl.load(v, [first, 0], [{keys}, {width}])
            best = higher
        pl.store(mean / total, [0, 0], out)
"""
WORKED = {
    "scaled": "scores = scores * 0.25",
    "causal": "scores = pl.where(pl.arange(first, first + {keys}) <= place, scores, -1e30)",
    "biased": "scores = scores + pl.load(bias, [0, first], [1, {keys}])",
    "banded": "band = pl.abs(pl.cast(pl.iota([{rows}, {keys}], axis=1, start=first) - place, pl.FP32))\n"
    "            scores = scores - pl.min(scores * 0.0 + pl.minimum(band, 3.0), axis=-1, keepdims=True) - band",
    "summed twice": "scores = scores / (1.0 + pl.sum(pl.abs(scores), axis=-1, keepdims=True))",
}


def chain(worked: str, dtype: DataType = FP32, **sizes: int) -> tuple[Native, list[Array]]:
    named = {"rows": 32, "keys": 24, "length": 56, "depth": 12, "width": 20, **sizes}
    text = KERNEL.format(dtype=dtype.symbol, worked=worked.format(**named), **named)
    rng = np.random.default_rng(len(worked))
    shapes = [(named["rows"], named["depth"]), (named["length"], named["depth"]), (named["length"], named["width"])]
    given = [rng.uniform(-2, 2, shape).astype(dtype.numpy) for shape in shapes]
    bias = rng.uniform(-2, 2, (1, named["length"])).astype(np.float32)
    return Native(program_of(text)), [*given, bias, np.zeros((named["rows"], named["width"]), np.float32)]


def plan(native: Native) -> str:
    return CPU().compile(PassManager.get_strategy().run_passes(native.program)).texts["fusion"]()


@pytest.mark.parametrize("worked", WORKED.values(), ids=WORKED)
def test_a_chain_does_what_the_interpreter_does(worked: str) -> None:
    native, args = chain(worked)
    assert "side by side" in plan(native)
    native.check(*args)
    args[0][3, 2], args[1][40, 1], args[2][0, 0] = np.nan, -np.inf, np.inf
    native.check(*args)


@pytest.mark.parametrize("sizes", [{}, {"rows": 16, "keys": 16, "length": 40, "depth": 64, "width": 64}], ids=str)
def test_a_chain_of_halves_is_multiplied_in_pairs(sizes: dict[str, int]) -> None:
    native, args = chain(WORKED["causal"], BF16, **sizes)
    native.check(*args)


def test_an_average_is_scaled_and_added_to_where_it_is_carried() -> None:
    native, args = chain(WORKED["scaled"])
    lowered = PassManager.get_strategy().run_passes(native.program)
    copied = [line for line in CPU().compile(lowered).texts["llvm"]().splitlines() if "call void @llvm.memcpy" in line]
    assert not [line for line in copied if f"i64 {4 * 32 * 20}" in line]
    native.check(*args)


def test_weights_are_rounded_where_they_are_computed() -> None:
    native, args = chain(WORKED["scaled"], BF16, rows=16, keys=32, length=64, depth=64, width=64)
    (together,) = [group for group in plan(native).split("rows 16") if "tile.exp(sub" in group]
    assert "tile.cast" in together
    native.check(*args)
    args[1][40, 1], args[2][0, 0] = np.nan, np.inf
    native.check(*args)


def test_a_processor_rounds_weights_for_matrix_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_AMX", "emulated")
    native, args = chain(WORKED["scaled"], BF16, rows=16, keys=32, length=64, depth=64, width=64)
    lowered = PassManager.get_strategy().run_passes(native.program)
    target = replace(CPU().target(), features="+avx512bf16,+avx512f", emulates_tiles=True)
    assert "cvtneps2bf16" in CPU().compile(lowered, target=target).texts["llvm"]()
    native.check(*args)


@pytest.mark.parametrize(
    ("worked", "sizes"),
    [
        (WORKED["scaled"], {"rows": 24}),
        ("pl.store(scores, [0, 0], out)", {"width": 24}),
        ("scores = pl.slice(scores, [{rows}, {keys}], [0, 0])", {}),
        ("scores = scores * pl.load(q, [0, 0], [{rows}, {keys}])", {"depth": 24, "length": 48}),
    ],
    ids=["rows that fill no vectors", "stored", "sliced", "beside a loaded tile"],
)
def test_what_does_not_lie_on_its_side_stays_as_it_was(worked: str, sizes: dict[str, int]) -> None:
    native, args = chain(worked, FP32, **sizes)
    assert "side by side" not in plan(native)
    native.check(*args)


def test_a_sum_that_is_large_keeps_what_a_product_adds() -> None:
    native = Native(
        program_of(
            """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, x: pl.Tensor[[12, 64], pl.FP32], y: pl.Tensor[[64, 24], pl.FP32],
             out: pl.InOut[pl.Tensor[[12, 24], pl.FP32]]):
        product = pl.load(x, [0, 0], [12, 64]) @ pl.load(y, [0, 0], [64, 24])
        pl.store(pl.load(out, [0, 0], [12, 24]) + product, [0, 0], out)
"""
        )
    )
    ones = np.ones((12, 64), np.float32), np.ones((64, 24), np.float32)
    given, _ = native.run([*ones, np.full((12, 24), 1e9, np.float32)])
    np.testing.assert_array_equal(given[2], np.float32(1e9 + 64))
