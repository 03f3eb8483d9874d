"""Random host functions whose collectives reduce: they mean the same where one rank reduces for all, where all share in
that, while the rows are still made perhaps, on threads as over processes that share memory or nothing.
"""

from __future__ import annotations

import os
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from processes import launched

import tilewright.language as pl
from tilewright import ir
from tilewright.core.program import Program
from tilewright.core.region import whole
from tilewright.dtypes import BF16, FP16, FP32, DataType
from tilewright.interpret.hosts import HostMachine
from tilewright.interpret.ranks import Ranks
from tilewright.ir.distributed_compiled_program import DistributedConfig
from tilewright.programs.distributed import spread

RANKS, ROWS, COLUMNS, STEP = 3, 12, 40, 2
SEEDS = range(int(os.environ.get("FIRST_SEED", "0")), int(os.environ.get("LAST_SEED", "6")))
"""Of the programs that processes run."""
ALL = RANKS, ROWS, COLUMNS

HEAD = f"""
import tilewright.language.distributed as pld
X = pl.Tensor[[{ROWS}, {COLUMNS}], pl.DTYPE]
W = pld.DistributedTensor[[{ROWS}, {COLUMNS}], pl.DTYPE]

@pl.program
class Reducing:
    @pl.function(type=pl.FunctionType.Orchestration)
    def fill(self, x: X, w: pl.InOut[W]):
        with pl.at(level=pl.Level.CORE_GROUP):
            for step in pl.range({ROWS // STEP}):
                pl.store(pl.load(x, [step * {STEP}, 0], [{STEP}, {COLUMNS}]), [step * {STEP}, 0], w)

    @pl.function(type=pl.FunctionType.Orchestration)
    def fill_by_columns(self, x: X, w: pl.InOut[W]):
        with pl.at(level=pl.Level.CORE_GROUP):
            for step in pl.range({ROWS // STEP}):
                for half in pl.range(2):
                    at = half * {COLUMNS // 2}
                    tile = pl.mul(pl.load(x, [{STEP} * step, at], [{STEP}, {COLUMNS // 2}]), 0.5)
                    w = pl.store(tile, [step * {STEP}, at], w)

    @pl.function(type=pl.FunctionType.Orchestration)
    def fill_backwards(self, x: X, w: pl.InOut[W]):
        with pl.at(level=pl.Level.CORE_GROUP):
            for step in pl.range({ROWS // STEP}):
                at = {ROWS - STEP} - step * {STEP}
                pl.store(pl.load(x, [at, 0], [{STEP}, {COLUMNS}]), [at, 0], w)

    @pl.function(type=pl.FunctionType.Orchestration)
    def fill_twice(self, x: X, w: pl.InOut[W]):
        with pl.at(level=pl.Level.CORE_GROUP):
            for step in pl.range({ROWS // STEP}):
                pl.store(pl.load(x, [step * {STEP}, 0], [{STEP}, {COLUMNS}]), [step * {STEP}, 0], w)
            pl.store(pl.load(x, [1, 0], [1, {COLUMNS}]), [0, 0], w)

    @pl.function(type=pl.FunctionType.Orchestration)
    def take(self, w: W, y: pl.InOut[X]):
        with pl.at(level=pl.Level.CORE_GROUP):
            for row in pl.range({ROWS}):
                tile = pl.add(pl.load(w, [row, 0], [1, {COLUMNS}]), pl.load(y, [row, 0], [1, {COLUMNS}]))
                pl.store(tile, [row, 0], y)

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def main(self, x: pl.Tensor[[{RANKS}, {ROWS}, {COLUMNS}], pl.DTYPE],
             y: pl.InOut[pl.Tensor[[{RANKS}, {ROWS}, {COLUMNS}], pl.DTYPE]]):
        first = pld.alloc_window_buffer([{ROWS}, {COLUMNS}], dtype=pl.DTYPE)
        second = pld.alloc_window_buffer([{ROWS}, {COLUMNS}], dtype=pl.DTYPE)
        cells = pld.alloc_window_buffer([{RANKS}, 1], dtype=pl.INT32)
        s = pld.window(cells, [{RANKS}, 1], dtype=pl.INT32)
        v = pld.window(first, [{ROWS}, {COLUMNS}], dtype=pl.DTYPE)
        w = pld.window(second, [{ROWS}, {COLUMNS}], dtype=pl.DTYPE)
        v_rows = pld.window(first, [{RANKS}, {ROWS * COLUMNS // RANKS}], dtype=pl.DTYPE)
        w_rows = pld.window(second, [{RANKS}, {ROWS * COLUMNS // RANKS}], dtype=pl.DTYPE)
"""
FILLS = ["fill", "fill", "fill_by_columns", "fill_backwards", "fill_twice"]
COLLECTIVES = [
    "pld.tensor.reduce_scatter({w}_rows, s)", "pld.tensor.reduce_scatter({w}_rows, s)",
    "pld.tensor.allreduce({w}, s)", "pld.tensor.allreduce({w}, s, op=pld.ReduceOp.Max)",
    "pld.tensor.broadcast({w}, s, root=1)", "pld.tensor.barrier(s)",
]  # fmt: skip


