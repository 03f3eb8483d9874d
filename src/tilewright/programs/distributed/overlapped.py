"""Overlapped gathers: where ranks share no memory, what reads gathered rows begins with those that are here.

Where ranks compute on all cores of their one machine nothing would be won: a gather waits for no wire there, but for a
core. Elsewhere it is begun where it stands. The function that reads its rows next waits for those of each step
(`awaited_rows`), its rank's own first, and the gather is over behind it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from math import gcd, prod

from tilewright.arrays import np
from tilewright.core.program import Function, Program
from tilewright.core.region import Region
from tilewright.dtypes import INT32
from tilewright.interpret.hosts import Collective, Dispatch, Plan, Window, WindowBuffer, chip_program
from tilewright.passes.aliases import Footprints
from tilewright.passes.awaited_rows import AwaitedRows, awaited_rows
from tilewright.programs.distributed.distant_collectives import FEW
from tilewright.records import record

LEAST = 1 << 18
"""Bytes of a row up to which it is here before a function has begun."""
PIECES, WHOLE = 4, 1
"""What a row comes in between machines, where the steps of its reader allow, and on one: there the threads that bring
pieces wait for a processor, in the middle of 75 calls on two of them 10.3 ms instead of 6.8."""


@record
class Begun:
    """A gather that goes on while its rows are read: what each comes in, and by what one is told how much is here."""

    pieces: int
    cells: Window


@record
class Overlapped:
    """A plan some of whose gathers go on while their rows are read, and the program that has what ranks run."""

    plan: Plan
    program: Program
    begun: Mapping[int, Begun]
    """By gather."""
    ends: Mapping[int, Collective]
    """What stands where gathers are over, and those."""


@record
class _Reading:
    """The dispatches that read the rows of a gather, one on each rank, at some position of their arguments."""

    dispatches: tuple[Dispatch, ...]
    position: int
    pieces: int
    awaited: AwaitedRows


def overlapped(plan: Plan, program: Program, pieces: int) -> Overlapped:
    """Return a plan whose gathers are read as they come, where they can be: rows in so many pieces at the most."""
    made = _Overlapping(plan, program, pieces) if pieces else None
    if made is None or not made.begun:
        return Overlapped(plan, program, {}, {})
    actions = [each for action in plan.actions for each in made.instead_of(action)]
    extended = program.with_functions([*program.function_list, *made.functions.values()])
    buffers = [*plan.buffers, *(begun.cells.buffer for begun in made.begun.values())]
    settled = Plan(plan.size, buffers, actions, filled=plan.filled)
    settled.settle(Footprints(extended))
    return Overlapped(settled, extended, made.begun, made.ends)


class _Overlapping:
    """What stands for the actions of a plan."""

    def __init__(self, plan: Plan, program: Program, pieces: int) -> None:
        self._pieces = pieces
        self.begun: dict[int, Begun] = {}
        self.ends: dict[int, Collective] = {}
        self.functions: dict[str, Function] = {}
        self._program = program
        self._instead: dict[int, list[Dispatch | Collective]] = {}
        for number, action in enumerate(plan.actions):
            if isinstance(action, Collective) and _is_worth_it(action):
                reading = self._reading(action, plan.actions[number + 1 :])
                if reading is not None:
                    self._overlap(action, reading)

    def instead_of(self, action: Dispatch | Collective) -> Sequence[Dispatch | Collective]:
        """Return what ranks do instead of an action."""
        return self._instead.get(id(action), [action])

    def _reading(self, gather: Collective, behind: Sequence[Dispatch | Collective]) -> _Reading | None:
        """Return who reads the rows of a gather next, if that is one function which can wait for them."""
        found = _readers(gather, behind)
        functions = {(reader.function, position) for reader, position in found}
        shapes = {reader.args[position].shape for reader, position in found}
        if len(functions) != 1 or len(shapes) != 1 or any(id(reader) in self._instead for reader, _ in found):
            return None
        ((name, position),), (shape,), ranks = functions, shapes, len(gather.domain)
        pieces: list[int] = []

        def wait(steps: int) -> Function | None:
            from tilewright.frontend.reductions import awaiting  # which is read, line by line, when it is loaded

            pieces.append(gcd(steps // ranks, self._pieces))
            return None if steps % ranks else awaiting(steps // ranks, pieces[-1])

        awaited = awaited_rows(chip_program(self._program, name), name, position, wait)
        if awaited is None or awaited.rows * awaited.steps != shape[0]:
            return None
        return _Reading(tuple(reader for reader, _ in found), position, pieces[-1], awaited)

    def _overlap(self, gather: Collective, reading: _Reading) -> None:
        domain, first = gather.domain, reading.dispatches[0]
        cells = WindowBuffer(INT32.get_byte() * len(domain), set(domain)).window((len(domain), 1), INT32)
        hint = reading.awaited.function.params[reading.position].name_hint
        name = f"{first.function}_awaiting_{hint}"
        while name in self._program.function_names:
            name += "_"
        self.functions[name] = replace(reading.awaited.function, name=name)
        for reader in reading.dispatches:
            start = domain.index(reader.rank) * (reading.awaited.steps // len(domain))
            args = (*reader.args, cells, start)
            self._instead[id(reader)] = [Dispatch(reader.rank, name, args, reader.span, reader.is_counted)]
        end = Collective("barrier", {"target": gather.windows["target"]}, {}, gather.span)
        self._instead[id(reading.dispatches[-1])].append(end)
        self.begun[id(gather)] = Begun(reading.pieces, cells)
        self.ends[id(end)] = gather


def _is_worth_it(action: Collective) -> bool:
    if action.name != "allgather" or not 1 < len(action.domain) <= FEW:
        return False
    target, row = action.windows["target"], action.windows["local_data"]
    size = prod(row.shape) * row.dtype.get_byte()
    return size > LEAST and target.shape[0] == len(action.domain) == len(target.buffer.domain)


def _readers(gather: Collective, behind: Sequence[Dispatch | Collective]) -> list[tuple[Dispatch, int]]:
    """Return what is given the rows of a gather next on each rank, and as which argument; nothing where others are."""
    target, row = (gather.windows[name] for name in ("target", "local_data"))
    found: dict[int, tuple[Dispatch, int]] = {}
    for action in behind:
        args: Sequence[object] = action.args if isinstance(action, Dispatch) else [*action.windows.values()]
        held = [k for k, arg in enumerate(args) if _is_of(arg, target) or _is_of(arg, row)]
        if not held:
            continue
        if not isinstance(action, Dispatch) or action.rank in found or len(held) > 1 or _overlap(action.args):
            return []
        window = action.args[held[0]]
        if window.buffer is not target.buffer or _bytes(window) != _bytes(target):
            return []
        found[action.rank] = action, held[0]
        if len(found) == len(gather.domain):
            return [*found.values()]
    return []


def _is_of(arg: object, window: Window) -> bool:
    return isinstance(arg, Window) and arg.buffer is window.buffer


def _bytes(window: Window) -> int:
    return prod(window.shape) * window.dtype.get_byte()


def _overlap(args: Sequence[object]) -> bool:
    """Return whether tensors may share memory, so that turns could see what others write."""
    arrays = [arg.data for arg in args if isinstance(arg, Region)]
    return any(np.may_share_memory(one, other) for one, other in combinations(arrays, 2))
