"""Exports to C: a C program calls what Python compiled, and is told what is wrong with its arguments."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from unit.programs.programs import HALVES, SEVERAL, program_of

import tilewright.language as pl
from tilewright import ir
from tilewright.errors import ExportError
from tilewright.ir import CompiledProgram
from tilewright.programs.c_source import source

needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
STRICT = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]


def run(folder: Path, library: str, program: str, threads: str = "2") -> str:
    """Compile a C program against an exported library; return what it prints."""
    (folder / "user.c").write_text(program)
    link = ["-o", "user", "user.c", f"-L{folder}", f"-l{library}", f"-Wl,-rpath,{folder}"]
    subprocess.run(["cc", *STRICT, *link], cwd=folder, check=True, text=True)
    environment = {"TILEWRIGHT_NUM_THREADS": threads}
    return subprocess.run([folder / "user"], check=True, text=True, capture_output=True, env=environment).stdout


USER = r"""
#include "halves.h"
#include <stdio.h>

static float x[20][64], out[20][64];

int main(void)
{
    for (int i = 0; i < 20; i++)
        for (int j = 0; j < 64; j++)
            x[i][j] = (float)(i * 64 + j);
    int status = halves(&x[0][0], 0, &out[0][0], 20), wrong = 0;
    for (int i = 0; i < 20; i++)
        for (int j = 0; j < 64; j++)
            wrong += out[i][j] != x[i][j] / 2;
    printf("%d %s %d\n", status, halves_error(status), wrong);
    printf("%d\n", halves(&x[0][0], 0, NULL, 0));
    printf("%s\n", halves_error(halves(NULL, 0, &out[0][0], 20)));
    printf("%s\n", halves_error(halves(&x[0][0], 0, &out[0][0], -1)));
    printf("%s\n", halves_error(halves(&x[0][0], 1, &out[0][0], 20)));
    printf("%s\n", halves_error(12345));
    return 0;
}
"""


@needs_compiler
@pytest.mark.parametrize("threads", ["1", "2"])
def test_a_c_program_runs_it_and_is_told_what_is_wrong(threads: str, tmp_path: Path) -> None:
    ir.compile(program_of(HALVES)).export_c(tmp_path, name="halves")
    shown = run(tmp_path, "halves", USER, threads).splitlines()
    assert shown[:4] == ["0 no error 0", "0", "`x` is NULL", "`x` would have a negative extent"]
    assert ":11:23: a store does not fit its tensor" in shown[4] and "[row, n], out)" in shown[5] and "^^^" in shown[6]
    assert shown[-1] == "no such status"


SEVERAL_USER = r"""
#include "several.h"
#include <stdio.h>

int main(void)
{
    int32_t x[4] = {0, 1, 2, 3}, by = 0;
    uint16_t halves[3] = {0x3f00, 0x3f80, 0x4000}, out[7];
    int status = several_double(x, 3, &by);
    printf("%d %d %d %d %d %d\n", status, by, x[0], x[1], x[2], x[3]);
    printf("%d %s\n", several_double(x, 3, NULL), several_error(several_double(x, 10, &by)));
    status = several_repeat(halves, out, 3);
    printf("%d %x %x %x\n", status, out[0], out[3], out[6]);
    return 0;
}
"""


@needs_compiler
def test_entries_scalars_results_and_formulas_are_exported(tmp_path: Path) -> None:
    ir.compile(program_of(SEVERAL)).export_c(tmp_path, name="several")
    shown = run(tmp_path, "several", SEVERAL_USER).splitlines()
    assert shown == ["0 4 3 5 7 9", "0 `by` must lie within 0 to 9", "0 3f00 3f80 4000"]


@pl.jit
def affine(x: pl.Tensor, n: int, s: pl.Scalar[pl.FP32], out: pl.Out[pl.Tensor]):  # pyright: ignore[reportUnknownParameterType]
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], x.shape) * n + s, [0, 0], out)
    return out


AFFINE_USER = r"""
#include "affine.h"
#include <stdio.h>

