"""Random host functions: ranks that copy, add and signal by turns, on tensors of the caller's, windows and collectives.

Native threads, and processes that share memory or nothing, give what the interpreter does. It finds what is left open:
programs with a race, or ranks that wait for each other, are no programs of these tests.
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
from tilewright.errors import ExecutionError
from tilewright.ir.distributed_compiled_program import DistributedConfig

RANKS, ROWS, COLUMNS = 3, 4, 16
SEEDS = range(int(os.environ.get("FIRST_SEED", "0")), int(os.environ.get("LAST_SEED", "6")))
"""Of the programs that processes run."""
CHIPS = {
    "copy": ("a: A, b: pl.InOut[A], i: I, j: I", ["pl.store(pl.mul({a}, 2.0), [j, 0], b)"]),
    "add": ("a: A, b: pl.InOut[A], i: I, j: I", ["pl.store(pl.add({a}, {b}), [j, 0], b)"]),
    "raise_": ("a: A, b: pl.InOut[A], i: I, j: I", ["pl.store({a}, [j, 0], b, atomic=pl.AtomicType.Add)"]),
    "place": (
        "x: X, y: pl.InOut[X], p: I, i: I, q: I, j: I",
        [f"pl.store(pl.load(x, [p, i, 0], [1, 1, {COLUMNS}]), [q, j, 0], y)"],
    ),
    "fill": ("a: A, w: pl.InOut[W], i: I, j: I", ["pl.store({a}, [j, 0], w)"]),
    "take": ("w: W, b: pl.InOut[A], i: I, j: I", ["pl.store(pl.add({w}, {b}), [j, 0], b)"]),
    "get": (
        "w: W, s: pl.InOut[S], b: pl.InOut[A], i: I, j: I, k: I",
        [
            "pld.tensor.barrier(s)",
            f"there = pld.tile.remote_load(w, (pld.rank(w) + k) % {RANKS}, [i, 0], [1, {COLUMNS}])",
            "pl.store(there, [j, 0], b)",
            "pld.tensor.barrier(s)",
        ],
    ),
    "put": (
        "a: A, w: pl.InOut[W], s: pl.InOut[S], i: I, j: I, k: I",
        [
            "pld.tensor.barrier(s)",
            f"pld.tensor.put(w, (pld.rank(w) + k) % {RANKS}, a, [j, 0], [i, 0], [1, {COLUMNS}])",
            "pld.tensor.barrier(s)",
        ],
    ),
    "gain": (
        "a: A, w: pl.InOut[W], s: pl.InOut[S], i: I, j: I, k: I",
        [
            "pld.tensor.barrier(s)",
            f"pld.tensor.put(w, k, a, [j, 0], [i, 0], [1, {COLUMNS}], atomic=pl.AtomicType.Add)",
            "pld.tensor.barrier(s)",
        ],
    ),
}
"""What a rank is dispatched: its parameters, and what it does."""
OF_ALL = ("get", "put", "gain")
"""Those in which ranks wait for all others."""
HEAD = f"""
import tilewright.language.distributed as pld
A, X = pl.Tensor[[{ROWS}, {COLUMNS}], pl.FP32], pl.Tensor[[{RANKS}, {ROWS}, {COLUMNS}], pl.FP32]
I = pl.Scalar[pl.INT32]
W, S = pld.DistributedTensor[[{ROWS}, {COLUMNS}], pl.FP32], pld.DistributedTensor[[{RANKS}, 1], pl.INT32]

