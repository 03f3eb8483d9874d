"""Parallel programs: right on any number of threads, in forked children, and from several Python threads at once."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from ops.launched import launched
from unit.backends.cpu.running import Native, floats, native

import tilewright.language as pl
from tilewright.backends.cpu.emit.durations import WORTH, Durations
from tilewright.core.stmt import ForStmt
from tilewright.core.visitor import statements
from tilewright.errors import ExecutionError
from tilewright.frontend.programs import as_program
from tilewright.native import threads
from tilewright.passes.manager import PassManager

SHIFT = """
M = pl.dynamic("M")

@pl.program
class P:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[M, 32], pl.FP32], by: pl.Scalar[pl.INDEX], out: pl.InOut[pl.Tensor[[M, 32], pl.FP32]]):
        for i in pl.parallel(pl.tensor.dim(x, 0) - 3):
            with pl.at(level=pl.Level.CORE_GROUP):
                t = pl.mul(pl.load(x, [i, 0], [1, 32]), 2.0)
                out = pl.store(t, [i + by, 0], out)
        return out
"""
STORE_LINE = 12


@pytest.fixture(params=["pool", "team"])
def runtime(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Four threads of our own pool, or of torch's OpenMP runtime."""
    monkeypatch.setenv("TILEWRIGHT_NUM_THREADS", "4")
    found = None
    if request.param == "team":
        pytest.importorskip("torch")
        found = threads.openmp.__wrapped__(True)
        assert found is not None
    monkeypatch.setattr(threads, "openmp", lambda _: found)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    return request.param


def shifted(program: Native, rows: int, by: int) -> Any:
    """Return what a run leaves of rows that hold their own numbers."""
    x = np.repeat(np.arange(rows, dtype=np.float32)[:, None], 32, 1)
    out = np.full_like(x, -1)
    launched(program.native, "main", [x, by, out])
    return out


def expected(rows: int, by: int) -> Any:
    wanted = np.full((rows, 32), -1, np.float32)
    wanted[by : rows - 3 + by] = 2 * np.arange(rows - 3, dtype=np.float32)[:, None]
    return wanted


def at_once(*actions: Callable[[], None]) -> None:
    """Run every action on a thread of its own, all started together; raise what any of them raised."""
    failures: list[BaseException] = []
    start = threading.Barrier(len(actions))

    def guarded(action: Callable[[], None]) -> None:
        try:
            start.wait()
            action()
        except BaseException as error:
            failures.append(error)

    running = [threading.Thread(target=guarded, args=[action]) for action in actions]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    if failures:
        raise failures[0]


def test_python_threads_share_a_program(runtime: str) -> None:
    shift = native(SHIFT)

    def call(rows: int, by: int) -> None:
        for _ in range(100):
            np.testing.assert_array_equal(shifted(shift, rows, by), expected(rows, by))

    at_once(*(lambda rows=rows, by=by: call(rows, by) for rows, by in ((40, 0), (333, 1), (3, 2), (64, 3))))


def test_a_call_that_fails_fails_alone(runtime: str) -> None:
    shift = native(SHIFT)

    def right() -> None:
        for _ in range(100):
            np.testing.assert_array_equal(shifted(shift, 200, 2), expected(200, 2))

    def wrong(by: int, at: str) -> None:
        for _ in range(100):
            with pytest.raises(ExecutionError, match=rf"a store of 1 element\(s\) at {at} does not fit") as caught:
                shifted(shift, 100, by)
            assert caught.value.place.line == STORE_LINE

    at_once(right, right, lambda: wrong(4, r"10[0-3]"), lambda: wrong(-1, "-1"))


def test_a_program_is_right_after_it_has_failed(runtime: str) -> None:
    shift = native(SHIFT)
    for _ in range(20):
        with pytest.raises(ExecutionError):
            shifted(shift, 100, 5)
        np.testing.assert_array_equal(shifted(shift, 100, 1), expected(100, 1))


def test_programs_compile_and_run_on_several_threads_at_once(runtime: str) -> None:
    def call(factor: int) -> None:
        shift = native(SHIFT.replace("2.0", f"{factor}.0"))
        wanted = expected(50, 1)
        wanted[wanted > 0] *= factor / 2
        np.testing.assert_array_equal(shifted(shift, 50, 1), wanted)

    at_once(*(lambda factor=factor: call(factor) for factor in (2, 4, 6, 8)))


def test_the_number_of_threads_may_change_between_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    shift = native(SHIFT)
    for count in (1, 3, 2, 1, 5):
        monkeypatch.setenv("TILEWRIGHT_NUM_THREADS", str(count))
        np.testing.assert_array_equal(shifted(shift, 70, 1), expected(70, 1))


