"""Outlines: what a plan has ranks do, in short, for processes to hold theirs against each other's.

A host function that looks at elements plans what follows from those, and each process looks at its own. Numbers are
left out: a rank alone is given those of its dispatches.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from itertools import zip_longest
from typing import Any

from tilewright.arrays import np
from tilewright.core.program import Function
from tilewright.core.region import Array, Region
from tilewright.errors import ExecutionError
from tilewright.interpret.hosts import Collective, Dispatch, Plan, Window
from tilewright.interpret.shadow import reach
from tilewright.records import record

HELP = "every process passes the same elements where a host function looks at them, and the same numbers"


@record
class Outline:
    """What a plan of a host function has ranks do, step by step, where that stands, and what buffers it lays out."""

    host: str
    steps: tuple[str, ...]
    places: tuple[str, ...]
    buffers: tuple[str, ...]

    @property
    def digest(self) -> bytes:
        """What plans share that do the same, wherever that stands."""
        return blake2b(repr((self.steps, self.buffers)).encode(), digest_size=16).digest()

    def at(self, number: int) -> str:
        """Return what comes in a step, and where."""
        is_there = number < len(self.steps)
        return f"{self.steps[number]} at {self.places[number]}" if is_there else "does nothing more"


def differing(outlines: Sequence[Outline]) -> ExecutionError:
    """Return that the plans of processes, by their ranks, are not the same, and where they part."""
    rows = enumerate(zip_longest(*(each.steps for each in outlines)))
    number = next((number for number, row in rows if len({*row}) > 1), None)
    said = [f"lays out {'; '.join(each.buffers)}" if number is None else each.at(number) for each in outlines]
    notes = [f"rank {rank} {text}" for rank, text in enumerate(said) if text not in said[:rank]]
    return ExecutionError(f"processes plan different things in `{outlines[0].host}`", notes=notes, help=HELP)


def outline(plan: Plan, host: Function, args: Sequence[Any], *, has_places: bool) -> Outline:
    """Return what a plan of a host function has ranks do with its arguments.

    With `has_places` where in those as well, which then lie packed in all processes.
    """
    buffers = {buffer: k for k, buffer in enumerate(plan.buffers)}
    tensors = [(p.name_hint, arg.data) for p, arg in zip(host.params, args, strict=True) if isinstance(arg, Region)]

    def shown(arg: object) -> str:
        if isinstance(arg, Window):
            valid = "" if arg.valid is None else f", valid {[*arg.valid]},"
            return f"window {[*arg.shape]} {arg.dtype}{valid} of buffer {buffers[arg.buffer]}"
        if isinstance(arg, Region):
            return _view(arg.data, tensors, has_places=has_places)
        return "a number"

    def step(action: Dispatch | Collective) -> str:
        if isinstance(action, Dispatch):
            return f"dispatches {action.function}({', '.join(map(shown, action.args))}) to rank {action.rank}"
        windows = ", ".join(f"{name}={shown(window)}" for name, window in action.windows.items())
        options = "".join(f", {name}={value!r}" for name, value in action.options.items())
        return f"calls {action.name}({windows}{options}) on ranks {[*action.domain]}"

    laid = [f"buffer {k} of {buffer.size} bytes on ranks {[*buffer.domain]}" for buffer, k in buffers.items()]
    places = tuple(str(action.span) for action in plan.actions)
    return Outline(host.name, tuple(map(step, plan.actions)), places, tuple(laid))


def _view(view: Array, tensors: Sequence[tuple[str, Array]], *, has_places: bool) -> str:
    """Return which part of which argument a view is."""
    low, high = reach(view)
    for name, whole in tensors:
        first, last = reach(whole)
        if first <= low and high <= last and view.size:
            places: Sequence[Any] = np.unravel_index((low - first) // whole.itemsize, whole.shape) if has_places else ()
            return f"{name}{[*map(int, places)] or ''} of {[*view.shape]}"
    return f"a tensor of {[*view.shape]}"
