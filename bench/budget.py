"""Budgets: work measured by itself, stage by stage, and held to a number of milliseconds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from harness import Report, Timing, interleaved, median


@dataclass(frozen=True)
class Budget:
    """One row: `stages` does the work once and says what each stage of it took.

    Budgets of a group share a table and have the same stages; `most_rounds` spares us too many of a slow one.
    """

    name: str
    group: str
    stages: Callable[[], Mapping[str, Timing]]
    milliseconds: float
    note: str = ""
    most_rounds: int = 1000


def spend(budgets: Sequence[Budget], rounds: int, tick: Callable[[], object]) -> Report:
    """Return one group's table, its rows measured in turns."""
    found = interleaved({budget.name: budget.stages for budget in budgets}, rounds, tick=tick)
    stages = [*found[budgets[0].name][0]]
    rows = [_row(budget, stages, found[budget.name]) for budget in budgets]
    columns = ("program", *stages, "total", "total CPU", "caller's CPU", "budget")
    return Report(f"{budgets[0].group}, {rounds} rounds", columns, rows)


def rounds_of(budgets: Sequence[Budget], wanted: int) -> int:
    """Return how many rounds a group gets."""
    return min(wanted, *(budget.most_rounds for budget in budgets))


def _row(budget: Budget, stages: Sequence[str], samples: Sequence[Mapping[str, Timing]]) -> list[str]:
    total = median([_total(sample) for sample in samples])
    parts = [median([sample[stage] for sample in samples]).wall for stage in stages]
    mark = "✓" if total.wall < budget.milliseconds else "✗"
    cells = [f"{ms:.1f} ms" for ms in (*parts, total.wall, total.cpu, total.caller)]
    return [budget.name, *cells, f"< {budget.milliseconds:g} ms {mark}"]


def _total(stages: Mapping[str, Timing]) -> Timing:
    wall, cpu, caller = (sum(getattr(t, clock) for t in stages.values()) for clock in ("wall", "cpu", "caller"))
    return Timing(wall, cpu, caller=caller)
