"""Compile times: what importing the language costs, and how front end and passes grow with a program.

A generated program is a row of kernels of 25 ops each: a load, 23 elementwise ops, reductions and broadcasts, a store.
It is read twice: as text, the way `pl.parse` does, and as a decorated class in a module.
"""

from __future__ import annotations

import argparse
import itertools
import linecache
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from harness import Report, Timing, interleaved, median, save, timed

import tilewright.language as pl
from tilewright.core.program import Program
from tilewright.ir.pass_manager import PassManager

SIZES = (100, 1_000, 10_000)
OPS_PER_KERNEL = 25
IMPORT_BUDGET = 60.0
COMPILE_BUDGETS = {100: 30.0, 1_000: 150.0}
GROWTH_BUDGET = 12.0
"""How much longer ten times the ops may take: linear is 10."""

HEAD = """import tilewright.language as pl

@pl.program
class Generated:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[256, 128], pl.FP32], out: pl.Out[pl.Tensor[[256, 128], pl.FP32]]):
"""
LOOP = """        for r{k} in pl.parallel(0, 256, 64):
            with pl.at(level=pl.Level.CORE_GROUP):
                t = pl.load(x, [r{k}, 0], [64, 128])
"""
STEPS = ("t = pl.row_expand_sub(t, pl.row_max(t))", "t = pl.mul(pl.exp(t), 0.5)", "t = pl.mul(pl.exp(t), 0.25)")
INDENT = " " * 16