def text(seed: int) -> tuple[str, DataType]:
    """Return a random program, and its elements."""
    random, lines = Random(seed), list[str]()
    for _ in range(random.randint(2, 4)):
        names = random.sample(["v", "w"], random.randint(1, 2))
        acts = [_each(f"self.{random.choice(FILLS)}(x[r], {name}, device=r)") for name in names]
        acts += [random.choice(COLLECTIVES).format(w=random.choice(names)) for _ in range(random.randint(1, 3))]
        acts += [_each(f"self.take({name}, y[r], device=r)") for name in random.sample(names, 1)]
        is_repeated = random.random() < 0.4  # noqa: PLR2004
        lines += ["for _ in pl.range(2):", *(f"    {act}" for act in acts)] if is_repeated else acts
    dtype = random.choice([FP32, FP32, FP16, BF16])
    body = "".join(f"        {line}\n" for line in lines) + "        return y\n"
    return (HEAD + body).replace("DTYPE", dtype.symbol), dtype


def _each(act: str) -> str:
    return f"for r in pl.range({RANKS}): {act}"


def parsed(seed: int) -> tuple[Program, DataType]:
    code, dtype = text(seed)
    made = pl.parse(code)
    assert isinstance(made, Program)
    return made, dtype


def given(seed: int, dtype: DataType) -> tuple[Any, Any]:
    x: Any = np.random.default_rng(seed).standard_normal(ALL).astype(dtype.numpy)
    return x, np.zeros_like(x)


def result(seed: int, platform: str) -> Any:
    """Return what a program gives for its own numbers, as bytes."""
    program, dtype = parsed(seed)
    x, y = given(seed, dtype)
    compiled = ir.compile(program, platform=platform, distributed_config=DistributedConfig(range(RANKS)))
    compiled(x, y)
    compiled(x, np.zeros_like(x))  # windows, and the signals between them, are as they were
    return y.view(np.uint8)


def spread_result(seed: int) -> tuple[Any, spread.Spread]:
    """Return what the interpreter makes of the plan whose ranks reduce together: races would end it."""
    program, dtype = parsed(seed)
    x, y = given(seed, dtype)
    machine = HostMachine(program, RANKS)
    machine.planned("main", [whole(x), whole(y)])
    made = spread.spread(machine.plan, program)

    def nobody(name: str) -> Any:
        raise AssertionError(name)

    Ranks(made.program, made.plan, nobody).run()
    return y.view(np.uint8), made


@pytest.fixture(autouse=True)
def everything_is_spread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spread, "SMALL", 0)


@pytest.mark.parametrize("seed", range(12))
def test_ranks_that_share_in_reductions_come_to_the_same_bits(seed: int) -> None:
    wanted = result(seed, "interpret")
    assert np.array_equal(wanted, spread_result(seed)[0])
    assert np.array_equal(wanted, result(seed, "cpu"))


def test_some_of_them_sum_rows_while_others_are_made_and_some_do_not() -> None:
    made = [spread_result(seed)[1].program.function_names for seed in range(12)]
    names = {name for each in made for name in each}
    telling = {name for name in names if "_telling_" in name}
    assert telling == {"fill_telling_w", "fill_by_columns_telling_w"}
    assert any("sum_rows" in name for each in made for name in each if not telling & {*each})
    assert {name.split("_")[0] for name in names} >= {"sum", "reduce"}


@pytest.mark.parametrize("transport", ["memory", "messages"])
def test_processes_come_to_the_same_bits(tmp_path: Path, transport: str) -> None:
    for said in launched(RANKS, tmp_path, Path(__file__), transport):
        assert said.splitlines() == [f"seed {seed}: right" for seed in SEEDS], said


if __name__ == "__main__":
    spread.SMALL = 0
    for seed in SEEDS:
        is_right = np.array_equal(result(seed, "interpret"), result(seed, "cpu"))
        print(f"seed {seed}: {'right' if is_right else 'wrong'}", flush=True)
