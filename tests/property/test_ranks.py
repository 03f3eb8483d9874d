"""Random programs of puts, gets, stores, signals and collectives: native threads, and processes that share memory or
nothing, do what the interpreter does.

Ranks write in one round and read in the next, with a barrier between them, so that one answer is right: in a round
each write of a rank goes to a row of its own, at a peer that is no other rank's.
"""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

import numpy as np
import pytest
from processes import launched

import tilewright.language as pl
from tilewright import ir
from tilewright.core.program import Program
from tilewright.ir.distributed_compiled_program import DistributedConfig
from tilewright.passes import distant

RANKS, ROWS, COLUMNS = 3, 6, 40
SEEDS = range(int(os.environ.get("FIRST_SEED", "0")), int(os.environ.get("LAST_SEED", "4")))
"""Of the programs that processes run."""

HEAD = f"""
import tilewright.language.distributed as pld
X = pl.Tensor[[{ROWS}, {COLUMNS}], pl.FP32]
W = pld.DistributedTensor[[{ROWS}, {COLUMNS}], pl.FP32]
S = pld.DistributedTensor[[{RANKS}, 1], pl.INT32]
T = pld.DistributedTensor[[{2 * (RANKS - 1)}, {RANKS}], pl.INT32]

@pl.program
class Ranks:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(self, x: X, y: pl.InOut[X], v: pl.InOut[W], w: pl.InOut[W], s: pl.InOut[S], t: pl.InOut[T]):
        me = pld.rank(w)
"""
TAIL = f"""
    @pl.function(type=pl.FunctionType.Orchestration)
    def chip(self, x: X, y: pl.InOut[X], v: pl.InOut[W], w: pl.InOut[W], s: pl.InOut[S], t: pl.InOut[T]):
        self.kernel(x, y, v, w, s, t)

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def main(self, x: pl.Tensor[[{RANKS}, {ROWS}, {COLUMNS}], pl.FP32],
             y: pl.InOut[pl.Tensor[[{RANKS}, {ROWS}, {COLUMNS}], pl.FP32]]):
        rows = pld.alloc_window_buffer([{ROWS}, {COLUMNS}], dtype=pl.FP32)
        others = pld.alloc_window_buffer([{ROWS}, {COLUMNS}], dtype=pl.FP32)
        cells = pld.alloc_window_buffer([{RANKS}, 1], dtype=pl.INT32)
        steps = pld.alloc_window_buffer([{2 * (RANKS - 1)}, {RANKS}], dtype=pl.INT32)
        for r in pl.range(pld.world_size()):
            w = pld.window(rows, [{ROWS}, {COLUMNS}], dtype=pl.FP32)
            s = pld.window(cells, [{RANKS}, 1], dtype=pl.INT32)
            v = pld.window(others, [{ROWS}, {COLUMNS}], dtype=pl.FP32)
            t = pld.window(steps, [{2 * (RANKS - 1)}, {RANKS}], dtype=pl.INT32)
            self.chip(x[r], y[r], v, w, s, t, device=r)
"""
COLLECTIVES = [
    "pld.tensor.allreduce(w, s)", "pld.tensor.allreduce(w, s, op=pld.ReduceOp.Max)",
    'pld.tensor.allreduce(w, t, mode="ring")', "pld.tensor.broadcast(w, s, root=1)",
    "pld.tensor.reduce_scatter(w, s)", "pld.tensor.all_to_all(w, v, s)", "pld.tensor.all_to_all(v, w, s)",
    "pld.tensor.allreduce(pl.set_validshape(w, 4, 23), s)",
    "pld.tensor.broadcast(pl.set_validshape(w, 5, 9), s, root=2)",
    'pld.tensor.allreduce(pl.set_validshape(w, 1 + me - me, 40), t, mode="ring")',
    "pld.tensor.allgather(pl.slice(x, [1, 40], [2, 0]), w, s)",
    "pld.tensor.allgather(pl.slice(y, [1, 40], [4, 0]), v, s)",
]  # fmt: skip
"""What all ranks do together between a round of writes and one of reads."""
LOAD = "pl.load({tensor}, [{row}, {at}], [1, {size}])"