def generated(ops: int) -> str:
    """Return the text of a program with exactly `ops` ops, a multiple of 25."""
    return HEAD + "".join(map(_kernel, range(ops // OPS_PER_KERNEL))) + "        return out\n"


def _kernel(k: int) -> str:
    pairs = itertools.islice(itertools.cycle(STEPS), (OPS_PER_KERNEL - 3) // 2)
    lines = [*pairs, "t = pl.relu(t)", f"out = pl.store(t, [r{k}, 0], out)"]
    return LOOP.format(k=k) + "".join(f"{INDENT}{line}\n" for line in lines)


@dataclass(frozen=True)
class Compile:
    """The two halves of one compilation."""

    frontend: Timing
    passes: Timing

    @property
    def total(self) -> Timing:
        return Timing(self.frontend.wall + self.passes.wall, self.frontend.cpu + self.passes.cpu)


def compiled(read: Callable[[], Program]) -> Compile:
    """Return what reading a program and running the default passes over it takes."""
    programs: list[Program] = []
    frontend = timed(lambda: programs.append(read()))
    return Compile(frontend, timed(lambda: PassManager.get_strategy().run_passes(programs[0])))


def from_text(text: str) -> Program:
    program = pl.parse(text)
    assert isinstance(program, Program)
    return program


_modules = itertools.count()


def decorated(text: str, folder: Path) -> Callable[[], Program]:
    """Return what runs a module that nobody has read before; Python's own compilation of it is done here."""
    path = folder / f"generated_{next(_modules)}.py"
    path.write_text(text, encoding="utf-8")
    code = compile(text, str(path), "exec")

    def run() -> Program:
        module: dict[str, object] = {"__name__": path.stem, "__file__": str(path)}
        exec(code, module)
        linecache.cache.pop(str(path), None)
        program = module["Generated"]
        assert isinstance(program, Program)
        return program

    return run


def measure_compile(rounds: int, folder: Path) -> dict[str, list[Compile]]:
    texts = {ops: generated(ops) for ops in SIZES}
    for ops, text in texts.items():
        assert str(from_text(text)).count(" = pl.tile.") == ops, "the generator has lost count"
    cases: dict[str, Callable[[], Compile]] = {}
    for ops, text in texts.items():
        cases[f"{ops:,} ops, text"] = lambda text=text: compiled(lambda: from_text(text))
        cases[f"{ops:,} ops, class"] = lambda text=text: compiled(decorated(text, folder))
    return interleaved(cases, rounds)


def compile_report(found: dict[str, list[Compile]]) -> Report:
    rows: list[list[str]] = []
    for name, samples in found.items():
        total = median([sample.total for sample in samples])
        ops = int(name.split()[0].replace(",", ""))
        halves = (median([s.frontend for s in samples]).wall, median([s.passes for s in samples]).wall)
        budget = COMPILE_BUDGETS.get(ops)
        per_op = f"{1e3 * total.cpu / ops:.0f} µs"
        rows.append([name, *map(ms, (*halves, total.wall, total.cpu)), per_op, verdict(total.wall, budget)])
    columns = ("program", "front end", "passes", "total", "CPU", "CPU per op", "budget for the total")
    return Report("Front end and passes", columns, rows)


def growth_report(found: dict[str, list[Compile]]) -> Report:
    rows: list[list[str]] = []
    for small, large in itertools.pairwise(SIZES):
        for way in ("text", "class"):
            cpu = [median([s.total for s in found[f"{ops:,} ops, {way}"]]).cpu for ops in (small, large)]
            budget = f"< {GROWTH_BUDGET:g}x {'✓' if cpu[1] / cpu[0] < GROWTH_BUDGET else '✗'}"
            rows.append([f"{small:,} to {large:,} ops, {way}", f"{cpu[1] / cpu[0]:.1f}x", budget])
    return Report("Growth for ten times the ops", ("step", "CPU time", "budget"), rows)


def ms(milliseconds: float) -> str:
    return f"{milliseconds:.1f} ms"


def verdict(milliseconds: float, budget: float | None) -> str:
    return f"< {budget:g} ms {'✓' if milliseconds < budget else '✗'}" if budget else ""


@dataclass(frozen=True)
class Import:
    """Milliseconds of a fresh process, and of the import inside it."""

    process: float
    statement: float


def imported(statement: str) -> Import:
    """Return what a fresh Python that runs one statement takes."""
    code = f"import time; s = time.perf_counter(); {statement}; print(time.perf_counter() - s)"
    output: list[str] = []
    process = timed(lambda: output.append(_python(code)))
    return Import(process.wall, 1e3 * float(output[0]))


def _python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.PIPE, text=True).stdout


FIRST = """import sys; sys.path.insert(0, {bench!r})
from compile import compiled, from_text, generated
print(compiled(lambda: from_text(generated(100))).total.wall)"""


def import_report(rounds: int) -> Report:
    statements = {"nothing": "pass", "numpy": "import numpy", "tilewright.language": "import tilewright.language"}
    found = interleaved({name: lambda s=s: imported(s) for name, s in statements.items()}, rounds)
    rows: list[list[str]] = []
    for name, samples in found.items():
        process, statement = (statistics.median(getattr(s, f) for s in samples) for f in ("process", "statement"))
        budget = IMPORT_BUDGET if name.startswith("tilewright") else None
        rows.append([name, ms(process), ms(statement), verdict(statement, budget)])
    return Report("Imports in a fresh process", ("imports", "process", "the import itself", "budget"), rows)


def first_program(rounds: int = 5) -> float:
    """Return milliseconds to compile the first 100-op program of a process, which loads what compiling needs."""
    code = FIRST.format(bench=str(Path(__file__).parent))
    return statistics.median(float(_python(code)) for _ in range(rounds))


def main(self, x: pl.Tensor[[256, 128], pl.FP32], out: pl.Out[pl.Tensor[[256, 128], pl.FP32]]):
"""
LOOP = """        for r{k} in pl.parallel(0, 256, 64):
            with pl.at(level=pl.Level.CORE_GROUP):
                t = pl.load(x, [r{k}, 0], [64, 128])
"""
STEPS = ("t = pl.row_expand_sub(t, pl.row_max(t))", "t = pl.mul(pl.exp(t), 0.5)", "t = pl.mul(pl.exp(t), 0.25)")
INDENT = " " * 16


def generated(ops: int) -> str:
    """Return the text of a program with exactly `ops` ops, a multiple of 25."""
    return HEAD + "".join(map(_kernel, range(ops // OPS_PER_KERNEL))) + "        return out\n"


def _kernel(k: int) -> str:
    pairs = itertools.islice(itertools.cycle(STEPS), (OPS_PER_KERNEL - 3) // 2)
    lines = [*pairs, "t = pl.relu(t)", f"out = pl.store(t, [r{k}, 0], out)"]
    return LOOP.format(k=k) + "".join(f"{INDENT}{line}\n" for line in lines)


@dataclass(frozen=True)
class Compile:
    """The two halves of one compilation."""

    frontend: Timing
    passes: Timing

    @property
    def total(self) -> Timing:
        return Timing(self.frontend.wall + self.passes.wall, self.frontend.cpu + self.passes.cpu)


def compiled(read: Callable[[], Program]) -> Compile:
    """Return what reading a program and running the default passes over it takes."""
    programs: list[Program] = []
    frontend = timed(lambda: programs.append(read()))
    return Compile(frontend, timed(lambda: PassManager.get_strategy().run_passes(programs[0])))


def from_text(text: str) -> Program:
    program = pl.parse(text)
    assert isinstance(program, Program)
    return program


_modules = itertools.count()


def decorated(text: str, folder: Path) -> Callable[[], Program]:
    """Return what runs a module that nobody has read before; Python's own compilation of it is done here."""
    path = folder / f"generated_{next(_modules)}.py"
    path.write_text(text, encoding="utf-8")
    code = compile(text, str(path), "exec")

    def run() -> Program:
        module: dict[str, object] = {"__name__": path.stem, "__file__": str(path)}
        exec(code, module)
        linecache.cache.pop(str(path), None)
        program = module["Generated"]
        assert isinstance(program, Program)
        return program

    return run


def measure_compile(rounds: int, folder: Path) -> dict[str, list[Compile]]:
    texts = {ops: generated(ops) for ops in SIZES}
    for ops, text in texts.items():
        assert str(from_text(text)).count(" = pl.tile.") == ops, "the generator has lost count"
    cases: dict[str, Callable[[], Compile]] = {}
    for ops, text in texts.items():
        cases[f"{ops:,} ops, text"] = lambda text=text: compiled(lambda: from_text(text))
        cases[f"{ops:,} ops, class"] = lambda text=text: compiled(decorated(text, folder))
    return interleaved(cases, rounds)


def compile_report(found: dict[str, list[Compile]]) -> Report:
    rows: list[list[str]] = []
    for name, samples in found.items():
        total = median([sample.total for sample in samples])
        ops = int(name.split()[0].replace(",", ""))
        halves = (median([s.frontend for s in samples]).wall, median([s.passes for s in samples]).wall)
        budget = COMPILE_BUDGETS.get(ops)
        per_op = f"{1e3 * total.cpu / ops:.0f} µs"
        rows.append([name, *map(ms, (*halves, total.wall, total.cpu)), per_op, verdict(total.wall, budget)])
    columns = ("program", "front end", "passes", "total", "CPU", "CPU per op", "budget for the total")
    return Report("Front end and passes", columns, rows)


def growth_report(found: dict[str, list[Compile]]) -> Report:
    rows: list[list[str]] = []
    for small, large in itertools.pairwise(SIZES):
        for way in ("text", "class"):
            cpu = [median([s.total for s in found[f"{ops:,} ops, {way}"]]).cpu for ops in (small, large)]
            budget = f"< {GROWTH_BUDGET:g}x {'✓' if cpu[1] / cpu[0] < GROWTH_BUDGET else '✗'}"
            rows.append([f"{small:,} to {large:,} ops, {way}", f"{cpu[1] / cpu[0]:.1f}x", budget])
    return Report("Growth for ten times the ops", ("step", "CPU time", "budget"), rows)


def ms(milliseconds: float) -> str:
    return f"{milliseconds:.1f} ms"


def verdict(milliseconds: float, budget: float | None) -> str:
    return f"< {budget:g} ms {'✓' if milliseconds < budget else '✗'}" if budget else ""


@dataclass(frozen=True)
class Import:
    """Milliseconds of a fresh process, and of the import inside it."""

    process: float
    statement: float


def imported(statement: str) -> Import:
    """Return what a fresh Python that runs one statement takes."""
    code = f"import time; s = time.perf_counter(); {statement}; print(time.perf_counter() - s)"
    output: list[str] = []
    process = timed(lambda: output.append(_python(code)))
    return Import(process.wall, 1e3 * float(output[0]))


def _python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.PIPE, text=True).stdout


FIRST = """import tempfile, sys; sys.path.insert(0, {bench!r})
from compile import *
t = compiled(lambda: from_text(generated(100))).total.wall; print(t / 1e3)"""


def import_report(rounds: int) -> Report:
    statements = {
        "nothing": "pass",
        "numpy": "import numpy",
        "tilewright.language": "import tilewright.language",
    }
    found = interleaved({name: imported(s) for name, s in statements.items()}, rounds)
    rows: list[list[str]] = []
    for name, samples in found.items():
        middle = median(samples)  # here `cpu` holds the statement's own time, read inside the process
        budget = IMPORT_BUDGET if name.startswith("tilewright") else None
        rows.append([name, ms(middle.wall), ms(middle.cpu), verdict(middle.cpu, budget)])
    first = sorted(1e3 * float(_python(FIRST.format(bench=os.path.dirname(__file__)))) for _ in range(5))[2]
    rows.append(["first 100-op program of a process", "", ms(first), ""])
    return Report("A fresh process", ("imports", "process", "the import itself", "budget"), rows)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure import and compile times.")
    parser.add_argument("--rounds", type=int, default=7, help="rounds of each program (7)")
    parser.add_argument("--imports", type=int, default=15, help="fresh processes per import (15)")
    parser.add_argument("--dry-run", action="store_true", help="leave bench/RESULTS.md as it is")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = measure_compile(options.rounds, Path(folder))
    reports = [import_report(options.imports), compile_report(found), growth_report(found)]
    for report in reports:
        report.show()
    notes = (
        f"Medians of {options.rounds} interleaved rounds, of {options.imports} for imports; times are on the wall clock "
        f"unless they say CPU. The first 100-op program of a process takes {ms(first_program())}, imports done."
    )
    print(notes)
    if not options.dry_run:
        save("compile", "python bench/compile.py", notes, reports)


if __name__ == "__main__":
    main()
