"""Compile times: what importing the language costs, and how front end and passes grow with a program.

A generated program is a row of kernels of 25 ops each: a load, 23 elementwise ops, reductions and broadcasts, a store.
It is read twice: as text, the way `pl.parse` does, and as a decorated class in a module.
"""

from __future__ import annotations

import argparse
import itertools
import linecache
import statistics
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from harness import Report, Timing, fresh_python, interleaved, median, save, timed

import tilewright.language as pl
from tilewright.core.program import Program
from tilewright.ir.pass_manager import PassManager

SIZES = (100, 1_000, 10_000)
OPS_PER_KERNEL = 25
IMPORT_BUDGET = 60.0
COMPILE_BUDGETS = {100: 30.0, 1_000: 150.0}
GROWTH_BUDGET = 12.0
"""How much longer ten times the ops may take; linear is 10."""

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


def compiled_text(text: str) -> Compile:
    return compiled(partial(from_text, text))


def from_text(text: str) -> Program:
    program = pl.parse(text)
    assert isinstance(program, Program)
    return program


def compiled_class(text: str, folder: Path) -> Compile:
    """Return what running a module that nobody has read before takes, Python's own compilation of it left out."""
    with tempfile.NamedTemporaryFile("w", suffix=".py", dir=folder, delete=False, encoding="utf-8") as file:
        file.write(text)
    code = compile(text, file.name, "exec")
    try:
        return compiled(lambda: _run_module(code, file.name))
    finally:
        linecache.cache.pop(file.name, None)


def _run_module(code: object, path: str) -> Program:
    module: dict[str, object] = {"__name__": Path(path).stem, "__file__": path}
    exec(code, module)  # pyright: ignore[reportArgumentType]
    program = module["Generated"]
    assert isinstance(program, Program)
    return program


def measure_compile(rounds: int, folder: Path) -> dict[str, list[Compile]]:
    cases: dict[str, Callable[[], Compile]] = {}
    for ops in SIZES:
        text = generated(ops)
        assert str(from_text(text)).count(" = pl.tile.") == ops, "the generator has lost count"
        cases[f"{ops:,} ops, text"] = partial(compiled_text, text)
        cases[f"{ops:,} ops, class"] = partial(compiled_class, text, folder)
    return interleaved(cases, rounds)


def compile_report(found: dict[str, list[Compile]]) -> Report:
    rows: list[list[str]] = []
    for name, samples in found.items():
        ops = int(name.split()[0].replace(",", ""))
        total = median([sample.total for sample in samples])
        halves = (median([s.frontend for s in samples]).wall, median([s.passes for s in samples]).wall)
        per_op = f"{1e3 * total.cpu / ops:.0f} µs"
        budget = verdict(total.wall, COMPILE_BUDGETS.get(ops))
        rows.append([name, *map(ms, (*halves, total.wall, total.cpu)), per_op, budget])
    columns = ("program", "front end", "passes", "total", "total CPU", "CPU per op", "budget")
    return Report("Front end and passes", columns, rows)


def growth_report(found: dict[str, list[Compile]]) -> Report:
    rows: list[list[str]] = []
    for (small, large), way in itertools.product(itertools.pairwise(SIZES), ("text", "class")):
        before, after = (median([s.total for s in found[f"{ops:,} ops, {way}"]]).cpu for ops in (small, large))
        mark = "✓" if after / before < GROWTH_BUDGET else "✗"
        rows.append([f"{small:,} to {large:,} ops, {way}", f"{after / before:.1f}x", f"< {GROWTH_BUDGET:g}x {mark}"])
    return Report("Growth for ten times the ops", ("step", "CPU time", "budget"), rows)


def ms(milliseconds: float) -> str:
    return f"{milliseconds:.1f} ms"


def verdict(milliseconds: float, budget: float | None) -> str:
    return f"< {budget:g} ms {'✓' if milliseconds < budget else '✗'}" if budget else ""


@dataclass(frozen=True)
class Import:
    """Milliseconds of a fresh process, and of the import inside it on both clocks."""

    process: float
    wall: float
    cpu: float


CLOCKS = """from time import perf_counter, process_time
wall, cpu = perf_counter(), process_time()
{statement}
print(1e3 * (perf_counter() - wall), 1e3 * (process_time() - cpu))"""


def imported(statement: str) -> Import:
    """Return what a fresh Python that runs one statement takes."""
    output: list[str] = []
    process = timed(lambda: output.append(fresh_python(CLOCKS.format(statement=statement))))
    return Import(process.wall, *map(float, output[0].split()))


def import_report(rounds: int) -> Report:
    statements = {"nothing": "pass", "numpy": "import numpy", "tilewright.language": "import tilewright.language"}
    found = interleaved({name: partial(imported, statement) for name, statement in statements.items()}, rounds)
    rows: list[list[str]] = []
    for name, samples in found.items():
        middle = [statistics.median(getattr(s, clock) for s in samples) for clock in ("process", "wall", "cpu")]
        budget = IMPORT_BUDGET if name.startswith("tilewright") else None
        rows.append([name, *map(ms, middle), verdict(middle[1], budget)])
    columns = ("imports", "process", "the import itself", "its CPU", "budget")
    return Report("Imports in a fresh process", columns, rows)


FIRST = """import sys; sys.path.insert(0, {bench!r})
from compile import compiled_text, generated
print(compiled_text(generated(100)).total.wall)"""


def first_program(rounds: int = 5) -> float:
    """Return milliseconds to compile the first 100-op program of a process, whatever that loads included."""
    code = FIRST.format(bench=str(Path(__file__).parent))
    return statistics.median(float(fresh_python(code)) for _ in range(rounds))


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
        f"Medians of {options.rounds} interleaved rounds, {options.imports} for imports, on the wall clock where a "
        f"column does not say CPU. The first 100-op program of a process takes {ms(first_program())}."
    )
    print(notes)
    if not options.dry_run:
        save("compile", notes, reports)


if __name__ == "__main__":
    main()
