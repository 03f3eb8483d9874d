"""Kernels compiled by Triton, without a GPU: for every target, and facts of the machine code."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest
from ops.kernels import inout, kernel
from ops.test_every_op import example, title
from unit.backends.cuda import test_texts
from unit.backends.cuda.test_numbers_of_texts import REPEATED
from unit.backends.cuda.test_texts import add, matmul, ones
from unit.backends.cuda.written import written

import tilewright.language as pl
from tilewright import ir
from tilewright.backends.cuda import engine, target
from tilewright.backends.cuda.anatomy import anatomy
from tilewright.backends.cuda.backend import BACKEND
from tilewright.backends.cuda.engine import SPILLED, Job, compiled
from tilewright.backends.cuda.reports import KEPT
from tilewright.backends.cuda.schedule import Schedule
from tilewright.backends.cuda.target import named, triton_objection
from tilewright.core.op import Kind, OpSpec, specs
from tilewright.errors import InternalError, UnsupportedFeatureError
from tilewright.programs.program import CompiledProgram
from tilewright.runtime import RunConfig

pytestmark = pytest.mark.skipif(bool(triton_objection()), reason="needs Triton")


@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_100"])
def test_programs_are_compiled_for_a_gpu_that_is_not_here(target: str) -> None:
    program = ir.compile(add.specialize(ones(64, 128), ones(64, 128)).program, platform="cuda", target=target)
    assert f".target {target}" in program.stages["ptx"]
    assert "ld.global.v4" in program.stages["ptx"] and "@entry_add(" in program.stages["llvm"]
    steps = re.findall(r"griddepcontrol\.\w+|ld\.global|st\.global", program.stages["ptx"])
    waits = ["griddepcontrol.wait", "griddepcontrol.launch_dependents"] if target != "sm_80" else []
    assert [step for step in steps if "grid" in step] == waits == steps[: len(waits)]


def test_products_of_half_floats_run_on_the_matrix_units() -> None:
    import ml_dtypes

    a, b = np.ones((128, 96), ml_dtypes.bfloat16), np.ones((96, 256), ml_dtypes.bfloat16)
    program = ir.compile(matmul.specialize(a, b, ones(128, 256)).program, platform="cuda", target="sm_90")
    assert "wgmma.mma_async" in program.stages["ptx"]


@pl.jit
def norm(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    for row in pl.parallel(0, x.shape[0], 1):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [row, 0], [1, 4096])
            pl.store(pl.row_expand_div(t, pl.row_sum(t)), [row, 0], out)
    return out


def test_long_rows_of_floats_are_loaded_again_behind_a_fold() -> None:
    program = ir.compile(norm.specialize(ones(4, 4096), ones(4, 4096)).program, platform="cuda", target="sm_90")
    loads = re.findall(r"bar\.sync|evict_\w+", program.stages["ptx"])
    kept, forgotten = (loads.index(word) for word in ("evict_last", "evict_first"))
    assert "bar.sync" in loads[kept:forgotten]


def test_a_program_is_saved_and_loaded_where_there_is_no_gpu(tmp_path: Path) -> None:
    program = ir.compile(add.specialize(ones(64, 128), ones(64, 128)).program, platform="cuda", target="sm_90")
    program.save(tmp_path)
    loaded = CompiledProgram.load(tmp_path)
    assert loaded.platform == "cuda" and loaded.loaded.code.objects == {
        **loaded.loaded.code.objects,
        **program.loaded.code.objects,
    }
    assert {stage: loaded.stages[stage] for stage in KEPT} == {stage: program.stages[stage] for stage in KEPT}
    with pytest.raises(ValueError, match="is on device cpu, and the program is of back end cuda"):
        loaded(ones(64, 128), ones(64, 128))
    assert CompiledProgram.from_dir(tmp_path).platform == "cuda"
    for platform in ("cpu", "a5sim"):
        with pytest.raises(ValueError, match=f"holds code for back end cuda, which platform '{platform}' does not run"):
            CompiledProgram.from_dir(tmp_path, platform=platform)


def test_a_tuned_kernel_is_compiled_where_there_is_no_gpu_and_runs_nowhere_else() -> None:
    @pl.autotune(configs=[pl.Config(ROWS=2), pl.Config(ROWS=8)])
    @pl.jit
    def doubled(x: pl.Tensor, out: pl.Out[pl.Tensor], *, ROWS: int):
        for row in pl.parallel(0, x.shape[0], ROWS):
            with pl.at(level=pl.Level.CORE_GROUP):
                pl.store(pl.load(x, [row, 0], [ROWS, 64]) * 2.0, [row, 0], out)
        return out

    program = doubled.compile(ones(16, 64), config=RunConfig(platform="cuda"))
    assert program.platform == "cuda" and "row in 0:16:2" in program.stages["launches"]
    with pytest.raises(ValueError, match="platform 'cuda' takes tensors on cuda"):
        doubled(ones(16, 64), config=RunConfig(platform="cuda"))


def test_launches_are_a_table_and_machine_code_can_be_read(tmp_path: Path) -> None:
    program = ir.compile(add.specialize(ones(64, 128), ones(64, 128)).program, platform="cuda", target="sm_90")
    head, row = program.stages["launches"].splitlines()
    assert head.split() == ["kernel", "line", "grid", "threads", "registers", "spilled", "shared", "arguments"]
    found = re.fullmatch(r"add_incore_0 +test_texts.py:\d+ +row in 0:64:16 +256 +(\d+) +0 +0 +x, y, out", row)
    assert found is not None and 10 < int(found[1]) < 256
    assert "LDG.E.128" in program.stages["sass"]
    assert ".loc" in program.stages["ptx"] and f'"{test_texts.__file__}"' in program.stages["ptx"]
    assert "Triton" in program.stages["profile"] and row in program.stages["profile"]
    program.save(tmp_path)
    loaded = CompiledProgram.load(tmp_path)
    assert {loaded.stages[name] == program.stages[name] for name in ("launches", "sass")} == {True}


@pl.jit
def attended(q: pl.Tensor, k: pl.Tensor, v: pl.Tensor, out: pl.Out[pl.Tensor]):
    for row in pl.parallel(0, q.shape[0], 64):
        with pl.at(level=pl.Level.CORE_GROUP):
            queries = pl.load(q, [row, 0], [64, 64])
            best = pl.tile.full([64, 1], dtype=pl.FP32, value=-1e30)
            total = pl.tile.full([64, 1], dtype=pl.FP32, value=0.0)
            average = pl.tile.full([64, 64], dtype=pl.FP32, value=0.0)
            for first in pl.range(0, k.shape[0], 64):
                scores = queries @ pl.load(k, [first, 0], [64, 64]).T
                highest = pl.maximum(best, pl.max(scores, axis=-1, keepdims=True))
                weights, kept = pl.exp(scores - highest), pl.exp(best - highest)
                total = total * kept + pl.sum(weights, axis=-1, keepdims=True)
                average = average * kept + weights @ pl.load(v, [first, 0], [64, 64])
                best = highest
            pl.store(average / total, [row, 0], out)
    return out


def test_a_block_that_would_spill_many_registers_has_more_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    program = attended.specialize(*[ones(150, 64)] * 4).program

    def spilled() -> tuple[int, int]:
        made = ir.compile(program, platform="cuda", target="sm_90")
        (row,) = program_rows(made)
        return int(row[3]), int(row[5])

    monkeypatch.setenv("TILEWRIGHT_CUDA_SCHEDULE", "warps=4")
    threads, many = spilled()
    assert threads == 128 and many > SPILLED
    monkeypatch.delenv("TILEWRIGHT_CUDA_SCHEDULE")
    threads, few = spilled()
    assert threads > 128 and 2 * few <= many


def program_rows(program: CompiledProgram) -> list[list[str]]:
    """Return the rows of a program's table of launches, cell by cell."""
    _, *rows = (re.split("  +", line) for line in program.stages["launches"].splitlines())
    return rows