NESTED = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def cell(self, x: pl.Tensor[[6, 40], pl.FP32], i: pl.Scalar[pl.INDEX], out: pl.InOut[pl.Tensor[[6, 40], pl.FP32]]):
        j = pl.tile.get_block_idx() * 8
        out = pl.store(pl.add(pl.load(x, [i, j], [1, 8]), pl.load(out, [i, j], [1, 8])), [i, j], out)
        return out

    @pl.function(type=pl.FunctionType.Opaque)
    def row(self, x: pl.Tensor[[6, 40], pl.FP32], i: pl.Scalar[pl.INDEX], out: pl.InOut[pl.Tensor[[6, 40], pl.FP32]]):
        for j in pl.parallel(0, 40, 8):
            with pl.at(level=pl.Level.CORE_GROUP):
                out = pl.store(pl.exp(pl.load(x, [i, j], [1, 8])), [i, j], out)
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[6, 40], pl.FP32], turns: pl.Scalar[pl.INDEX],
             out: pl.InOut[pl.Tensor[[6, 40], pl.FP32]]):
        for i in pl.parallel(turns):
            out = self.row(x, i, out)
            _, task = pl.spmd_submit(self.cell, x, i, out, core_num=5)
            for j in pl.parallel(20):
                with pl.at(level=pl.Level.CORE_GROUP):
                    t = pl.load(out, [i, j * 2], [1, 2])
                    out = pl.store(pl.mul(t, 3.0), [i, j * 2], out)
        return out
"""


@pytest.mark.parametrize("turns", [0, 1, 2, 6])
def test_regions_inside_regions_run_every_turn_once(turns: int, runtime: str) -> None:
    nested = native(NESTED)
    for _ in range(10):
        nested.check(floats(6, 40), turns, np.zeros((6, 40), np.float32))


CHILD = """
import os, sys
sys.path[:0] = {path!r}
{before}
import numpy as np
from unit.backends.cpu.running import native
from unit.backends.cpu.test_parallel import SHIFT, expected, shifted
from tilewright.native import threads
"""
COUNT = """
from unit.backends.cpu.tasks import tasks

shift = native(SHIFT)
os.environ["TILEWRIGHT_NUM_THREADS"] = "1"
shifted(shift, 100, 1)
before = tasks()  # one that has ended may be among them still, and is no new one
for rows in map(int, os.environ["ROWS"].split()):
    for count in (1, 3):
        os.environ["TILEWRIGHT_NUM_THREADS"] = str(count)
        shifted(shift, rows, 1)
        print(len(tasks() - before))
((_, used),) = [key for key in threads._instances if key[0] == 3]
print("pool" if used is None else "team")
"""
FORK = """
shift = native(SHIFT)
assert (shifted(shift, 300, 1) == expected(300, 1)).all()
children = []
for _ in range(3):
    child = os.fork()
    if child == 0:
        same = all((shifted(shift, 300, by) == expected(300, by)).all() for by in (0, 1, 2, 3) * 5)
        other = native(SHIFT.replace("2.0", "4.0"))
        same = same and (shifted(other, 300, 0)[:297] == 2 * expected(300, 0)[:297]).all()
        os._exit(0 if same else 1)
    children.append(child)
print([os.waitpid(child, 0)[1] for child in children])
print((shifted(shift, 300, 1) == expected(300, 1)).all())
"""
TORCH = {"pool": "", "team": "import torch; torch.ones(1 << 20).exp()"}


def in_child(code: str, before: str, **environment: str) -> str:
    """Return what a new process prints."""
    text = CHILD.format(path=sys.path, before=before) + code
    command = [sys.executable, "-W", "ignore", "-c", text]
    quiet = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "TILEWRIGHT_SMALL_WORK": "shared", **environment}
    run = subprocess.run(command, timeout=120, capture_output=True, text=True, env=quiet)
    assert (run.stderr, run.returncode) == ("", 0)
    return run.stdout


@pytest.mark.parametrize("runtime", TORCH)
def test_as_many_threads_run_as_the_setting_says_and_torch_brings_its_own(runtime: str) -> None:
    assert in_child(COUNT, TORCH[runtime], ROWS="100") == f"0\n2\n{runtime}\n"


def test_work_that_is_not_worth_a_second_thread_stays_on_the_callers() -> None:
    assert in_child(COUNT, "", ROWS="100 2000", TILEWRIGHT_SMALL_WORK="alone") == "0\n0\n0\n2\npool\n"


def test_what_moves_whole_tensors_is_worth_a_thread_however_few_ops_it_is() -> None:
    """How large they are may only be known to the running program."""
    text = """
import tilewright.language as pl
M = pl.dynamic("M")
@pl.program
class P:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[M, 64], pl.FP32], out: pl.InOut[pl.Tensor[[4 * M, 64], pl.FP32]]):
        for i in pl.parallel(4):
            out = pl.assemble(out, x, [i * pl.tensor.dim(x, 0), 0])
        return out
"""
    program = PassManager.get_strategy().run_passes(as_program(pl.parse(text)))
    (loop,) = (stmt for stmt in statements(program["main"].body) if isinstance(stmt, ForStmt))
    assert Durations(program).each_turn(loop) >= WORTH


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_turns_that_are_counted_while_compiling_are_cut_into_pieces(
    monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    shift = native(SHIFT.replace('M = pl.dynamic("M")', "M = 1003").replace("pl.tensor.dim(x, 0)", "M"))
    monkeypatch.setenv("TILEWRIGHT_NUM_THREADS", str(threads))
    (task,) = re.findall(r"^define[^{]* @task.*?^}", shift.native.code.texts["llvm"](), re.MULTILINE | re.DOTALL)
    assert "udiv" in task
    assert (shifted(shift, 1003, 1) == expected(1003, 1)).all()


@pytest.mark.parametrize("runtime", TORCH)
def test_a_forked_child_runs_and_compiles_programs(runtime: str) -> None:
    assert in_child(FORK, TORCH[runtime], TILEWRIGHT_NUM_THREADS="3") == "[0, 0, 0]\nTrue\n"
