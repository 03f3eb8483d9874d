"""Gathers in place: what an all-gather collects is read where the ranks have it, and nothing is copied.

A window that holds a row of every rank is the same on all of them. A host-level `allgather` whose target is read alone,
and whose rows stay as they are from then on, needs no memory of its own: each rank maps the rows of all, one behind the
other, and a product reads those of its peers tile by tile. A kernel's `allgather` has one memory for the targets of all
ranks, and each writes its row once. Where any of it does not hold, rows are copied to every rank.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator, Mapping
from math import prod

from tilewright.core.access import Access
from tilewright.core.expr import Call, Expr, Invoke, Submit, Var
from tilewright.core.program import Function, Program
from tilewright.core.stmt import AssignStmt, ForStmt, SeqStmts
from tilewright.core.visitor import invocations, statements
from tilewright.interpret.hosts import Collective, Dispatch, Plan, Window, WindowBuffer
from tilewright.passes.aliases import Footprints
from tilewright.records import record

PAGE = 4096
"""What memory is mapped in."""


@record
class InPlace:
    """Which buffers have no memory of their own."""

    gathered: Mapping[WindowBuffer, WindowBuffer]
    """The targets of host-level gathers, and the buffers whose rows they are."""
    shared: frozenset[WindowBuffer]
    """The targets of gathers in kernels, one memory for all ranks."""

    def copies(self, buffer: WindowBuffer) -> int:
        """Return how many memories of its own a buffer has."""
        return 0 if buffer in self.gathered else 1 if buffer in self.shared else len(buffer.domain)


def in_place(plan: Plan, program: Program) -> InPlace:
    """Return what of a plan needs no copies."""
    footprints, gathered = Footprints(program), dict[WindowBuffer, WindowBuffer]()
    if not hasattr(os, "memfd_create") or mmap.PAGESIZE != PAGE:
        return InPlace(gathered, frozenset())
    for number, action in enumerate(plan.actions):
        if isinstance(action, Collective) and action.name == "allgather" and _is_read_alone(plan, number, footprints):
            gathered[action.windows["target"].buffer] = action.windows["local_data"].buffer
    gathers = _Gathers(program, footprints)
    return InPlace(gathered, frozenset(each for each in plan.buffers if gathers.are_all_of(each, plan)))


def _is_read_alone(plan: Plan, number: int, footprints: Footprints) -> bool:
    """Return whether a gather's rows can be read where they are: whole pages that nobody writes after it."""
    gather = plan.actions[number]
    assert isinstance(gather, Collective)
    target, row = gather.windows["target"], gather.windows["local_data"]
    size = _bytes(row)
    if target.buffer.domain != row.buffer.domain or target.shape[0] != len(row.buffer.domain):
        return False
    if size % PAGE or target.buffer.size != size * len(row.buffer.domain):
        return False
    before, after = plan.actions[:number], plan.actions[number + 1 :]
    if any(window.buffer is target.buffer for action in before for window, _ in _windows(action, footprints)):
        return False
    return not any(
        (window.buffer is row.buffer and is_written)
        or (window.buffer is target.buffer and (is_written or isinstance(action, Collective)))
        for action in after
        for window, is_written in _windows(action, footprints)
    )


def _bytes(window: Window) -> int:
    return prod(window.shape) * window.dtype.get_byte()


def _windows(action: Dispatch | Collective, footprints: Footprints) -> Iterator[tuple[Window, bool]]:
    """Yield the windows that an action is given, and whether it may write them."""
    if isinstance(action, Collective):
        for name, window in action.windows.items():
            yield window, name not in ("local_data", "input", "send_counts")
        return
    written = footprints[action.function].writes
    for position, arg in enumerate(action.args):
        if isinstance(arg, Window):
            yield arg, position in written


class _Gathers:
    """The functions of a program, and which windows they write in gathers alone."""

    def __init__(self, program: Program, footprints: Footprints) -> None:
        self.program = program
        self.footprints = footprints
        self._found: dict[tuple[str, int], bool] = {}

    def are_all_of(self, buffer: WindowBuffer, plan: Plan) -> bool:
        """Return whether a buffer is written, and all that writes it is gathers of all its ranks."""
        writers: list[tuple[Dispatch, int]] = []
        for action in plan.actions:
            if isinstance(action, Collective):
                if any(window.buffer is buffer for window in action.windows.values()):
                    return False
                continue
            held = [k for k, arg in enumerate(action.args) if isinstance(arg, Window) and arg.buffer is buffer]
            writers += [(action, k) for k in held if k in self.footprints[action.function].writes]
        return bool(writers) and all(
            self.gathers(action.function, position) and _share_a_domain(action, buffer) for action, position in writers
        )

    def gathers(self, name: str, position: int) -> bool:
        """Return whether a function writes a parameter in gathers alone."""
        key = name, position
        if key not in self._found:
            self._found[key] = False
            self._found[key] = self._are_gathers(self.program[name], position)
        return self._found[key]

    def _are_gathers(self, function: Function, position: int) -> bool:
        aliases, param = self.footprints.aliases(function.name), function.params[position]

        def writes(body: SeqStmts) -> int:
            return sum(access is not Access.READ and param in owners for access, owners in aliases.accesses(body))

        counts = {s.var for s in statements(function.body) if isinstance(s, AssignStmt) and _is_copies(s.value)}
        loops = [s for s in statements(function.body) if isinstance(s, ForStmt) and s.stop in counts]
        called = 0
        for call in invocations(function.body):
            given = [k for k, arg in enumerate(call.args) if param in aliases.owners(arg)]
            written = [k for k in given if k in self.footprints[call.op.name].writes]
            if not all(self.gathers(call.op.name, k) for k in written):
                return False
            called += _times(call, written, self.footprints)
        return writes(function.body) == called + sum(writes(loop.body) for loop in loops)


def _times(call: Invoke | Submit, written: list[int], footprints: Footprints) -> int:
    """Return how many writes a call counts as."""
    return sum(1 + (k in footprints[call.op.name].adds) for k in written)


def _is_copies(value: Expr) -> bool:
    return isinstance(value, Call) and value.op.name == "distributed.copies" and isinstance(value.args[0], Var)


def _share_a_domain(action: Dispatch, buffer: WindowBuffer) -> bool:
    """Return whether the signals of a dispatch are of the ranks that a buffer is of."""
    return all(arg.buffer.domain == buffer.domain for arg in action.args if isinstance(arg, Window))
