"""Stepping: kernels run by their own lines, as debuggers see them."""
# pyright: reportCallIssue=false, reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

import inspect
import io
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any, cast

import numpy as np
import pytest
from conftest import Golden
from unit.interpret.stepped_kernels import (
    KEPT,
    SEEN,
    asserting,
    carrying,
    dispatching,
    exchanged,
    gridded,
    keeping,
    kernel,
    row_sums,
    squared,
    too_big,
    tuned,
)

import tilewright.language as pl
from tilewright import ir
from tilewright.core.program import Program
from tilewright.errors import ExecutionError, UncallableError
from tilewright.programs.kernel_pdb import KernelPdb
from tilewright.runtime import RunConfig

HERE = Path(__file__)
KERNELS = HERE.with_name("stepped_kernels.py")
NEXT = ["next"]
X = np.arange(96, dtype=np.float32).reshape(12, 8)


def test_pdb_steps_through_a_kernel_and_its_helper(monkeypatch: pytest.MonkeyPatch, golden: Golden) -> None:
    commands = [
        "p t.shape",
        "p row, offset",
        "print(pl.row_max(t)[1], t[0, :3])",
        *NEXT,
        "print(out[4, :2])",
        *NEXT,
        *NEXT,
        "step",
        *NEXT,
        *NEXT,
    ]
    commands += ["print(twice[0])", "up", "p row", "continue", ""]
    said = io.StringIO()
    pdb = KernelPdb(stdin=io.StringIO("\n".join(commands)), stdout=said, nosigint=True)
    pdb.use_rawinput = False
    monkeypatch.setattr(sys, "breakpointhook", lambda: pdb.set_trace(sys._getframe(1)))  # pyright: ignore[reportPrivateUsage]
    np.testing.assert_array_equal(kernel.debug(X), X * 2 + 2)
    sys.settrace(None)
    golden("stepping.txt", said.getvalue().replace(str(KERNELS), KERNELS.name), HERE.parent)


def test_where_shows_the_frames_of_authors_and_of_nobody_between_them(monkeypatch: pytest.MonkeyPatch) -> None:
    said = io.StringIO()
    pdb = KernelPdb(
        stdin=io.StringIO("\n".join(["step"] * 4 + ["where", "up", "up", "down", "continue", ""])), stdout=said
    )
    pdb.use_rawinput = False
    monkeypatch.setattr(sys, "breakpointhook", lambda: pdb.set_trace(sys._getframe(1)))  # pyright: ignore[reportPrivateUsage]
    kernel.debug(X)
    sys.settrace(None)
    shown = said.getvalue().partition(f"{HERE}(")[2]
    files = [line.strip("> ").partition("(")[0] for line in shown.splitlines()[1:] if ".py(" in line]
    assert files and not [file for file in files if "tilewright/" in file and "tests" not in file]
    assert files[0] == str(KERNELS)


def test_pdb_shows_what_a_helper_returns(monkeypatch: pytest.MonkeyPatch) -> None:
    said = io.StringIO()
    pdb = KernelPdb(stdin=io.StringIO("\n".join([*["step"] * 5, "return", "retval", "c", ""])), stdout=said)
    pdb.use_rawinput = False
    monkeypatch.setattr(sys, "breakpointhook", lambda: pdb.set_trace(sys._getframe(1)))  # pyright: ignore[reportPrivateUsage]
    kernel.debug(X)
    sys.settrace(None)
    _, _, returned = said.getvalue().partition("doubled()->tile[4, 8] of")
    assert "tile[4, 8] of fp32\n[[129. 131." in returned


def test_every_line_has_its_names_before_the_next_one_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "breakpointhook", lambda: None)
    lines: list[tuple[str, int]] = []

    def trace(frame: FrameType, event: str, arg: object) -> Any:
        if frame.f_code.co_name in ("kernel", "doubled") and event in ("line", "call"):
            lines.append((event, frame.f_lineno - frame.f_code.co_firstlineno))
            assert event == "line" or "__tilewright__" in frame.f_locals
        return trace

    sys.settrace(trace)
    kernel.debug(X[:4])
    sys.settrace(None)
    turn = [("line", 2), ("line", 3), ("line", 4), ("call", 0), ("line", 1), ("line", 2)]
    assert lines == [("call", 0), ("line", 1), *turn, *(("line", n) for n in (5, 6, 8, 2, 9))]


