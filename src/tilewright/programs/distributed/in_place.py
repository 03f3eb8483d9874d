"""Gathers in place: what an all-gather collects is read where the ranks have it, and nothing is copied.

A window that holds a row of every rank is the same on all of them. A host-level `allgather` whose target is read alone,
and not once its rows are others, needs no memory of its own: each rank maps the rows of all, one behind the other, and
a product reads those of its peers tile by tile. A kernel's `allgather` has one memory for the targets of all
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
from tilewright.interpret.hosts import Collective, Dispatch, Plan, Turn, Window, WindowBuffer
from tilewright.passes.aliases import Footprints
from tilewright.records import record

PAGE = 4096
"""What memory is mapped in."""


Needs = Mapping[tuple[int, int], Mapping[int, int]]
"""By rank and number of a turn, which turn of each other rank has to be over before."""


@record
class InPlace:
    """Which buffers have no memory of their own."""

    gathered: Mapping[WindowBuffer, WindowBuffer]
    """The targets of host-level gathers, and the buffers whose rows they are."""
    shared: frozenset[WindowBuffer]
    """The targets of gathers in kernels, one memory for all ranks."""
    needs: Needs
    """The turns that write rows which others may still read."""

    def copies(self, buffer: WindowBuffer) -> int:
        """Return how many memories of its own a buffer has."""
        return 0 if buffer in self.gathered else 1 if buffer in self.shared else len(buffer.domain)

    def order(self, plan: Plan) -> None:
        """Let turns that write rows come after those that read them."""
        for (rank, number), others in self.needs.items():
            turn = plan.turns[rank][number - 1]
            needs = {**others, **{r: max(n, others.get(r, 0)) for r, n in turn.needs}}
            plan.turns[rank][number - 1] = Turn(turn.action, tuple(needs.items()))


def in_place(plan: Plan, program: Program, footprints: Footprints) -> InPlace:
    """Return what of a plan needs no copies, given what its functions do to their parameters."""
    gathered = dict[WindowBuffer, WindowBuffer]()
    if not hasattr(os, "memfd_create") or mmap.PAGESIZE != PAGE:
        return InPlace(gathered, frozenset(), {})
    needs: dict[tuple[int, int], dict[int, int]] = {}
    targets = [a.windows["target"].buffer for a in plan.actions if isinstance(a, Collective) and a.name == "allgather"]
    for target in dict.fromkeys(targets):
        read = _Read(plan, target, footprints)
        if read.is_in_place:
            assert read.rows is not None
            gathered[target] = read.rows
            for turn, others in read.needs.items():
                held = needs.setdefault(turn, {})
                held.update({rank: max(number, held.get(rank, 0)) for rank, number in others.items()})
    gathers = _Gathers(program, footprints)
    return InPlace(gathered, frozenset(each for each in plan.buffers if gathers.are_all_of(each, plan)), needs)


class _Read:
    """What a plan does with the target of gathers: whether rows can be read where they are, as often as they are new.

    They are whole pages of one buffer, and nobody reads them once somebody has written them again, until the next
    gather. Who writes them waits for those that read: the others may be behind.
    """

    def __init__(self, plan: Plan, target: WindowBuffer, footprints: Footprints) -> None:
        self.target = target
        self.rows: WindowBuffer | None = None
        self.needs: dict[tuple[int, int], Mapping[int, int]] = {}
        self._readers: dict[int, int] = {}
        self._is_new = False
        numbers = {(id(t.action), rank): n for rank, turns in enumerate(plan.turns) for n, t in enumerate(turns, 1)}
        self.is_in_place = all(self._keeps(action, numbers, footprints) for action in plan.actions)

    def _keeps(
        self, action: Dispatch | Collective, numbers: Mapping[tuple[int, int], int], footprints: Footprints
    ) -> bool:
        """Take note of an action; return whether rows can still be read where they are."""
        if (
            isinstance(action, Collective)
            and action.name == "allgather"
            and action.windows["target"].buffer is self.target
        ):
            known, self.rows = self.rows, action.windows["local_data"].buffer
            self._readers, self._is_new = {}, True
            return known in (None, self.rows) and _fits(action)
        found = [*_windows(action, footprints)]
        if any(window.buffer is self.target and (is_written or not self._is_new) for window, is_written in found):
            return False
        reads = any(window.buffer is self.target for window, _ in found)
        writes = any(window.buffer is self.rows and is_written for window, is_written in found)
        if isinstance(action, Collective):
            return not reads and not writes
        number = numbers[id(action), action.rank]
        if writes:
            self.needs[action.rank, number] = {r: n for r, n in self._readers.items() if r != action.rank}
            self._is_new = False
        if reads:
            self._readers[action.rank] = number
        return True


def _fits(gather: Collective) -> bool:
    """Return whether the rows of a gather are whole pages, and all of its target."""
    target, row = gather.windows["target"], gather.windows["local_data"]
    size, domain = _bytes(row), row.buffer.domain
    if target.buffer.domain != domain or target.shape[0] != len(domain):
        return False
    return size % PAGE == 0 and target.buffer.size == size * len(domain)


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