@pl.jit
def waiting(x: pl.Tensor, n: pl.Tensor, out: pl.InOut[pl.Tensor]):
    limit = pl.read(n, [0])
    with pl.at(level=pl.Level.CORE_GROUP):
        turn = 0
        while pl.read(x, [turn, 0]) > 0.5:
            turn = turn + 1
        pl.print(turn)
    if limit > 3:
        pl.print(n)
    for row in pl.parallel(turn):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [row, 0], [1, 16]), [row, 0], out)
    return out


def test_the_table_of_launches_says_where_the_host_waits() -> None:
    given = ones(8, 16), np.ones(4, np.int32), ones(8, 16)
    program = ir.compile(waiting.specialize(*given).program, platform="cuda", target="sm_90")
    rows = program_rows(program)
    first = int(rows[0][1].partition(":")[2])
    assert [(name, int(line.partition(":")[2]) - first, said) for name, line, *_, said in rows] == [
        ("the host waits", 0, "to read an element of `n`"),
        ("waiting_incore_0", 1, "x"),
        ("the host waits", 1, "to show what `waiting_incore_0` prints"),
        ("the host waits", 1, "for numbers that `waiting_incore_0` computes"),
        ("the host waits", 7, "to print a tensor, element by element"),
        ("waiting_incore_1", 8, "x, out"),
    ]
    assert "the host waits (test_engine.py" in str(anatomy(program.loaded.code).notes)


@pytest.mark.parametrize("spec", [s for s in specs() if Kind.TILE in s.kinds and s.example], ids=title)
def test_an_example_of_an_op_compiles(spec: OpSpec) -> None:
    try:
        unit = written(example(spec))
    except UnsupportedFeatureError:
        pytest.skip("refused by name")
    jobs = [Job(90, k.tries(90, is_aligned=is_aligned)) for k in unit.kernels for is_aligned in (True, False)]
    assert all(binary.cubin for binary in compiled(jobs))


