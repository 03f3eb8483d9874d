"""Nests: the turns of parallel loops inside each other, shared by threads all together."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from ops.launched import launched
from unit.backends.cpu.running import native

import tilewright.language as pl
from tilewright.core.program import Program
from tilewright.core.stmt import ForStmt
from tilewright.core.visitor import statements
from tilewright.passes.manager import PassManager
from tilewright.passes.nests import nested

TEXT = """
M, N = pl.dynamic("M"), pl.dynamic("N")

@pl.program
class P:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[M, N], pl.FP32], out: pl.InOut[pl.Tensor[[M, N], pl.FP32]]):
        for i in pl.parallel(0, pl.tensor.dim(x, 0), 2):
            for j in {columns}:
                with pl.at(level=pl.Level.CORE_GROUP):
                    t = pl.load(x, [i, {read}], [2, 4])
                    out = pl.store({value}, [i, {place}], out{atomic})
        return out
"""
COLUMNS = "pl.parallel(0, pl.tensor.dim(x, 1), 4)"


def text(columns: str = COLUMNS, read: str = "j", value: str = "t + 1.0", place: str = "j", atomic: str = "") -> str:
    return TEXT.format(columns=columns, read=read, value=value, place=place, atomic=atomic)


def is_one_region(source: str) -> bool:
    """Return whether threads share the turns of both loops of a program."""
    parsed = pl.parse(source)
    assert isinstance(parsed, Program)
    lowered = PassManager.get_strategy().run_passes(parsed)
    loops = [s for f in lowered.function_list for s in statements(f.body) if isinstance(s, ForStmt)]
    return nested(lowered, loops[0]) is not None


def test_turns_that_store_in_places_of_their_own_are_shared_all_together() -> None:
    assert is_one_region(text())
    assert is_one_region(text(place="pl.tensor.dim(x, 1) - 4 - j"))


@pytest.mark.filterwarnings("ignore::tilewright.errors.DependentTurnsWarning")
@pytest.mark.parametrize(
    "source",
    [
        text(columns="pl.range(0, pl.tensor.dim(x, 1), 4)"),
        text(columns="pl.parallel(0, i + 4, 4)"),
        text(place="0"),
        text(place="0", atomic=", atomic=pl.AtomicType.Add"),
    ],
    ids=["in order", "as many as the outer says", "one place", "added up"],
)
def test_other_turns_stay_in_order(source: str) -> None:
    assert not is_one_region(source)


@pytest.mark.parametrize(("rows", "columns"), [*product((0, 1, 2, 6, 7, 64), (0, 3, 4, 12, 130))])
def test_each_turn_runs_once_on_any_number_of_threads(rows: int, columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    program = native(text(value="t + pl.load(out, [i, j], [2, 4])"))
    x = np.random.default_rng(0).random((rows, columns), np.float32)
    for threads in ("1", "2", "3", "7"):
        monkeypatch.setenv("TILEWRIGHT_NUM_THREADS", threads)
        out = np.ones_like(x)
        launched(program.native, "main", [x, out])
        np.testing.assert_array_equal(out, x + 1)


def test_steps_of_both_loops_may_go_down(monkeypatch: pytest.MonkeyPatch) -> None:
    source = text(columns="pl.parallel(12, -1, -4)").replace(
        "pl.parallel(0, pl.tensor.dim(x, 0), 2)", "pl.parallel(6, -1, -2)"
    )
    assert is_one_region(source)
    monkeypatch.setenv("TILEWRIGHT_NUM_THREADS", "3")
    x, out = np.random.default_rng(0).random((8, 16), np.float32), np.zeros((8, 16), np.float32)
    launched(native(source).native, "main", [x, out])
    np.testing.assert_array_equal(out, x + 1)