@pl.program
class Ranks:
"""
HOST = f"""
    @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
    def work(a: A, b: pl.InOut[A]):
        b[1:3] += a[0:2] * 3

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def main(self, x: X, n: pl.Tensor[[4], pl.INT32], t: pl.InOut[X], y: pl.InOut[X]):
        rows = pld.alloc_window_buffer([{ROWS}, {COLUMNS}], dtype=pl.FP32)
        others = pld.alloc_window_buffer([{ROWS}, {COLUMNS}], dtype=pl.FP32)
        some = pld.alloc_window_buffer([{ROWS}, {COLUMNS}], dtype=pl.FP32)
        cells = pld.alloc_window_buffer([{RANKS}, 1], dtype=pl.INT32)
        w = pld.window(rows, [{ROWS}, {COLUMNS}], dtype=pl.FP32)
        v = pld.window(others, [{ROWS}, {COLUMNS}], dtype=pl.FP32)
        u = pld.window(some, [{ROWS}, {COLUMNS}], dtype=pl.FP32)
        s = pld.window(cells, [{RANKS}, 1], dtype=pl.INT32)
        made = pl.create_tensor([{RANKS}, {ROWS}, {COLUMNS}], dtype=pl.FP32, init_value=1.0)
        for r in pl.range({RANKS}):
            self.fill(x[r], w, 0, 0, device=r)
            self.fill(x[r], v, 1, 1, device=r)
            self.copy(x[r], y[r], 0, 0, device=r)
"""
TAIL = [
    f"for r in pl.range({RANKS}):",
    "    self.take(w, y[r], 1, 2, device=r)",
    "    self.take(v, y[r], 2, 3, device=r)",
]


def _function(name: str, params: str, body: list[str]) -> str:
    row = f"[1, {COLUMNS}]"
    loads = {key: f"pl.load({key}, [{'j' if key == 'b' else 'i'}, 0], {row})" for key in "abw"}
    lines = "".join(f"        {line.format(**loads)}\n" for line in body)
    given = ", ".join(each.partition(":")[0] for each in params.replace("pl.InOut[", "").split(", "))
    return (
        f"    @pl.function(type=pl.FunctionType.InCore)\n    def in_{name}(self, {params}):\n{lines}"
        f"    @pl.function(type=pl.FunctionType.Orchestration)\n    def {name}(self, {params}):\n"
        f"        self.in_{name}({given})\n"
    )


class Writer:
    """Writes one random host function."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.has_workers, self.looks = self.random.random() < 0.3, self.random.random() < 0.3

    def text(self) -> str:
        lines = [line for _ in range(self.random.randint(3, 8)) for line in self.statement()]
        chips = "".join(_function(name, *chip) for name, chip in CHIPS.items())
        return HEAD + chips + HOST + "".join(f"        {line}\n" for line in [*lines, *TAIL])

    def statement(self) -> list[str]:
        kind, one, row = self.random.random(), str(self.random.randrange(RANKS)), self.row
        if kind < 0.5:
            return [
                f"for r in pl.range({RANKS}):",
                *(f"    {self.call('r')}" for _ in range(self.random.choice([1, 1, 2]))),
            ]
        if kind < 0.6:
            loop, into = f"for r in pl.range(1, {RANKS}):", self.written("r")
            fill = [loop, f"    self.fill({self.read('r')}, u, {row()}, {row()}, device=r)"]
            met = ["pld.tensor.allreduce(u)"] if self.random.random() < 0.5 else []
            return [*fill, *met, loop, f"    self.take(u, {into}, {row()}, {row()}, device=r)"]
        if kind < 0.75:
            return [self.call(one)]
        if kind < 0.8 and self.has_workers:
            return [f"self.work({self.random.choice('xt')}[{one}], y[{self.random.randrange(RANKS)}])"]
        if kind < 0.85 and self.looks:
            return ["if pl.read(n, [0]) > 1:", f"    {self.call(one)}"]
        return [self.collective()]

    def collective(self) -> str:
        w, other = self.random.choice(["wv", "vw"])
        part = f"pl.set_validshape({w}, {self.random.randint(1, ROWS)}, {self.random.randint(1, COLUMNS)})"
        found = [f"allreduce({w}, s)", f"allreduce({w}, s, op=pld.ReduceOp.Max)", f"allreduce({part}, s)"]
        found += [f"broadcast({w}, s, root=1)", f"reduce_scatter({w}, s)", f"all_to_all({w}, {other}, s)"]
        return f"pld.tensor.{self.random.choice(found)}"

    def row(self) -> int:
        return self.random.randrange(ROWS)

    def read(self, rank: str) -> str:
        places = [rank, f"({rank} + {self.random.randrange(RANKS)}) % {RANKS}", str(self.random.randrange(RANKS))]
        return f"{self.random.choice('xxty')}[{self.random.choice(places)}]"

    def written(self, rank: str) -> str:
        place = f"({rank} + {self.random.randrange(RANKS)}) % {RANKS}"
        return f"{self.random.choice('ty')}[{self.random.choice([rank, place])}]"

    def call(self, rank: str) -> str:
        """Return a dispatch to a rank, in a loop over all if that is counted."""
        names = [name for name in (*CHIPS, *OF_ALL, "made") if rank == "r" or name not in OF_ALL]
        name, i, j, k, w = (
            self.random.choice(names),
            self.row(),
            self.row(),
            self.random.randrange(RANKS),
            "wv"[self.row() % 2],
        )
        a, b = self.read(rank), self.written(rank)
        number = f"pl.read(n, [{self.row()}])" if self.looks and self.random.random() < 0.5 else j
        if name == "raise_" and self.random.random() < 0.6:  # all to one row
            a, b, number = f"x[{self.random.randrange(RANKS)}]", f"{self.random.choice('ty')}[{k}]", j
        given = {
            "fill": f"{a}, {w}, {i}, {j}", "take": f"{w}, {b}, {i}, {j}", "get": f"{w}, s, {b}, {i}, {j}, {k}",
            "place": f"x, {self.random.choice('ty')}, {k}, {i}, {self.random.choice([rank, str(k)])}, {j}",
            "put": f"{a}, {w}, s, {i}, {j}, {k}", "gain": f"{a}, {w}, s, {i}, {j}, {k}",
        }.get(name, f"{a}, {b}, {i}, {number}")  # fmt: skip
        if name == "made":
            name = self.random.choice(["add", "copy"])
            given = f"{a}, made[{rank}], {i}, {j}" if name == "add" else f"made[{rank}], {b}, {i}, {j}"
        return f"self.{name}({given}, device={rank})"


