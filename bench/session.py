"""A session: rows measured one after the other, and what is written about them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from budget import Budget, rounds_of, spend
from contest import Contest, Outcome, hold, use_threads
from harness import Part, Remarks, Report, save
from memory import keep_pages
from plot import PATH, plot
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from tables import tables

NOTES = """torch {torch}, models in bf16 and all else in fp32, outputs allocated beforehand. Contests are medians of
{rounds} rounds, of fewer for models, in which the contenders take turns; a ratio is taken within a round, and above 1
the first contender is faster. One thread is measured in processor time, more in wall-clock time over the rounds in
which nobody else took a processor; * marks a ratio that had fewer than five of those and took them all. GB/s counts
each element once. Cold compile goes from the decorated class to the first result on small tensors, llvmlite imported
beforehand where a table does not say otherwise."""


@dataclass(frozen=True)
class Session:
    """What was found: the outcomes of the contests, the tables of the budgets, and remarks on rows of either."""

    rounds: int
    outcomes: Sequence[Outcome]
    budgets: Sequence[Report]
    remarks: Remarks

    @staticmethod
    def run(rows: Sequence[Contest | Budget], threads: Sequence[int], rounds: int) -> Session:
        """Measure some rows, contests first and on each number of threads."""
        keep_pages()
        torch.manual_seed(0)
        with _progress() as progress:
            outcomes = _contests(progress, [row for row in rows if isinstance(row, Contest)], threads, rounds)
            use_threads(max(threads))
            budgets = _budgets(progress, [row for row in rows if isinstance(row, Budget)], rounds)
        return Session(rounds, outcomes, budgets, Remarks("Remarks", {row.name: row.note for row in rows if row.note}))

    @property
    def parts(self) -> list[Part]:
        """The tables, and what there is to say about them."""
        return [*tables(self.outcomes), *self.budgets, *([self.remarks] if self.remarks.lines else [])]

    def show(self) -> None:
        """Draw the tables on the terminal."""
        for part in self.parts:
            part.show()

    def save(self) -> None:
        """Write the section of RESULTS.md and the plot it links to."""
        plot(self.outcomes)
        save("kernels", f"{self._notes}\n\n![times as fast as torch eager]({PATH.name})", self.parts)

    def save_section(self, name: str) -> None:
        """Write a section of RESULTS.md of its own."""
        save(name, self._notes, self.parts)

    @property
    def _notes(self) -> str:
        return NOTES.format(torch=torch.__version__, rounds=self.rounds).replace("\n", " ")


def _contests(progress: Progress, contests: Sequence[Contest], threads: Sequence[int], rounds: int) -> list[Outcome]:
    outcomes: list[Outcome] = []
    for count, contest in itertools.product(threads, contests):
        turns = min(rounds, contest.most_rounds)
        bar = _Bar(progress, f"{contest.name}, {count} thread{'s' if count > 1 else ''}", turns)
        outcomes.append(hold(contest, count, turns, bar.tick))
    return outcomes


def _budgets(progress: Progress, budgets: Sequence[Budget], rounds: int) -> list[Report]:
    groups = [[*group] for _, group in itertools.groupby(budgets, lambda budget: budget.group)]
    reports: list[Report] = []
    for group in groups:
        count = rounds_of(group, rounds)
        reports.append(spend(group, count, _Bar(progress, group[0].group, count).tick))
    return reports


def _progress() -> Progress:
    """Return bars that are drawn between rounds only: a thread that draws would take part in the measurement."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, auto_refresh=False)


class _Bar:
    """One line of progress, a step for each round."""

    def __init__(self, progress: Progress, description: str, rounds: int) -> None:
        self.progress = progress
        self.task = progress.add_task(description, total=rounds)
        progress.refresh()

    def tick(self) -> None:
        self.progress.advance(self.task)
        self.progress.refresh()
