"""Loops over chunks of columns in native code, which make all turns for one row after the other."""

from __future__ import annotations

import numpy as np
import pytest
from unit.backends.cpu.running import native, program_of

from tilewright.core.stmt import ForStmt
from tilewright.core.visitor import statements
from tilewright.passes.manager import PassManager
from tilewright.passes.row_turns import rows_of_turns

KERNEL = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[{m}, {n}], pl.FP32], y: pl.Tensor[[{m}, 1], pl.FP32],
             w: pl.Tensor[[1, 24], pl.FP32], out: pl.Out[pl.Tensor[[{m}, 24], pl.FP32]]):
        for r in pl.parallel(0, {m}, 8):
            with pl.at(level=pl.Level.CORE_GROUP):
                scale, row = pl.load(y, [r, 0], [8, 1]), pl.load(w, [0, 0], [1, 24])
                acc = pl.tile.full([8, 24], dtype=pl.FP32, value=0.5)
                for c in pl.range(0, {n}, 24):
                    {body}
                pl.store(acc, [r, 0], out)
"""
BY_ROW = {
    "sum": "acc = acc + pl.load(x, [r, c], [8, 24])",
    "chain": "acc = pl.maximum(acc, pl.exp(pl.load(x, [r, c], [8, 24]) * scale) - row)",
    "folds": "acc = acc + pl.row_max(pl.load(x, [r, c], [8, 24])) * scale",
    "counted": "acc = acc + pl.load(x, [r, c], [8, 24]) * pl.cast(c, pl.FP32)",
}
OTHERS = {
    "turned": "acc = acc + pl.col_sum(pl.load(x, [r, c], [8, 24]))",
    "read twice": "acc = acc * acc * 0.1 + pl.load(x, [r, c], [8, 24])",
    "given elsewhere": "acc = pl.load(x, [r, c], [8, 24]) + pl.row_max(acc)",
    "of nothing": "acc = acc + row",
}


def text(body: str, m: int = 16, n: int = 96) -> str:
    return KERNEL.format(body=(BY_ROW | OTHERS)[body], m=m, n=n)


@pytest.mark.parametrize("shape", [(16, 96), (16, 24), (12, 96)], ids=str)
@pytest.mark.parametrize("body", [*BY_ROW, *OTHERS])
def test_chunks_are_worked_on_as_the_interpreter_does(body: str, shape: tuple[int, int]) -> None:
    m, n = shape
    random = np.random.default_rng(3)
    x, y, w = (random.uniform(-1, 1, s).astype(np.float32) for s in ((m, n), (m, 1), (1, 24)))
    native(text(body, m, n)).agrees(x, y, w, np.zeros((m, 24), np.float32))


@pytest.mark.parametrize("body", [*BY_ROW, *OTHERS])
def test_only_what_works_on_each_row_by_itself_goes_row_by_row(body: str) -> None:
    lowered = PassManager.get_strategy().run_passes(program_of(text(body)))
    every = [stmt for function in lowered.function_list for stmt in statements(function.body)]
    (loop,) = [stmt for stmt in every if isinstance(stmt, ForStmt) and stmt.iter_args]
    assert rows_of_turns(loop) == (8 if body in BY_ROW else None)