int main(void)
{
    float x[32] = {1, 2}, out[32] = {0};
    int status = affine(x, 3, 0.5f, out);
    printf("%d %g %g\n", status, out[0], out[1]);
    printf("%s; %s\n", affine_error(affine(x, 4, 0.5f, out)), affine_error(affine(x, 3, 0.25f, out)));
    return 0;
}
"""


@needs_compiler
def test_a_loaded_kernel_is_exported_with_the_numbers_it_was_compiled_for(tmp_path: Path) -> None:
    compiled = affine.compile(np.ones((4, 8), np.float32), 3, 0.5)
    compiled.specialized["s"] = 0.5
    compiled.save(tmp_path / "saved")
    CompiledProgram.load(tmp_path / "saved").export_c(tmp_path / "c")
    shown = run(tmp_path / "c", "affine", AFFINE_USER).splitlines()
    assert shown == ["0 3.5 6.5", "`n` must be 3; `s` must be 0.5, which the program was compiled for"]


@needs_compiler
def test_only_the_declared_functions_are_visible(tmp_path: Path) -> None:
    ir.compile(program_of(HALVES)).export_c(tmp_path, name="halves")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["halves.c", "halves.h", "libhalves.so"]
    if shutil.which("nm"):
        shown = subprocess.check_output(["nm", "-D", "--defined-only", tmp_path / "libhalves.so"], text=True)
        assert [line.split()[-1] for line in shown.splitlines()] == ["halves", "halves_error"]


@pytest.mark.skipif(shutil.which("c++") is None, reason="there is no C++ compiler")
def test_the_header_is_one_for_cpp_too(tmp_path: Path) -> None:
    ir.compile(program_of(SEVERAL)).export_c(tmp_path, name="several")
    (tmp_path / "user.cpp").write_text('#include "several.h"\nint main() { return several_double(0, 0, 0) == 0; }\n')
    subprocess.run(["c++", "-Wall", "-Werror", "user.cpp", "-L.", "-lseveral", "-o", "user"], cwd=tmp_path, check=True)


ODD_NAMES = """
import tilewright.language as pl
int = pl.dynamic("int")

@pl.program
class Odd:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, double: pl.Tensor[[int], pl.INT8], tw_words: pl.Scalar[pl.BOOL], ä: pl.Scalar[pl.UINT64],
             words: pl.Out[pl.Tensor[[int // 2], pl.INT8]]):
        for i in pl.range(int // 2):
            pl.write(words, [i], pl.read(double, [i]))
        return words
"""


@needs_compiler
def test_names_that_c_has_no_place_for_are_changed(tmp_path: Path) -> None:
    ir.compile(program_of(ODD_NAMES)).export_c(tmp_path)
    declared = "int Odd(const int8_t *double_, bool words_, uint64_t arg2, int8_t *words, int64_t int_);"
    assert declared in (tmp_path / "Odd.h").read_text()


@pytest.mark.parametrize("name", ["while", "2d", "a-b", "größe", "main", "entry_main", "free", "parallel"])
def test_names_that_cannot_be_a_function_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="pass name= with another"):
        ir.compile(program_of(HALVES)).export_c(tmp_path / "c", name=name)
    assert not list(tmp_path.iterdir())


RETURNS = """
import tilewright.language as pl

@pl.program
class Returns:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[4, 8], pl.FP32]):
        part = pl.slice(x, [3, 8], [1, 0])
        return part
"""


def test_what_has_no_place_in_c_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="`main` returns a tensor of its own: declare it as pl.Out"):
        ir.compile(program_of(RETURNS)).export_c(tmp_path)
    with pytest.raises(ValueError, match="Halves runs on the interpreter: compile it for the processor to export it"):
        ir.compile(program_of(HALVES), platform="interpret").export_c(tmp_path)


def test_without_a_compiler_the_error_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    compiled = ir.compile(program_of(HALVES))
    with pytest.raises(ExportError, match="takes a C compiler, and there is no cc nor gcc nor clang: install one"):
        compiled.export_c(tmp_path / "c")
    monkeypatch.setenv("CC", "tcc")
    with pytest.raises(ExportError, match="there is no tcc: install one, or name it with CC"):
        compiled.export_c(tmp_path / "c")


@needs_compiler
def test_what_the_compiler_says_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cc").write_text("#!/bin/sh\necho no such luck >&2; exit 1\n")
    (tmp_path / "cc").chmod(0o755)
    monkeypatch.setenv("CC", str(tmp_path / "cc"))
    with pytest.raises(ExportError, match="cannot make a library of `halves`:\nno such luck"):
        ir.compile(program_of(HALVES)).export_c(tmp_path / "c", name="halves")


def test_a_library_that_needs_amx_asks_for_it() -> None:
    plain, on_tiles = (source("p", [], [], features) for features in (["avx512f"], ["amx-tile", "avx512f"]))
    assert "SYS_arch_prctl" not in plain
    assert '__builtin_cpu_supports("avx512f") && syscall(SYS_arch_prctl, 0x1023, 18) == 0;' in on_tiles
