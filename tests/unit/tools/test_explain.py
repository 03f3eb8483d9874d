"""The explain command: a call held against the machine, and what was made of each line."""
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import GOLDEN, Golden

import tilewright.language as pl
from tilewright.native import peaks, target
from tilewright.native.target import Target
from tilewright.programs import timings
from tilewright.runtime import RunConfig
from tilewright.tools import cli

KERNELS = """
import tilewright.language as pl

@pl.jit
def attend(q: pl.Tensor[[64, 64], pl.FP32], k: pl.Tensor[[64, 64], pl.FP32], out: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
    for r in pl.range(0, 64, 16):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="rows"):
            t = pl.load(q, [r, 0], [16, 64])
            scores = pl.matmul(pl.exp(t - pl.row_max(t)), pl.load(k, [0, 0], [64, 64]))
            pl.store(scores / pl.row_sum(scores), [r, 0], out)
    return out
"""


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine of two threads on which a call takes a millisecond, and the program half of that."""
    monkeypatch.setenv("TILEWRIGHT_NUM_THREADS", "2")
    monkeypatch.setattr(
        timings, "timed", lambda run, rounds, elapsed, **_: (1e-3 if elapsed is timings.wall else 5e-4,)
    )
    monkeypatch.setattr(peaks, "peaks", lambda threads: peaks.Peaks(100e9, 10e9, threads))


def test_explain_says_what_limits_a_kernel_and_what_to_try(
    measured: None, tmp_path: Path, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    path = tmp_path / "kernels.py"
    path.write_text(KERNELS, encoding="utf-8")
    assert cli.main(["explain", str(path)]) == 0
    text = re.sub(r"(vectors of|keeps) \d+", r"\1 N", capsys.readouterr().out)
    golden("explain.txt", text, GOLDEN / "commands")
    assert cli.main(["explain", str(path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["flops"], found["bytes"]) == (2 * 64**3 + 64 * 64 * 5, 3 * 64 * 64 * 4)
    assert [limit["share"] for limit in found["limits"]] == [
        found["bytes"] / 5e-4 / 10e9,
        found["flops"] / 5e-4 / 100e9,
    ]


def test_what_is_faster_than_memory_is_said_to_come_from_caches(
    measured: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peaks, "peaks", lambda threads: peaks.Peaks(100e9, 1e6, threads))
    x = np.ones((256, 64), np.float32)
    found = copied.compile(x).explain(x)
    assert found.bound_by == "neither: it uses memory out of caches and 0 % of FMA"
    assert "(out of caches)" in str(found) and "waits for memory" not in str(found)
    assert found.plain()["limits"][0]["is_passed"]


def test_more_operations_than_measured_are_only_matrix_units_where_there_are_products(
    measured: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peaks, "peaks", lambda threads: peaks.Peaks(1e3, 10e9, threads))
    x = np.ones((256, 64), np.float32)
    found = scaled.compile(x).explain(x)
    assert "matrix units" not in str(found)
    assert found.bound_by == "FMA: it uses all of it, more than was measured, while the machine was busy"


def test_what_no_cache_holds_does_not_come_from_one(measured: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peaks, "peaks", lambda threads: peaks.Peaks(100e9, 1e6, threads))
    monkeypatch.setattr(target, "CACHE_SIZE", "/nowhere/{}")
    x = np.ones((4096, 64), np.float32)
    assert copied.compile(x).explain(x).bound_by.startswith("memory: it uses all of it")


def test_a_machine_that_does_something_else_is_said_to(measured: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timings, "timed", lambda *_, **__: (1e-3, 1e-3, 2e-3, 3e-3))
    x = np.ones((256, 64), np.float32)
    found = copied.compile(x).explain(x)
    assert "the machine is doing something else, too" in str(found) and found.plain()["spread"] > 0.2


MEASURED = """
import sys
import numpy as np
import tilewright.language as pl
from tilewright.programs.bench import benchmark
from tilewright.runtime import CompiledProgram

@pl.jit
def copied(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], x.shape), [0, 0], out)
    return out

