"""Reductions of zeros with signs, infinities and NaNs of many kinds: the same bits in the interpreter, on threads and
over processes that share memory or nothing, whichever way the elements go.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from processes import launched

import tilewright.language as pl
from tilewright import ir
from tilewright.core.program import Program
from tilewright.dtypes import BF16, FP16, FP32, FP64, INT8, UINT16, DataType
from tilewright.ir.distributed_compiled_program import DistributedConfig
from tilewright.programs.distributed import distant_collectives, row_reductions, spread
from tilewright.programs.distributed.group import Group

RANKS = int(os.environ.get("WORLD_SIZE", "2"))
OPS = {
    **{op: f"allreduce({{}}, s, op=pld.ReduceOp.{op})" for op in ("Sum", "Max", "Min", "Prod")},
    "scattered": "reduce_scatter({}, s)",
}
LEVELS, WAYS = ("host", "kernel"), ("little", "much", "crowded")
"""How elements go: few of them, many, and many between ranks that compute on all cores of their machine."""
LIMITS = (
    (spread, "SMALL"),
    (distant_collectives, "SMALL"),
    (distant_collectives, "SWAPPED"),
    (row_reductions, "BLOCK"),
)
"""Up to how many bytes, or elements, go in one way: beyond them they go as many do."""
EXPONENTS = {FP16: 0x7C00, BF16: 0x7F80, FP32: 0x7F800000}
"""Infinity of each kind of float, as bits."""
SCATTERED = FP64, INT8, UINT16
"""Elements that can be summed, but not reduced in other ways."""
TEXT = """
import tilewright.language.distributed as pld
X = pl.Tensor[[{n}, {size}], pl.{dtype}]
W = pld.DistributedTensor[[{n}, {size}], pl.{dtype}]
S = pld.DistributedTensor[[{n}, 1], pl.INT32]

@pl.program
class Reducing:
    @pl.function(type=pl.FunctionType.Orchestration)
    def fill(self, x: X, w: pl.InOut[W]):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [0, 0], [{n}, {size}]), [0, 0], w)

    @pl.function(type=pl.FunctionType.Orchestration)
    def act(self, {windows}, s: pl.InOut[S]):
        with pl.at(level=pl.Level.CORE_GROUP):
            {kernel}

    @pl.function(type=pl.FunctionType.Orchestration)
    def take(self, w: W, y: pl.Out[X]):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(w, [0, 0], [{n}, {size}]), [0, 0], y)

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def main(self, x: pl.Tensor[[{n}, {n}, {size}], pl.{dtype}],
             y: pl.Out[pl.Tensor[[{count}, {n}, {n}, {size}], pl.{dtype}]]):
        cells = pld.alloc_window_buffer([{n}, 1], dtype=pl.INT32)
        s = pld.window(cells, [{n}, 1], dtype=pl.INT32)
        {laid}
        {host}
        {taken}
        return y
"""


def parsed(dtype: DataType, level: str, size: int, ops: list[str]) -> Program:
    """Return a program that does several reductions, each of windows of its own that hold the same."""
    named = [f"w{k}" for k in range(len(ops))]
    acts = [f"{name} = pld.tensor.{OPS[op].format(name)}" for name, op in zip(named, ops, strict=True)]
    each = "for r in pl.range(pld.world_size()): self."
    of_host = [f"{each}act({', '.join(named)}, s, device=r)"] if level == "kernel" else acts
    laid = [f"b{k} = pld.alloc_window_buffer([{RANKS}, {size}], dtype=pl.{dtype.symbol})" for k in range(len(ops))]
    laid += [f"w{k} = pld.window(b{k}, [{RANKS}, {size}], dtype=pl.{dtype.symbol})" for k in range(len(ops))]
    laid += [f"{each}fill(x[r], {name}, device=r)" for name in named]
    text = TEXT.format(
        n=RANKS, size=size, dtype=dtype.symbol, count=len(ops),
        windows=", ".join(f"{name}: pl.InOut[W]" for name in named),
        kernel="\n            ".join(acts if level == "kernel" else ["pass"]),
        laid="\n        ".join(laid), host="\n        ".join(of_host),
        taken="\n        ".join(f"{each}take({name}, y[{k}, r], device=r)" for k, name in enumerate(named)),
    )  # fmt: skip
    made = pl.parse(text)
    assert isinstance(made, Program)
    return made


def elements(dtype: DataType) -> Any:
    """Return windows for all ranks in which every pair of some elements meets, which are hard to reduce alike."""
    if dtype not in EXPONENTS:
        return np.random.default_rng(0).integers(0, 99, (RANKS, RANKS, 200)).astype(dtype.numpy)
    infinite, sign = EXPONENTS[dtype], 1 << (dtype.bits - 1)
    quiet = infinite | 1 << (infinite.bit_length() - bin(infinite).count("1") - 1)
    some = [0, 1, infinite - 1, infinite, infinite + 3, quiet, quiet + 1, quiet + 5, infinite >> 1 & infinite]
    every = np.array([*some, *(each | sign for each in some)], f"u{dtype.bits // 8}")
    places = np.arange(-(-(len(every) ** 2) // RANKS) * RANKS)
    given = [every[places // len(every) ** (rank % 2) % len(every)] for rank in range(RANKS)]
    made: Any = np.stack(given)
    return made.reshape(RANKS, RANKS, -1).view(dtype.numpy)


@cache
def meant(dtype: DataType, level: str) -> Any:
    return bits(dtype, level, "interpret")


def bits(dtype: DataType, level: str, platform: str) -> Any:
    """Return what reductions leave in the windows of all ranks, of `reduce_scatter` in the row of each."""
    x, ops = elements(dtype), [*OPS] if dtype in EXPONENTS else ["scattered"]
    y: Any = np.zeros((len(ops), *x.shape), x.dtype)
    program = parsed(dtype, level, x.shape[-1], ops)
    ir.compile(program, platform=platform, distributed_config=DistributedConfig(range(RANKS)))(x, y)
    own = np.arange(RANKS)
    made: Any = np.concatenate([y[:-1].ravel(), y[-1, own, own].ravel()])
    return made.view(np.uint8)


def wrong(dtype: DataType, platform: str) -> list[str]:
    """Return the levels, and ways that elements go, in which bits are others than the interpreter's."""
    found: list[str] = []
    for way in WAYS:
        with pytest.MonkeyPatch.context() as patch:
            for module, limit in LIMITS if way != "little" else ():
                patch.setattr(module, limit, 1)
            patch.setattr(Group, "has_idle_cores", way != "crowded")
            made = {level: bits(dtype, level, platform) for level in LEVELS}
        found += [f"{level} {way}" for level in LEVELS if not np.array_equal(made[level], meant(dtype, level))]
    return found


@pytest.mark.parametrize("dtype", [*EXPONENTS, *SCATTERED], ids=str)
def test_threads_come_to_the_bits_of_the_interpreter(dtype: DataType) -> None:
    assert wrong(dtype, "cpu") == []


@pytest.mark.parametrize("transport", ["memory", "messages"])
@pytest.mark.parametrize("ranks", [2, 3])
def test_processes_come_to_the_bits_of_the_interpreter(tmp_path: Path, transport: str, ranks: int) -> None:
    for said in launched(ranks, tmp_path, Path(__file__), transport):
        assert said.splitlines() == [f"{dtype}: []" for dtype in (*EXPONENTS, *SCATTERED)], said


if __name__ == "__main__":
    for each in (*EXPONENTS, *SCATTERED):
        print(f"{each}: {wrong(each, 'cpu')}", flush=True)
