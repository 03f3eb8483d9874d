"""Stepped ranks: a host function by its lines, and then what it dispatches, rank after rank from wait to wait."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilewright.core.program import Program
from tilewright.interpret.hosts import HostMachine
from tilewright.interpret.ranks import RankMachine, Ranks
from tilewright.interpret.stepper import SteppingMachine


class SteppingRank(RankMachine, SteppingMachine):
    """Runs what is dispatched to a rank by its lines."""


class SteppingHost(HostMachine, SteppingMachine):
    """Runs a host function by its lines, which leaves a plan."""


def run_stepped(
    machine: SteppingMachine, size: int, name: str, args: Sequence[Any], told: Callable[[str], Any]
) -> tuple[Any, ...]:
    """Run a host function as a machine would step through it on so many ranks: its order, its lines, its turns."""
    host = _alike(SteppingHost(machine.program, size), machine)
    results = host.planned(name, args)

    def rank(program: Program) -> RankMachine:
        return _alike(SteppingRank(program), machine)

    Ranks(machine.program, host.plan, told, rank).run()
    return results


def _alike(made: Any, machine: SteppingMachine) -> Any:
    made.order, made.at, made.lines = machine.order, machine.at, machine.lines
    return made