x = np.ones((16, 64), np.float32)
program, out = copied.compile(x), np.empty_like(x)
program(x, out)
was_loaded = "llvmlite" in sys.modules
benchmark(program, (x, out)[:int(sys.argv[1])], rounds=1)
print(was_loaded, type(program).__call__ is CompiledProgram.__call__)
"""


@pytest.mark.parametrize("given", ["1", "2"], ids=["returning", "in place"])
def test_calls_are_measured_as_they_will_be_also_of_a_program_that_was_kept(given: str, tmp_path: Path) -> None:
    script, environment = tmp_path / "measured.py", {**os.environ, "TILEWRIGHT_CACHE_DIR": str(tmp_path / "cache")}
    script.write_text(MEASURED)
    command = [sys.executable, str(script), given]
    said = [subprocess.run(command, env=environment, capture_output=True, text=True).stdout for _ in range(2)]
    assert said == ["True False\n", "False False\n"], "LLVM is loaded, and calls go without Python"


@pl.jit
def scaled(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], x.shape) * 2.0, [0, 0], out)
    return out


@pl.jit
def copied(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    for r in pl.parallel(0, x.shape[0], 16):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [r, 0], [16, 64]), [r, 0], out)
    return out


def test_a_copy_counts_each_byte_once_each_way_and_is_measured() -> None:
    x = np.ones((256, 64), np.float32)
    found = copied.compile(x).explain(x)
    assert (found.flops, found.bytes, found.moved) == (0, 2 * x.nbytes, 2 * x.nbytes)
    assert 0 < found.seconds <= found.call_seconds
    assert [limit.most > 1e8 for limit in found.limits] == [True, True]
    assert "on up to" in found.facts[0]


def test_what_nobody_has_measured_is_not_said() -> None:
    x = np.ones((16, 64), np.float32)
    found = copied.compile(x, config=RunConfig(platform="interpret")).explain(x)
    assert found.limits == () and "was not measured" in found.bound_by
    assert found.seconds == found.call_seconds > 0


def test_what_a_page_shows_is_measured_on_copies() -> None:
    x, out = np.ones((256, 64), np.float32), np.full((256, 64), 7, np.float32)
    found = copied.compile(x).speed(x, out).roofline
    assert found is not None and found.bytes == 2 * x.nbytes and found.seconds > 0
    assert (out == 7).all()


@pl.jit
def multiplied(a: pl.Tensor[[64, 64], pl.BF16], out: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(a, [0, 0], [64, 64])
        pl.store(pl.matmul(t, t), [0, 0], out)
    return out


def test_products_are_held_against_amx_where_that_is_used(measured: None, monkeypatch: pytest.MonkeyPatch) -> None:
    a = np.ones((64, 64), pl.BF16.numpy)
    monkeypatch.setattr(peaks, "amx", tuple)
    assert [limit.name for limit in multiplied.compile(a).explain(a).limits] == ["memory", "FMA"]
    monkeypatch.setattr(peaks, "amx", lambda: ("amx_bf16", "amx_tile"))
    monkeypatch.setattr(peaks, "objection", lambda: "")
    found = multiplied.compile(a).explain(a)
    assert {limit.name: limit.most for limit in found.limits} == {"memory": 10e9, "FMA": 100e9, "AMX": 1600e9}
    x = np.ones((256, 64), np.float32)
    assert [limit.name for limit in copied.compile(x).explain(x).limits] == ["memory", "FMA"]


@pl.jit
def of_doubles(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    for r in pl.parallel(0, x.shape[0], 32):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.cast(pl.load(x, [r, 0], [32, 64]), pl.FP64)
            pl.store(pl.cast(pl.sinh(pl.cosh(pl.sinh(t))), pl.FP32), [r, 0], out)
    return out


def test_functions_of_doubles_are_vectors(measured: None) -> None:
    x = np.ones((64, 64), np.float32)
    notes = {note.kind: note.text for note in of_doubles.compile(x).explain(x).lines[-1].notes}
    assert "vectorized" in notes and "called" not in notes


def test_functions_that_are_called_are_said_to_be_and_floats_are_the_first_advice(
    measured: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Target, "has_fma", False)  # as processors were that rounded twice
    x = np.ones((96, 64), np.float32)
    found = of_doubles.compile(x).explain(x)
    notes = {note.kind: note.text for note in found.lines[-1].notes}
    assert notes["called"] == "sinh and cosh of fp64, by the mathematical library, one element at a time"
    assert "vectorized" not in notes
    assert found.advice[0].line == found.lines[-1].number and "pl.FP32" in found.advice[0].text


@pl.jit
def by_elements(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    for r in pl.parallel(x.shape[0]):
        with pl.at(level=pl.Level.CORE_GROUP):
            for c in pl.range(x.shape[1]):
                pl.write(out, [r, c], pl.read(x, [r, c]) * 2.0)
    return out


def test_numbers_count_as_elements_of_tiles_do(measured: None) -> None:
    x = np.ones((64, 64), np.float32)
    found = by_elements.compile(x).explain(x)
    assert (found.flops, found.moved) == (x.size, 2 * x.nbytes)
    assert "1 operation:" in str(found)


@pl.jit
def by_columns(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    for c in pl.range(x.shape[1]):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [0, c], [64, 1]) * 2.0 + 1.0, [0, c], out)
    return out


@pl.jit
def side_by_side(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    for c in pl.parallel(x.shape[1]):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [0, c], [64, 1]) * 2.0 + 1.0, [0, c], out)
    return out


def test_columns_one_by_one_are_the_first_thing_to_change(measured: None) -> None:
    x = np.ones((64, 64), np.float32)
    found = by_columns.compile(x).explain(x)
    assert "its tiles have one column" in {note.kind: note.text for note in found.lines[-1].notes}["column"]
    assert "tiles of several columns" in found.advice[0].text and found.advice[0].line == found.lines[-1].number


def test_columns_that_the_compiler_puts_together_need_no_change(measured: None) -> None:
    x = np.ones((64, 64), np.float32)
    found = side_by_side.compile(x).explain(x)
    assert "column" not in {note.kind for line in found.lines for note in line.notes}
    assert not any("several columns" in advice.text for advice in found.advice)


@pl.jit
def sorter(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    for r in pl.parallel(0, x.shape[0], 32):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.sort(pl.load(x, [r, 0], [32, 512])), [r, 0], out)
    return out


def test_what_ops_work_in_is_no_part_of_the_tiles_that_a_function_names(measured: None) -> None:
    x = np.ones((64, 512), np.float32)
    (fact,) = [fact for fact in sorter.compile(x).explain(x).facts if "keeps" in fact]
    kept, named = map(int, re.findall(r"(\d+)(?: bytes| in all)", fact))
    assert kept > named and "what ops work in" in fact and "the rest" not in fact
