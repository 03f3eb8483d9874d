"""Rows: tensors of which each process has its own row alone, as arguments of host functions.

A host function takes whole tensors, `x[r]` being what rank r is given. Where ranks are given nothing but their own
rows, a process needs no other: it passes a stand-in of the whole shape, whose memory nobody touches, and the run takes
the row where the caller has it. What the call itself allocates is written in its own row, too, and sent to nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import field
from types import MappingProxyType
from typing import Any

from tilewright.core.region import Array, Region
from tilewright.interpret.hosts import Dispatch, Plan
from tilewright.interpret.shadow import reach
from tilewright.records import mutable


@mutable
class Rows:
    """What a process has rows of, while a call runs."""

    rank: int
    starts: Mapping[str, int]
    """Where each whole tensor would start of which a stand-in is passed, by the names of parameters."""
    whole: Collection[str]
    """The parameters whose tensors are there as a whole; what is in neither the call allocates."""
    taken: set[int] = field(default_factory=set[int])
    """The addresses of tensors of which the run has read and written this process's row alone."""

    def places(self, names: Sequence[str], args: Sequence[Any], size: int) -> tuple[int, ...]:
        """Return the positions of the arguments that may be rows."""
        found = ((k, arg.data) for k, arg in enumerate(args) if isinstance(arg, Region))
        return tuple(k for k, data in found if names[k] not in self.whole and _has_rows(data, size))

    def take(self, names: Sequence[str], args: Sequence[Any], places: Collection[int]) -> dict[int, int]:
        """Return where stand-ins would start, rows being taken at some positions; NotRows where others are needed."""
        needed = [name for k, name in enumerate(names) if name in self.starts and k not in places]
        if needed:
            raise NotRows(needed)
        self.taken = {args[place].data.ctypes.data for place in places}
        return {place: self.starts[names[place]] for place in places if names[place] in self.starts}


class NotRows(Exception):
    """A run needs some tensors as a whole, all processes alike: those of these parameters."""

    def __init__(self, names: Collection[str]) -> None:
        super().__init__(names)
        self.names = names


ROWS: ContextVar[Rows | None] = ContextVar("rows", default=None)
"""The rows of the call that runs."""


SHARDS: ContextVar[Callable[[], Mapping[str, str]]] = ContextVar("shards", default=lambda: MappingProxyType({}))
"""What tells which DTensors the call that runs was given, by the names of parameters."""


def _has_rows(data: Array, size: int) -> bool:
    return data.ndim > 0 and data.shape[0] == size and data.flags.c_contiguous and data.size > 0


def is_taken_by_rows(plan: Plan, whole: Array) -> bool:
    """Return whether every rank is given nothing of a tensor but its own row."""
    low, high = reach(whole)
    step = whole.strides[0]
    for action in plan.actions:
        if not isinstance(action, Dispatch):
            continue
        for first, last in (reach(arg.data) for arg in action.args if isinstance(arg, Region)):
            start = low + action.rank * step
            if first < high and last > low and not start <= first <= last <= start + step:
                return False
    return True
