"""Names outside ASCII: what Python lets an author call kernels, helpers, scopes and arguments goes all the way."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright.language as pl
from tilewright import ir
from tilewright.errors import ExportError
from tilewright.ir import CompiledProgram
from tilewright.ir.pass_manager import PassManager
from tilewright.native.llvm import spelled

Matrix = pl.Tensor[[4, 8], pl.FP32]
X = np.full((4, 8), 3.0, np.float32)


@pl.jit.incore
def hälfte(größe: pl.Tensor, ergebnis: pl.Out[pl.Tensor]):
    ergebnis = pl.store(pl.load(größe, [0, 0], [4, 8]) * 0.5, [0, 0], ergebnis)
    return ergebnis


@pl.jit
def teile(größe: pl.Tensor, ergebnis: pl.Out[pl.Tensor]):
    ergebnis = hälfte(größe, ergebnis)
    return ergebnis


@pl.jit
def 半分(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    for i in pl.parallel(4):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="größe"):
            out = pl.store(pl.load(x, [i, 0], [1, 8]) * 0.5, [i, 0], out)
    return out


@pl.program
class Zwölf:
    @pl.function(type=pl.FunctionType.InCore)
    def hälfte(self, x: Matrix, out: pl.Out[Matrix]) -> Matrix:
        return pl.store(pl.load(x, [0, 0], [4, 8]) * 0.5, [0, 0], out)

    @pl.function(type=pl.FunctionType.Orchestration)
    def größe(self, x: Matrix, out: pl.Out[Matrix]) -> Matrix:
        return self.hälfte(x, out)  # pyright: ignore[reportCallIssue, reportUnknownVariableType]


@pytest.mark.parametrize("kernel", [teile, 半分])
def test_kernels_helpers_arguments_and_scopes_have_any_name_that_python_allows(kernel: Any) -> None:
    np.testing.assert_array_equal(kernel(X), X / 2)


def test_a_program_of_such_names_is_saved_and_shown(tmp_path: Path) -> None:
    compiled = ir.compile(Zwölf, output_dir=tmp_path / "größe")
    folder = Path(os.fspath(compiled))
    assert "größe" in (folder / "program.py").read_text(encoding="utf-8")
    compiled.save(tmp_path / "gespeichert")
    again = CompiledProgram.load(tmp_path / "gespeichert")
    np.testing.assert_array_equal(again(X), X / 2)


def test_a_hint_is_the_name_that_python_reads_again() -> None:
    @pl.program
    class Ligature:
        @pl.function(type=pl.FunctionType.Orchestration)
        def main(self, x: Matrix, out: pl.Out[Matrix]):
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="\ufb01rst"):  # two letters in one character
                out = pl.store(pl.load(x, [0, 0], [4, 8]), [0, 0], out)

    lowered = PassManager.get_strategy().run_passes(Ligature)
    assert "def first(" in str(lowered)
    assert str(pl.parse(str(lowered))) == str(lowered)


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_c_calls_such_a_program_by_another_name(tmp_path: Path) -> None:
    compiled = ir.compile(Zwölf)
    with pytest.raises(ExportError, match="no C function can be called 'Zwölf': pass name="):
        compiled.export_c(tmp_path)
    compiled.export_c(tmp_path, name="twelve")
    assert "int twelve(" in (tmp_path / "twelve.h").read_text()


def test_of_several_entries_the_one_that_c_cannot_name_is_to_be_renamed(tmp_path: Path) -> None:
    @pl.program
    class Two:
        @pl.function(type=pl.FunctionType.Orchestration)
        def first(self, x: Matrix, out: pl.Out[Matrix]):
            out[:, :] = x[:, :]

        @pl.function(type=pl.FunctionType.Orchestration)
        def zwölf(self, x: Matrix, out: pl.Out[Matrix]):
            out[:, :] = x[:, :]

    with pytest.raises(ExportError, match="no C function can be called 'Two_zwölf': rename `zwölf`"):
        ir.compile(Two).export_c(tmp_path)


def test_different_names_have_different_symbols() -> None:
    names = ["größe", "grösse", "gr$f6$e", "gr_f6_e", "gr.f6.e", "größe" + "x", "𝔵"]
    symbols = [spelled(name) for name in names]
    assert len({*symbols}) == len(names)
    assert all(symbol.isascii() for symbol in symbols)
    assert spelled("plain_1") == "plain_1"
