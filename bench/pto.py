"""PTO text: what reading, verifying and printing a module takes, and how it grows with the text.

A generated kernel is blocks of ten ops: constants and integer arithmetic, a tile and two ops on it, a vector load, sum
and store, a flag, and a loop around a barrier.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from harness import Report, Timing, interleaved, median, save, timed

from tilewright.pto.module import Module
from tilewright.pto.text.parser import parse
from tilewright.pto.text.printer import print_module
from tilewright.pto.verify import verify

SIZES = (100, 1_000, 10_000)
OPS_PER_BLOCK = 10
BUDGETS = {1_000: 30.0, 10_000: 300.0}
GROWTH_BUDGET = 12.0
"""How much longer ten times the ops may take; linear is 10."""

TILE = (
    "!pto.tile_buf<loc=vec, dtype=f32, rows=16, cols=64, v_row=16, v_col=64, "
    "blayout=row_major, slayout=none_box, fractal=512, pad=0>"
)
VECTOR, MASK, POINTER = "!pto.vreg<64xf32>", "!pto.mask<b32>", "!pto.ptr<f32, ub>"
BLOCK = f"""    %c{{k}} = arith.constant {{k}} : index
    %n{{k}} = arith.addi %c{{k}}, %one : index
    %t{{k}} = pto.alloc_tile : {TILE}
    pto.tadd ins(%t{{k}}, %t{{k}} : {TILE}, {TILE}) outs(%t{{k}} : {TILE})
    pto.tadds ins(%t{{k}}, %s : {TILE}, f32) outs(%t{{k}} : {TILE})
    %v{{k}} = pto.vlds %p[%n{{k}}] : {POINTER} -> {VECTOR}
    %w{{k}} = pto.vadd %v{{k}}, %v{{k}}, %m : {VECTOR}, {VECTOR}, {MASK} -> {VECTOR}
    pto.vsts %w{{k}}, %p[%n{{k}}], %m : {VECTOR}, {POINTER}, {MASK}
    pto.set_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID0>]
    scf.for %i = %c{{k}} to %n{{k}} step %one {{{{
    }}}}
"""


def generated(ops: int) -> str:
    """Return the text of a kernel with `ops` ops, a multiple of 10, beside its first constant and its return."""
    blocks = "".join(BLOCK.format(k=k) for k in range(ops // OPS_PER_BLOCK))
    head = f"module {{\n  func.func @k(%p: {POINTER}, %m: {MASK}, %s: f32) {{\n    %one = arith.constant 1 : index\n"
    return f"{head}{blocks}    return\n  }}\n}}\n"


@dataclass(frozen=True)
class Stages:
    """What the stages of one text took."""

    parse: Timing
    verify: Timing
    printing: Timing

    @property
    def total(self) -> Timing:
        """Parsing and verifying, which every kernel needs."""
        return Timing(self.parse.wall + self.verify.wall, self.parse.cpu + self.verify.cpu)


def staged(text: str) -> Stages:
    modules: list[Module] = []
    parsed = timed(lambda: modules.append(parse(text)))
    return Stages(parsed, timed(lambda: verify(modules[0])), timed(lambda: print_module(modules[0])))


def measure(rounds: int) -> dict[int, list[Stages]]:
    cases: dict[str, Callable[[], Stages]] = {}
    for ops in SIZES:
        text = generated(ops)
        assert sum(1 for func in parse(text).funcs() if func.body for _ in func.body.ops) == ops + 2, "lost count"
        cases[str(ops)] = partial(staged, text)
    return {int(ops): samples for ops, samples in interleaved(cases, rounds).items()}


def stage_report(found: dict[int, list[Stages]]) -> Report:
    rows: list[list[str]] = []
    for ops, samples in found.items():
        parsed, verified, printed, total = (
            median([getattr(sample, stage) for sample in samples]) for stage in ("parse", "verify", "printing", "total")
        )
        times = [f"{timing.cpu:.1f} ms" for timing in (parsed, verified, total, printed)]
        rows.append([f"{ops:,} ops", *times, f"{1e3 * total.cpu / ops:.0f} µs", verdict(total.cpu, BUDGETS.get(ops))])
    columns = ("text", "parse", "verify", "both", "print", "both per op", "budget")
    return Report("Reading PTO text", columns, rows)


def growth_report(found: dict[int, list[Stages]]) -> Report:
    rows: list[list[str]] = []
    for small, large in itertools.pairwise(SIZES):
        before, after = (median([sample.total for sample in found[ops]]).cpu for ops in (small, large))
        mark = "✓" if after / before < GROWTH_BUDGET else "✗"
        rows.append([f"{small:,} to {large:,} ops", f"{after / before:.1f}x", f"< {GROWTH_BUDGET:g}x {mark}"])
    return Report("Growth for ten times the ops", ("step", "CPU time", "budget"), rows)


def verdict(milliseconds: float, budget: float | None) -> str:
    return f"< {budget:g} ms {'✓' if milliseconds < budget else '✗'}" if budget else ""


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure reading, verifying and printing PTO text.")
    parser.add_argument("--rounds", type=int, default=7, help="rounds of each text (7)")
    parser.add_argument("--dry-run", action="store_true", help="leave bench/RESULTS.md as it is")
    options = parser.parse_args()
    found = measure(options.rounds)
    reports = [stage_report(found), growth_report(found)]
    for report in reports:
        report.show()
    notes = f"CPU time, medians of {options.rounds} interleaved rounds."
    print(notes)
    if not options.dry_run:
        save("pto", notes, reports)


if __name__ == "__main__":
    main()