def test_turns_come_in_order_or_as_a_seed_shuffles_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "breakpointhook", lambda: None)
    found: list[list[int]] = []
    for seed in (None, 1, 1, 2):
        SEEN.clear()
        np.testing.assert_array_equal(kernel.debug(X, seed=seed), X * 2 + 2)
        found.append([*SEEN])
    assert found[0] == [0, 4, 8] and found[1] == found[2]
    assert all(sorted(order) == [0, 4, 8] for order in found) and found[1] != found[0]


def test_a_loop_is_entered_at_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    stops: list[int] = []
    monkeypatch.setattr(sys, "breakpointhook", lambda: stops.append(sys._getframe(1).f_locals["row"]))  # pyright: ignore[reportPrivateUsage]
    SEEN.clear()
    np.testing.assert_array_equal(kernel.debug(X, at={"row": 8}), X * 2 + 2)
    assert (stops, SEEN) == ([8], [8])
    with pytest.raises(ValueError, match="no loop of kernel had a turn row = 5"):
        kernel.debug(X, at={"row": 5})
    with pytest.raises(ValueError, match="no loop of kernel is over `zz`: there is row"):
        kernel.debug(X, at={"zz": 1})
    with pytest.raises(TypeError, match=r"`at` takes the turns of loops by their variables, as in .*, got 3"):
        kernel.debug(X, at=cast("Any", 3))


def test_blocks_are_entered_at_a_turn_and_loops_inside_each_other_in_the_last_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stops: list[tuple[int, int | None]] = []

    def hook() -> None:
        seen = sys._getframe(1).f_locals  # pyright: ignore[reportPrivateUsage]
        stops.append((seen["b"], seen.get("c")))

    monkeypatch.setattr(sys, "breakpointhook", hook)
    for at, expected in [({"b": 2}, (2, None)), ({"b": 2, "c": 4}, (2, 4)), ({"c": 4, "b": 3}, (3, 4))]:
        SEEN.clear()
        stops.clear()
        np.testing.assert_array_equal(gridded.debug(X[:4], at=at), X[:4] * 2)
        assert stops == [expected]
        assert SEEN[0] == (expected[0], expected[1] or 0)
    with pytest.raises(
        ValueError, match="is over `q`: there is b, c; what is written out, as over a list, has no turns"
    ):
        gridded.debug(X[:4], at={"q": 1})


def test_loops_that_carry_leave_and_go_on_compute_the_same(capsys: pytest.CaptureFixture[str], golden: Golden) -> None:
    out = np.zeros((4, 8), np.float32)
    carrying.debug(X[:4], 5, out)
    np.testing.assert_array_equal(out, X[:4] * 3 * 171)
    golden("printed_tiles.txt", capsys.readouterr().out, HERE.parent)


def test_kernels_that_are_called_are_stepped_through_as_well(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEWRIGHT_DEBUG", "1")
    np.testing.assert_array_equal(dispatching(X[:4]), X[:4].sum(1, keepdims=True))
    assert capsys.readouterr().out == "(4, 8) fp32\n"


@pl.program
class Shifted:
    @pl.function(type=pl.FunctionType.InCore)
    def shift(
        self, x: pl.Tensor[[4, 8], pl.FP32], out: pl.Out[pl.Tensor[[4, 8], pl.FP32]]
    ) -> pl.Tensor[[4, 8], pl.FP32]:
        t: pl.Tile[[4, 8], pl.FP32] = pl.load(x, [0, 0], [4, 8])
        return pl.store(pl.add(t, 1.0), [0, 0], out)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self, x: pl.Tensor[[4, 8], pl.FP32], out: pl.Out[pl.Tensor[[4, 8], pl.FP32]]
    ) -> pl.Tensor[[4, 8], pl.FP32]:
        out = self.shift(x, out)
        return out


