"""Watched ranks: what each rank of a host function touches of the caller's memory, and of every rank's windows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tilewright.core.access import Access
from tilewright.core.program import Program
from tilewright.core.region import Array
from tilewright.errors import RaceError
from tilewright.explore.notes import Notes
from tilewright.explore.page import Argument
from tilewright.frontend.sub_workers import told
from tilewright.interpret.hosts import Dispatch, HostMachine, Window
from tilewright.interpret.ranks import Ranks
from tilewright.interpret.window_races import WindowRaces


class RankWatcher(WindowRaces):
    """Takes note of every access of a rank, and of ranks that race, which go on."""

    notes: Notes

    def released(self, rank: int, cell: Array, value: int, is_set: bool) -> None:
        """Take note of a cell that is set for a peer."""
        self._note(Access.WRITE, cell)
        super().released(rank, cell, value, is_set)

    def acquired(self, rank: int, cell: Array, expected: range) -> None:
        """Take note of a cell that was waited for."""
        self._note(Access.READ, cell)
        super().acquired(rank, cell, expected)

    def _note(self, access: Access, elements: Array) -> None:
        self.notes.take([f"rank {self.rank}"], access, elements, self.at)

    def touched(self, access: Access, elements: Array) -> None:
        """Take note of an access, and of a race."""
        self._note(access, elements)
        try:
            super().touched(access, elements)
        except RaceError as race:
            race.locate([self.at])
            self.notes.race(race, elements, self.racing)


def run_watched(program: Program, name: str, args: Sequence[Any], size: int, notes: Notes) -> None:
    """Run a host function on so many ranks, each of them a turn; its windows are arguments, too."""
    host = HostMachine(program, size)
    host.planned(name, args)
    ranks = Ranks(program, host.plan, lambda function: told(program[function]))
    for title, rank, window in _windows(program, host.plan.actions):
        part = ranks.region(rank, window).data
        notes.watch(Argument(f"{title} of rank {rank}", list(window.shape), str(window.dtype), "InOut"), part)
    watcher = ranks.raced(RankWatcher)
    watcher.notes = notes
    ranks.races = watcher
    ranks.run()


def _windows(program: Program, actions: Sequence[Any]) -> Iterator[tuple[str, int, Window]]:
    """Yield the first window of each buffer on every rank that is dispatched one, and the name it has there."""
    seen: set[tuple[int, int]] = set()
    for action in actions:
        if not isinstance(action, Dispatch):
            continue
        for param, arg in zip(program[action.function].params, action.args, strict=True):
            if isinstance(arg, Window) and (id(arg.buffer), action.rank) not in seen:
                seen.add((id(arg.buffer), action.rank))
                yield param.name_hint, action.rank, arg