def parsed(seed: int) -> Program:
    made = pl.parse(Writer(seed).text())
    assert isinstance(made, Program)
    return made


def results(program: Program, seed: int, platform: str) -> list[np.ndarray]:
    """Return what a program leaves in tensors of integers when it is called twice, on other numbers each time."""
    random = np.random.default_rng(seed)
    x, t = (random.integers(-4, 5, (RANKS, ROWS, COLUMNS)).astype(np.float32) for _ in range(2))
    n, y = random.integers(0, ROWS, 4).astype(np.int32), np.zeros_like(x)
    compiled = ir.compile(program, platform=platform, distributed_config=DistributedConfig(range(RANKS)))
    for k in range(2):
        compiled(x + k, n, t, y)
    return [t, y]


def is_right(seed: int) -> bool | None:
    """Return whether ranks of this platform give what the interpreter does; None where that finds nothing to give."""
    program = parsed(seed)
    try:
        wanted = results(program, seed, "interpret")
    except ExecutionError:
        return None
    return all(map(np.array_equal, wanted, results(program, seed, "cpu")))


def test_random_host_functions_give_one_result() -> None:
    found = [is_right(seed) for seed in range(24)]
    assert [seed for seed, right in enumerate(found) if right is False] == []
    assert found.count(None) < len(found) / 2


@pytest.mark.parametrize("transport", ["memory", "messages"])
def test_random_host_functions_of_processes_give_the_same(tmp_path: Path, transport: str) -> None:
    for said in launched(RANKS, tmp_path, Path(__file__), transport):
        lines = [line for line in said.splitlines() if line.startswith("seed ")]
        assert len(lines) == len(SEEDS) and not any(line.endswith(": False") for line in lines), said


if __name__ == "__main__":
    for seed in SEEDS:
        print(f"seed {seed}: {is_right(seed)}", flush=True)