@pytest.mark.parametrize("program", [Shifted, replace(Shifted, again=None)], ids=["written", "printed"])
def test_programs_are_stepped_through_by_their_own_text(program: Program) -> None:
    names: set[tuple[str, str]] = set()

    def trace(frame: FrameType, event: str, arg: object) -> None:
        names.add((frame.f_code.co_name, frame.f_code.co_filename))

    compiled = ir.compile(program, platform="interpret")
    sys.settrace(trace)
    result = compiled.debug(X[:4])
    sys.settrace(None)
    np.testing.assert_array_equal(result, X[:4] + 1)
    files = {file for name, file in names if name in ("shift", "main")}
    assert files == {str(HERE)} if program is Shifted else all(file.startswith("<Shifted>") for file in files)


def test_a_program_that_was_kept_or_saved_is_stepped_through_or_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path / "cache"))
    squared.cache_clear()
    made, out = squared.compile(X[:4]), np.zeros((4, 8), np.float32)
    squared.cache_clear()
    kept = squared.compile(X[:4])
    assert squared.cache_info().compiles == 0  # only its declaration is left of the program
    np.testing.assert_array_equal(kept.debug(X[:4]), X[:4] ** 2)
    kept.debug(X[:4], out)
    np.testing.assert_array_equal(out, X[:4] ** 2)
    assert kept.as_pto() == made.as_pto()
    kept.save(tmp_path / "saved")
    saved = ir.CompiledProgram.load(tmp_path / "saved")
    for ask in (lambda: saved.debug(X[:4]), saved.as_pto, saved.page):
        with pytest.raises(ValueError, match="only the code was saved"):
            ask()


def test_what_a_kernel_asserts_is_reported_at_its_line() -> None:
    with pytest.raises(ExecutionError, match="does not hold") as caught:
        asserting.debug(X[:4])
    frames = [entry.name for entry in caught.traceback]
    assert "asserting" in frames


