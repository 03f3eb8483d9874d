"""Shortcuts: programs that are called often are called without Python, and nothing else about them changes."""

from __future__ import annotations

import copy
import gc
import os
import subprocess
import sys
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from unit.programs.programs import HALVES, SEVERAL, UNDECLARED, program_of, rows

from tilewright import ir, settings
from tilewright.call.haste import LATE
from tilewright.errors import ExecutionError
from tilewright.ir import CompiledProgram

X = rows(8)


def often(program: Any, *args: Any) -> Any:
    for _ in range(4):
        program(*args)
    return program


def halves() -> CompiledProgram:
    return often(ir.compile(program_of(HALVES)), X, 0, np.zeros_like(X))


def _asked(*_: object) -> None:
    raise AssertionError("Python was asked")


def takes_shortcut(program: Any, monkeypatch: pytest.MonkeyPatch, *args: Any) -> bool:
    """Return whether a call never reaches Python."""
    with monkeypatch.context() as patched:
        patched.setattr("tilewright.programs.entry.bind", _asked)
        try:
            program(*args)
        except AssertionError:
            return False
    return True


@pytest.mark.parametrize("count", [8, 24])
def test_a_program_that_is_called_often_is_called_without_python(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    program, x, out = halves(), rows(count), np.zeros((count, 64), np.float32)
    assert takes_shortcut(program, monkeypatch, x, 0, out)
    np.testing.assert_array_equal(out, x / 2)
    tensor, into = torch.as_tensor(x), torch.zeros(count, 64)
    assert takes_shortcut(program, monkeypatch, tensor, 0, into) and torch.equal(into, tensor / 2)


@pytest.mark.parametrize("array", [np.asarray, torch.as_tensor], ids=["numpy", "torch"])
def test_calls_by_name_and_for_results_leave_python_too(array: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    program, x = ir.compile(program_of(HALVES)), array(X)
    names: dict[str, Any] = dict(zip(program.param_names, (x, 0, array(np.zeros_like(X))), strict=True))
    for _ in range(6):
        program(x, 0)
        program(**names)
    with monkeypatch.context() as patched:
        patched.setattr("tilewright.programs.entry.bind", _asked)
        first, second = program(x, 0), program(x, 0)
        assert program(**dict(reversed(names.items()))) is None
    assert type(first) is type(x) and first is not second
    for half in (first, second, names[program.param_names[2]]):
        np.testing.assert_array_equal(np.asarray(half), X / 2)
    first[:] = 0
    np.testing.assert_array_equal(np.asarray(program(x, 0)), X / 2)


def test_calls_for_results_are_checked_as_ever() -> None:
    program = ir.compile(program_of(HALVES))
    for count in (8, 24, 8, 24) * 3:
        x = rows(count)
        np.testing.assert_array_equal(program(x, 0), x / 2)
    with pytest.raises(TypeError, match="float64"):
        program(X.astype(np.float64), 0)
    with pytest.raises(TypeError, match="is a scalar"):
        program(X, 0.5)
    with pytest.raises(ValueError, match="expects rank"):
        program(X[0], 0)
    turned = np.asfortranarray(X)
    np.testing.assert_array_equal(program(turned, 0), X / 2)


def test_empty_tensors_and_those_with_gaps_work_as_ever() -> None:
    program, out = halves(), np.zeros((8, 128), np.float32)
    assert program(rows(0), 0, np.zeros((0, 64), np.float32)) is None
    assert program(torch.zeros(0, 64), 0, torch.zeros(0, 64)) is None
    assert program(X, 0, out[:, ::2]) is None
    np.testing.assert_array_equal(out[:, ::2], X / 2)
    assert not out[:, 1::2].any()


def test_it_stays_what_it_was() -> None:
    program = halves()
    assert isinstance(program, CompiledProgram) and type(program).__name__ == "CompiledProgram"
    assert repr(program) == "CompiledProgram('Halves', platform='cpu')"
    assert type(program).__doc__ == CompiledProgram.__doc__
    np.testing.assert_array_equal(program(X, 0), X / 2)
    np.testing.assert_array_equal(program(n=0, x=X), X / 2)
    assert program(X, 0, out=np.zeros_like(X)) is None and program(X, 0, np.zeros_like(X), config=None) is None


def test_what_goes_wrong_inside_is_raised_as_ever() -> None:
    program, out = ir.compile(program_of(HALVES)), np.zeros_like(X)
    with pytest.raises(ExecutionError) as slow:
        program(X, 3, out)
    often(program, X, 0, out)
    with pytest.raises(ExecutionError) as fast:
        program(X, 3, out)
    assert str(fast.value) == str(slow.value)


def test_extents_of_one_name_must_agree() -> None:
    with pytest.raises(ValueError, match="`out` expects shape"):
        halves()(X, 0, np.zeros((9, 64), np.float32))


def test_entries_have_shortcuts_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    program, x, y = ir.compile(program_of(UNDECLARED)), np.zeros(4, np.int32), np.arange(4, dtype=np.int32)
    often(program, x, y)
    assert takes_shortcut(program, monkeypatch, x, y) and x[0] == 1
    several = ir.compile(program_of(SEVERAL))
    often(several.repeat, torch.ones(2, dtype=torch.bfloat16), torch.zeros(5, dtype=torch.bfloat16))
    assert type(several) is CompiledProgram, "which entry is meant has to be said"
    with pytest.raises(TypeError, match="several entries"):
        several(x)


def test_results_are_returned_where_there_is_no_output() -> None:
    entry, x = ir.compile(program_of(SEVERAL)).double, np.ones(4, np.int32)
    assert [entry(x, 1)[0] for _ in range(6)] == [2] * 6


def test_numbers_are_checked_and_none_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    program, out = halves(), np.zeros_like(X)
    for wrong in (0.0, True, "0", 1 << 70):
        with pytest.raises(TypeError, match="`n` is a scalar"):
            program(X, wrong, out)
    for number in range(-40, 0):
        with pytest.raises(ExecutionError), monkeypatch.context() as patched:
            patched.setattr("tilewright.programs.entry.bind", _asked)
            program(X, number, out)
    assert takes_shortcut(program, monkeypatch, X, 0, out)


def test_a_start_that_teaches_nothing_is_no_hindrance(monkeypatch: pytest.MonkeyPatch) -> None:
    program, out = ir.compile(program_of(HALVES)), np.zeros_like(X)
    often(program, X, np.int64(0), out)
    for _ in range(20):
        program(X, 0, out)
    assert takes_shortcut(program, monkeypatch, X, 0, out)


def test_a_change_of_threads_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    program, out = halves(), np.zeros_like(X)
    monkeypatch.setenv("TILEWRIGHT_NUM_THREADS", "2" if settings.num_threads() != 2 else "3")
    assert not takes_shortcut(program, monkeypatch, X, 0, out)
    for _ in range(200):
        program(X, 0, out)
    assert takes_shortcut(program, monkeypatch, X, 0, out)


def test_a_subclass_that_looks_at_its_calls_sees_them_all() -> None:
    class Counted(CompiledProgram):
        calls = 0

        def __call__(self, *args: Any, **named: Any) -> Any:
            self.calls += 1
            return super().__call__(*args, **named)

    made = ir.compile(program_of(HALVES))
    assert made.artifact is not None
    program: Any = Counted.of(made.artifact)
    often(program, X, 0, np.zeros_like(X))
    often(program, X, 0, np.zeros_like(X))
    assert program.calls == 8


def test_a_copy_runs_as_well() -> None:
    out = np.zeros_like(X)
    assert copy.copy(halves())(X, 0, out) is None
    np.testing.assert_array_equal(out, X / 2)


def test_a_program_that_nobody_holds_is_forgotten() -> None:
    program = halves()
    held = weakref.ref(program)
    del program
    gc.collect()
    assert held() is None


def test_many_threads_find_it_together() -> None:
    program = ir.compile(program_of(HALVES))

    def call(number: int) -> bool:
        x, out = rows(1 + number % 7), np.zeros((1 + number % 7, 64), np.float32)
        for _ in range(200):
            program(x, 0, out)
        return bool((out == x / 2).all())

    with ThreadPoolExecutor(6) as pool:
        assert all(pool.map(call, range(24)))


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_takes_it_too() -> None:
    program, out = halves(), np.zeros_like(X)
    child = os.fork()
    if child == 0:
        program(X, 0, out)
        often(program, X, 0, out)
        os._exit(0 if (out == X / 2).all() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_python_takes_every_call_where_it_is_asked_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_DISPATCH", "python")
    assert type(halves()) is CompiledProgram


WITHOUT_LLVM = """
import sys
import numpy as np
from tilewright.ir import CompiledProgram
program = CompiledProgram.load(sys.argv[1])
if sys.argv[2] == "none":
    sys.modules["llvmlite"] = None
x, out = np.ones((8, 64), np.float32), np.zeros((8, 64), np.float32)
for _ in range(int(sys.argv[3])):
    program(x, 0, out)
print(type(program) is CompiledProgram, sys.modules.get("llvmlite") is None, float(out.sum()))
"""


@pytest.mark.parametrize(
    ("llvm", "calls", "expected"),
    [("none", 2 * LATE, "True True 256.0"), ("there", LATE - 1, "True True 256.0"), ("there", LATE, "False")],
)
def test_a_loaded_program_loads_llvm_late_or_never(llvm: str, calls: int, expected: str, tmp_path: Path) -> None:
    halves().save(tmp_path / "saved")
    (tmp_path / "run.py").write_text(WITHOUT_LLVM, encoding="utf-8")
    environment = {**os.environ, "TILEWRIGHT_CACHE_DIR": "off"}
    command = [sys.executable, str(tmp_path / "run.py"), str(tmp_path / "saved"), llvm, str(calls)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.startswith(expected), done.stdout + done.stderr