def test_loops_that_look_keep_their_tiles_in_registers() -> None:
    (found,) = written(REPEATED).kernels
    (binary,) = compiled([Job(90, found.tries(90, is_aligned=True))])
    assert binary.texts["ttir"].count("scf.while") == 2


def test_what_is_in_a_loop_without_turns_is_compiled() -> None:
    never = kernel(
        "turn = 0\nwhile turn < 0:\n"
        "    a = pl.store(pl.load(a, [0, 0], [8, 8]) + 1.0, [turn, 0], a)\n    turn = turn + 1",
        a=inout(pl.FP32, 8, 8),
    )
    (found,) = written(never).kernels
    assert compiled([Job(90, found.tries(90, is_aligned=True))])[0].cubin


def test_what_triton_refuses_is_a_mistake_of_ours_and_is_shown() -> None:
    with pytest.raises(InternalError, match=r"Triton refuses the generated kernel: .*\nmodule"):
        compiled([Job(90, (("module { nonsense }", Schedule(4, 3)),))])


def test_a_configuration_names_the_gpu_that_code_is_made_for() -> None:
    given = [ones(64, 128), ones(64, 128)]
    for name in ("sm_80", " SM_90", "sm_80"):
        program = add.compile(*given, config=RunConfig(platform="cuda", target=name))
        assert f".target {name.strip().lower()}" in program.stages["ptx"]
    same, other = (add.compile(*given, config=RunConfig(platform="cuda", target=name)) for name in ("sm_80", "sm_90"))
    assert same is not other and same is add.compile(*given, config=RunConfig(platform="cuda", target="sm_80"))
    with pytest.raises(ValueError, match="no GPU is called 'sm_91'; one of sm_80"):
        RunConfig(platform="cuda", target="sm_91")
    with pytest.raises(ValueError, match="makes code for this machine alone, and for no target 'sm_90'"):
        RunConfig(target="sm_90")


def test_targets_go_by_name() -> None:
    assert named("sm_90").capability == 90
    with pytest.raises(ValueError, match="no GPU is called 'sm_1'; one of sm_80, "):
        named("sm_1")
    with pytest.raises(ValueError, match="back end 'cpu' makes code for this machine alone, and for no target 'sm_90'"):
        ir.compile(add.specialize(ones(64, 128), ones(64, 128)).program, target="sm_90")


def test_keys_change_with_triton_and_with_what_the_environment_tells_it(monkeypatch: pytest.MonkeyPatch) -> None:
    before = BACKEND.fingerprint()
    monkeypatch.setenv("TRITON_PTXAS_PATH", "/elsewhere/ptxas")
    told = BACKEND.fingerprint()
    monkeypatch.setattr(target, "triton_version", lambda: "3.99")  # pyright: ignore
    assert len({before, told, BACKEND.fingerprint()}) == 3


@pl.jit
def turned(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.transpose(pl.load(x, [0, 0], [256, 256]), 0, 1), [0, 0], out)
    return out


def test_tiles_that_do_not_fit_a_block_are_the_authors_affair() -> None:
    program = turned.specialize(ones(256, 256), ones(256, 256)).program
    message = r"kernel `turned_incore_0` \(.*test_engine\.py, line \d+\) takes 262144 bytes of shared memory"
    (kernel,) = written(program).kernels
    with pytest.raises(UnsupportedFeatureError, match=message):
        compiled([Job(90, ((kernel.aligned, Schedule(8, 3)),))])
    assert " 0       x, out" in ir.compile(program, platform="cuda", target="sm_90").stages["launches"]


def test_triton_ir_and_ptx_say_which_line_they_were_made_for() -> None:
    program = ir.compile(add.specialize(ones(64, 128), ones(64, 128)).program, platform="cuda", target="sm_90")
    page = program.page()
    (source,) = page.sources
    shown = {source.first + k: page.strings[string].strip() for k, string in enumerate(source.lines)}
    for name, instruction in ("ttir", r"arith\.addf"), ("ptx", r"add\.(rn\.)?f32"):
        (text,) = [each for each in page.code if each.name == name]
        pairs = zip(text.lines, text.places, strict=True)
        lines = {shown[place] for line, place in pairs if re.search(instruction, page.strings[line])}
        assert lines == {"pl.store(pl.load(x, [row, 0], [16, 128]) + pl.load(y, [row, 0], [16, 128]), [row, 0], out)"}
    assert not any(" loc(" in page.strings[line] for text in page.code for line in text.lines)


def test_a_triton_that_cannot_be_loaded_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_loaded", [])
    monkeypatch.setitem(sys.modules, "triton._C.libtriton", None)
    program = add.specialize(ones(64, 128), ones(64, 128)).program
    with pytest.raises(
        ImportError, match=r"Triton 3\S+ compiles kernels for GPUs, and cannot be loaded here: .*libtriton"
    ):
        ir.compile(program, platform="cuda", target="sm_86")