def test_an_error_shows_the_frames_of_authors_and_of_nobody_between_them(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.ones((4, 8), np.float32)
    for value in ("0", "1"):
        monkeypatch.setenv("TILEWRIGHT_DEBUG", value)
        with pytest.raises(AssertionError, match="too big") as caught:
            (too_big if value == "1" else too_big.debug)(x)
        _, *frames, last = [(Path(frame.path).name, frame.name) for frame in caught.traceback]
        assert frames == [("tracebacks.py", "call")] and last == ("stepped_kernels.py", "too_big")


LOOKED: list[tuple[str, list[str]]] = []


def look(*args: object, **named: object) -> None:
    """Stand for another debugger, which looks at whoever calls it."""
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    LOOKED.append((frame.f_code.co_name, sorted(name for name in frame.f_locals if not name.startswith("_"))))


def test_another_debugger_stops_in_the_kernel_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONBREAKPOINT", f"{__name__}.look")
    monkeypatch.setattr(sys, "breakpointhook", sys.__breakpointhook__)
    LOOKED.clear()
    stopped.debug(np.ones((4, 8), np.float32))
    assert LOOKED == [("stopping", ["t"])]


def test_a_line_of_the_kernel_computes_at_the_prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    said, lines = io.StringIO(), ["p pl.row_sum(t * 2.0)", "p pl.exp(t - pl.row_max(t))", "p pl.where(t > 0.5, t, 0.0)"]
    pdb = KernelPdb(stdin=io.StringIO("\n".join([*lines, "c", ""])), stdout=said, nosigint=True)
    pdb.use_rawinput = False
    monkeypatch.setattr(sys, "breakpointhook", lambda: pdb.set_trace(sys._getframe(1)))  # pyright: ignore[reportPrivateUsage]
    stopped.debug(np.ones((4, 8), np.float32))
    shown = said.getvalue()
    assert "***" not in shown and "tile[4, 1] of fp32\n[[16.]" in shown and shown.count("tile[4, 8] of fp32") == 2


OUTSIDE = """
import numpy as np
import tilewright.language as pl
@pl.jit.inline
def half(t):
    return t * 0.5
@pl.jit
def k(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], [4, 8])
        u = half(t)
        pl.store(u, [0, 0], out)
    return out
k(np.ones((4, 8), np.float32))
print("over")
"""


def test_a_debugger_that_python_started_steps_from_line_to_line(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(OUTSIDE)
    commands = "\n".join(["b 10", "c", *["step"] * 3, "where", *["next"] * 5, "q", ""])
    environment = {**os.environ, "TILEWRIGHT_DEBUG": "1"}
    command = [sys.executable, "-m", "pdb", str(script)]
    done = subprocess.run(command, input=commands, env=environment, capture_output=True, text=True, timeout=120)
    stops = re.findall(r"script.py\((\d+)\)", done.stdout)
    assert stops == "2 10 11 5 6 14 11 6 6 12 13 13 15".split()
    assert "tilewright/" not in done.stdout


def test_copies_of_tiles_are_kept_as_they_were() -> None:
    KEPT.clear()
    keeping.debug(X[:4, :8])
    *tiles, out = KEPT
    for tile in tiles:
        assert tile.title == "tile[4, 8] of fp32"
        np.testing.assert_array_equal(tile.numpy(), X[:4, :8])
    assert np.ma.getmaskarray(out.numpy()).all(), "nobody had written to it then"


def test_arguments_are_those_that_the_author_wrote(monkeypatch: pytest.MonkeyPatch) -> None:
    said = io.StringIO()
    pdb = KernelPdb(stdin=io.StringIO("args\nc\n"), stdout=said, nosigint=True)
    pdb.use_rawinput = False
    monkeypatch.setattr(sys, "breakpointhook", lambda: pdb.set_trace(sys._getframe(1)))  # pyright: ignore[reportPrivateUsage]
    stopped.debug(np.ones((4, 8), np.float32))
    assert "t = tile[4, 8]" in said.getvalue() and "__tilewright__" not in said.getvalue()


def test_a_tuned_kernel_runs_with_what_is_given_or_known_to_be_best(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_DEBUG", "1")
    SEEN.clear()
    np.testing.assert_array_equal(tuned.debug(X[:4], SIZE=2), X[:4])
    np.testing.assert_array_equal(tuned(X[:4]), X[:4])
    assert SEEN == [2, 2, 2, 2]


def test_ranks_are_stepped_through_one_after_the_other_from_wait_to_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    x, out, config = np.stack([X[:4], X[4:8]]), np.zeros((2, 4, 8), np.float32), RunConfig(device_ids=[0, 1])
    SEEN.clear()
    np.testing.assert_array_equal(exchanged.debug(x, config=config), x[::-1] + 1)
    assert SEEN == ["host", "host", "sends 0", "sends 1", "has 1", "has 0"]
    opened: list[object] = []
    monkeypatch.setattr(sys, "breakpointhook", lambda: opened.append(inspect.stack()[1].frame.f_locals["me"]))
    exchanged.debug(x, config=config, at={"half": 2})
    assert opened == [1]
    with pytest.raises(ValueError, match="no loop of exchanged had a turn half = 3"):
        exchanged.debug(x, config=config, at={"half": 3})
    monkeypatch.setenv("TILEWRIGHT_DEBUG", "1")
    exchanged(x, out, config=config)
    np.testing.assert_array_equal(out, x[::-1] + 1)


@pl.jit.inline
def stopping(t: pl.Tile) -> pl.Tile:
    breakpoint()
    return t


@pl.jit
def stopped(x: pl.Tensor[[4, 8], pl.FP32], out: pl.Out[pl.Tensor[[4, 8], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(stopping(pl.load(x, [0, 0], [4, 8])), [0, 0], out)
    return out


def test_a_breakpoint_in_a_helper_names_the_kernel_to_debug() -> None:
    with pytest.raises(UncallableError, match=r"help: stopped\.debug\(\.\.\.\) runs it line by line"):
        stopped(X[:4])


def test_debug_takes_no_kernels_that_others_call() -> None:
    with pytest.raises(TypeError, match="only a @pl.jit function"):
        row_sums.debug(X)