class Writer:
    """Writes one random kernel."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.lines: list[str] = []

    def text(self) -> str:
        for _ in range(self.random.randint(2, 4)):
            for row in self.random.sample(range(ROWS), self.random.randint(1, ROWS)):
                self.write(row)
            self.lines.append("pld.tensor.barrier(s)")
            self.lines += self.random.sample(COLLECTIVES, self.random.randint(0, 2))
            for _ in range(self.random.randint(1, 4)):
                self.read(self.random.randrange(ROWS))
            self.lines.append("pld.tensor.barrier(s)")
        return HEAD + "".join(f"        {line}\n" for line in self.lines) + TAIL

    def span(self) -> tuple[int, int]:
        size = self.random.randint(1, COLUMNS)
        return self.random.randint(0, COLUMNS - size), size

    def peer(self) -> str:
        return f"(me + {self.random.randrange(RANKS)}) % {RANKS}"

    def source(self) -> tuple[str, int]:
        return self.random.choice(["x", "y"]), self.random.randrange(ROWS)

    def write(self, row: int) -> None:
        (at, size), (tensor, other), peer = self.span(), self.source(), self.peer()
        tile = LOAD.format(tensor=tensor, row=other, at=at, size=size)
        scaled = f"pl.mul({tile}, {self.random.choice([0.5, -1.0, 2.0])})"
        self.lines.append(
            self.random.choice(
                [
                    f"pld.tensor.put(w, {peer}, {tensor}, [{row}, {at}], [{other}, {at}], [1, {size}])",
                    f"pld.tile.remote_store({scaled}, w, {peer}, [{row}, {at}])",
                    f"pld.tile.remote_store({scaled}, w, {peer}, [{row}, {at}], atomic=pl.AtomicType.Add)",
                    f"pl.store({scaled}, [{row}, {at}], w)",
                ]
            )
        )

    def read(self, row: int) -> None:
        (at, size), peer, into = self.span(), self.peer(), self.random.randrange(ROWS)
        there = f"pld.tile.remote_load(w, {peer}, [{row}, {at}], [1, {size}])"
        held = LOAD.format(tensor="y", row=into, at=at, size=size)
        self.lines.append(
            self.random.choice(
                [
                    f"pl.store(pl.add({there}, {held}), [{into}, {at}], y)",
                    f"pld.tensor.get(y, {peer}, w, [{into}, {at}], [{row}, {at}], [1, {size}])",
                    f"pl.store({LOAD.format(tensor='w', row=row, at=at, size=size)}, [{into}, {at}], y)",
                ]
            )
        )


def parsed(seed: int) -> Program:
    made = pl.parse(Writer(seed).text())
    assert isinstance(made, Program)
    return made


def result(program: Program, seed: int, platform: str) -> np.ndarray:
    """Return what a program gives for its own numbers."""
    x = np.random.default_rng(seed).standard_normal((RANKS, ROWS, COLUMNS)).astype(np.float32)
    y = np.zeros_like(x)
    ir.compile(program, platform=platform, distributed_config=DistributedConfig(range(RANKS)))(x, y)
    return y


@pytest.mark.parametrize("seed", range(8))
def test_a_random_program_of_ranks_gives_one_result(seed: int) -> None:
    program = parsed(seed)
    x = np.random.default_rng(seed).standard_normal((RANKS, ROWS, COLUMNS)).astype(np.float32)
    results: list[np.ndarray] = []
    for platform in ("interpret", "cpu"):
        compiled = ir.compile(program, platform=platform, distributed_config=DistributedConfig(range(RANKS)))
        for _ in range(1 if platform == "interpret" else 3):
            results.append(np.zeros_like(x))
            compiled(x, results[-1])
    assert all(np.array_equal(results[0], each) for each in results[1:])


def test_a_program_for_distant_ranks_means_the_same() -> None:
    for seed in range(8):
        program = parsed(seed)
        assert np.array_equal(result(program, seed, "interpret"), result(distant.run(program), seed, "interpret"))


@pytest.mark.parametrize("transport", ["memory", "messages"])
def test_random_programs_of_processes_give_the_same(tmp_path: Path, transport: str) -> None:
    for said in launched(RANKS, tmp_path, Path(__file__), transport):
        assert said.splitlines() == [f"seed {seed}: right" for seed in SEEDS], said


if __name__ == "__main__":
    for seed in SEEDS:
        program = parsed(seed)
        is_right = np.array_equal(result(program, seed, "interpret"), result(program, seed, "cpu"))
        print(f"seed {seed}: {'right' if is_right else 'wrong'}", flush=True)
