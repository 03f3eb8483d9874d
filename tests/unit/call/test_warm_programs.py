"""Programs: what they write, what goes wrong in them, and their own warm calls."""

# pyright: basic, reportInvalidTypeForm=false, reportArgumentType=false
from __future__ import annotations

import copy
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from unit.call import zoo
from unit.call.subjects import IS_NATIVE, frames, outcome
from unit.call.warming import (
    FEW,
    either,
    fresh,
    native_only,
    ones,
    took,
    warm,
)
from unit.programs.programs import HALVES, SEVERAL, UNDECLARED, program_of, rows

import tilewright.language as pl
from tilewright import errors, ir
from tilewright.runtime import CompiledProgram

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # torch's own, about sparse and quantized tensors


# what a program writes, and what goes wrong in it


def picked(x: pl.Tensor, index: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        i = pl.cast(pl.read(index, [0]), pl.INDEX)
        pl.store(pl.load(x, [i, 0], [1, 8]), [0, 0], out)
    return out


def test_what_one_program_writes_is_checked_for_all(dispatch: str) -> None:
    kernel = fresh(either)
    x, y, out = (np.ones((4, 8), np.float32) for _ in range(3))
    for which in (False, True):
        for _ in range(4):
            kernel(x, y, which, out)
    sealed = zoo.sealed(np.ones((4, 8), np.float32))
    with pytest.raises(ValueError, match="`y` is written, but the array given is read-only"):
        kernel(x, sealed, True, out)
    assert (sealed == 1.0).all()
    kernel(x, sealed, False, out)
    with pytest.raises(ValueError, match="shares memory"):
        kernel(x, x, True, out)


def test_an_error_of_a_running_program_is_the_same_each_time(dispatch: str) -> None:
    kernel, x, out = fresh(picked), ones(), torch.zeros(1, 8)
    right, wrong = (torch.tensor([n], dtype=torch.int32) for n in (1, 9))
    first = outcome(kernel, [x, wrong, out], {})
    said = "in kernel `picked`: axis 0: a load of 1 element(s) at 9 starts outside 0 to"
    assert first[1] == "ExecutionError" and said in first[2]
    warm(kernel, x, right, out)
    assert [outcome(kernel, [x, wrong, out], {})[:3] for _ in range(4)] == [first[:3]] * 4
    assert took(kernel, x, right, out) or dispatch == "python"


# programs

X = rows(8)


def often(program: Any, *args: Any) -> Any:
    for _ in range(4):
        program(*args)
    return program


def test_a_program_that_is_called_often_stays_what_it_was() -> None:
    program = often(ir.compile(program_of(HALVES)), X, 0, np.zeros_like(X))
    assert isinstance(program, CompiledProgram) and type(program).__name__ == "CompiledProgram"
    assert repr(program) == "CompiledProgram('Halves', platform='cpu')"
    assert type(program).__doc__ == CompiledProgram.__doc__
    assert program(X, 0, out=np.zeros_like(X)) is None and program(X, 0, np.zeros_like(X), config=None) is None
    out = np.zeros_like(X)
    assert copy.copy(program)(X, 0, out) is None
    np.testing.assert_array_equal(out, X / 2)
    with pytest.raises(errors.ExecutionError) as again:
        program(X, 3, out)
    with pytest.raises(errors.ExecutionError) as first:
        ir.compile(program_of(HALVES))(X, 3, out)
    assert str(again.value).partition(":")[2] == str(first.value).partition(":")[2]  # but for the name of the text


def test_entries_are_warm_each_on_its_own() -> None:
    program, x, y = ir.compile(program_of(UNDECLARED)), np.zeros(4, np.int32), np.arange(4, dtype=np.int32)
    often(program, x, y)
    assert x[0] == 1 and (frames(program, x, y) <= FEW or not IS_NATIVE)
    several = ir.compile(program_of(SEVERAL))
    often(several.repeat, torch.ones(2, dtype=torch.bfloat16), torch.zeros(5, dtype=torch.bfloat16))
    with pytest.raises(TypeError, match="several entries"):
        several(x)
    ones_ = np.ones(4, np.int32)
    assert [several.double(ones_, 1)[0] for _ in range(6)] == [2] * 6


@native_only
def test_first_calls_that_teach_nothing_are_no_hindrance() -> None:
    program, out = ir.compile(program_of(HALVES)), np.zeros_like(X)
    often(program, X, np.int64(0), out)
    for _ in range(20):
        program(X, 0, out)
    assert frames(program, X, 0, out) == 0


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


UPDATED = """
import tilewright.language as pl

@pl.program
class Updated:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.InOut[pl.Tensor[[4, 8], pl.FP32]]) -> pl.Tensor[[4, 8], pl.FP32]:
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [0, 0], [4, 8]) * 2.0, [0, 0], x)
        return x
"""

GIVING = [(HALVES, (X, 0)), (UPDATED, (np.zeros((4, 8), np.float32),))]


@native_only
@pytest.mark.parametrize(("text", "args"), GIVING, ids=["an output", "what it updates"])
def test_a_loaded_program_is_warm_where_it_gives_back(text: str, args: tuple[Any, ...], tmp_path: Path) -> None:
    made = ir.compile(program_of(text))
    made.save(tmp_path / "saved")
    program = CompiledProgram.load(tmp_path / "saved")
    np.testing.assert_array_equal(program(*args), made(*args))
    for _ in range(6):
        program(*args)
    assert frames(program, *args) == 0


WITHOUT_LLVM = """
import os, sys
import numpy as np
from tilewright.ir import CompiledProgram
program = CompiledProgram.load(sys.argv[1])
x, out = np.ones((8, 64), np.float32), np.zeros((8, 64), np.float32)
for _ in range(50):
    program(x, 0, out)
assert "llvmlite" not in sys.modules, "a few calls do without"
child = os.fork()
if not child:
    sys.modules["llvmlite"] = None
for _ in range(500):
    out[:] = 0
    program(x, 0, out)
    assert out.sum() == 256
if not child:
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0, "there may be none at all"
assert "llvmlite" in sys.modules, "many calls are worth it"
"""


@native_only
def test_a_loaded_program_loads_llvm_late_or_never(tmp_path: Path) -> None:
    ir.compile(program_of(HALVES)).save(tmp_path / "saved")
    command = [sys.executable, "-c", WITHOUT_LLVM, str(tmp_path / "saved")]
    environment = {**os.environ, "TILEWRIGHT_CACHE_DIR": "off"}  # which may hold what LLVM would make
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
