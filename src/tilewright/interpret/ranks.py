"""Ranks as the interpreter runs them: one at a time, each until it waits for a signal that has not come.

All of it is in order, so that a program gives one result or one mistake. Ranks that wait for each other are one, and so
is a wait for what nobody sends; `window_races` finds elements that two ranks touch with no signal between them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any, TypeVar

from tilewright.arrays import np
from tilewright.core.access import OBSERVER, Access
from tilewright.core.coroutines import Coroutine
from tilewright.core.expr import Call
from tilewright.core.program import Program
from tilewright.core.region import Array, Region, whole
from tilewright.core.world import UNHEARD, WORLD, Membership, elements_of
from tilewright.errors import ExecutionError
from tilewright.interpret.checked import read_whole
from tilewright.interpret.contested import contested
from tilewright.interpret.dependences import Stretch
from tilewright.interpret.evaluator import Value
from tilewright.interpret.hosts import Collective, Dispatch, HostMachine, Plan, Turn, Window, WindowBuffer
from tilewright.interpret.machine import Machine
from tilewright.interpret.window_races import WindowRaces
from tilewright.ops.collectives import MEANINGS
from tilewright.passes.aliases import Footprints
from tilewright.records import mutable, record
from tilewright.source import UNKNOWN, Span

R = TypeVar("R", bound=WindowRaces)
SubWorkers = Callable[[str], "Callable[[list[Any]], Any]"]
Kept = dict[Hashable, dict[int, Array]]
"""The parts of windows by rank, where a run is to find them as another one has left them."""

LOOKS = 1 << 14
"""How often all ranks may look at cells that nobody changes before nobody believes in them any more."""


class RankMachine(Machine):
    """Runs what is dispatched to a rank, and knows where it is."""

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self.place: Span = UNKNOWN

    def evaluate(self, call: Call, bound: Mapping[str, Value]) -> Value:
        """Return what an op gives for its arguments."""
        self.place = call.span
        races = OBSERVER.get()
        if isinstance(races, WindowRaces):
            races.at = call.span
            for operand in () if call.op.spec.is_fence else read_whole(call):
                races.touched(Access.READ, bound[operand].live)
        return super().evaluate(call, bound)


@record
class _Wait:
    """What a rank waits for."""

    holds: Callable[[], bool]
    cell: Array | None
    wanted: str
    span: Span

    def __str__(self) -> str:
        held = "" if self.cell is None else f", which is {self.cell[0]}"
        return f"waits for {self.wanted}{held}"


@mutable
class _Rank:
    """One rank that runs: a world of its own view."""

    number: int
    ranks: Ranks
    machine: RankMachine
    coroutine: Coroutine[None] | None = None
    blocked: _Wait | None = None
    is_looking: bool = False
    """Whether it has paused to look at a cell."""
    verdict: str = ""
    """Why it waits in vain."""

    def size(self) -> int:
        return self.ranks.plan.size

    def buffer(self, size: int) -> Any:
        raise ExecutionError("window buffers are laid out by host functions")

    def collective(self, name: str, windows: Mapping[str, Window], options: Mapping[str, Any]) -> None:
        raise ExecutionError("this is a statement of host functions")

    def membership(self, elements: Array) -> Membership:
        return self.ranks.membership(elements)

    def told(self, cell: Array, value: int, is_set: bool) -> None:
        self.ranks.looks = 0
        self.ranks.races.released(self.number, cell, value, is_set)

    def wait(self, cell: Array, expected: Sequence[range], wanted: str) -> None:
        self._until(cell, lambda: _among(cell, expected) is not None, wanted)
        self._acquired(cell, expected)

    def look(self, cell: Array, expected: Sequence[range]) -> bool:
        self.is_looking = True
        assert self.coroutine is not None
        self.coroutine.pause()
        if self.verdict:
            raise ExecutionError(self.verdict, notes=self.ranks.others(self), help=UNHEARD)
        found = _among(cell, expected)
        self.ranks.races.acquired(self.number, cell, found or _beside(cell, expected))
        return found is not None

    def _acquired(self, cell: Array, expected: Sequence[range]) -> None:
        found = _among(cell, expected)
        assert found is not None
        self.ranks.races.acquired(self.number, cell, found)

    def _until(self, cell: Array | None, holds: Callable[[], bool], wanted: str) -> None:
        self.blocked = _Wait(holds, cell, wanted, self.machine.place)
        assert self.coroutine is not None
        while not holds():
            self.coroutine.pause()
            if self.verdict:
                raise ExecutionError(self.verdict, notes=self.ranks.others(self), help=UNHEARD)
        self.blocked = None

    def run(self, coroutine: Coroutine[None]) -> None:
        """Do everything that the plan has for this rank."""
        self.coroutine = coroutine
        WORLD.set(self)
        OBSERVER.set(self.ranks.races)
        for turn in self.ranks.plan.turns[self.number]:
            self.machine.place = turn.action.span
            for rank, number in turn.needs:
                self._after(rank, number, turn)
            if isinstance(turn.action, Dispatch):
                self._dispatched(turn.action)
            elif self.number == turn.action.domain[0]:
                self.ranks.perform(turn.action)
            self.ranks.clocks[self.number].append(self.ranks.races.over(self.number))
            self.ranks.done[self.number] += 1

    def _after(self, rank: int, number: int, turn: Turn) -> None:
        """Wait until another rank has had so many turns."""
        done = self.ranks.done
        what = turn.action.name if isinstance(turn.action, Collective) else turn.action.function
        self._until(None, lambda: done[rank] >= number, f"rank {rank} before `{what}`")
        if number:
            self.ranks.races.followed(self.number, self.ranks.clocks[rank][number - 1])

    def _dispatched(self, action: Dispatch) -> None:
        args = [self.ranks.region(self.number, arg) if isinstance(arg, Window) else arg for arg in action.args]
        try:
            if self.machine.functions[action.function].is_sub_worker:
                self.ranks.sub_worker(action.function)([a.data if isinstance(a, Region) else a for a in args])
                return
            self.machine.run(action.function, args)
        except ExecutionError as error:
            if self.size() > 1 and not self.verdict:
                error.notes = (*error.notes, f"on rank {self.number}")
            raise


@mutable
class Ranks:
    """All ranks of one run."""

    program: Program
    plan: Plan
    sub_worker: SubWorkers
    """What Python's own functions do, by name, given the memory of their arguments."""
    machine: Callable[[Program], RankMachine] = RankMachine
    """What runs a rank."""
    kept: Kept = field(default_factory=dict[Hashable, "dict[int, Array]"])
    memory: dict[WindowBuffer, dict[int, Array]] = field(default_factory=dict[WindowBuffer, "dict[int, Array]"])
    memberships: dict[int, Membership] = field(default_factory=dict[int, Membership])
    done: list[int] = field(default_factory=list[int])
    """How many turns each rank has had."""
    clocks: list[list[Array]] = field(default_factory=list["list[Array]"])
    """When each of them was over."""
    races: WindowRaces = field(init=False)
    running: list[_Rank] = field(default_factory=list["_Rank"])
    looks: int = 0
    """How many rounds in a row ended in looks and waits, nobody having been told anything."""

    def __post_init__(self) -> None:
        """Lay the buffers out, all of them zero but those that were kept."""
        self.done, self.clocks = [0] * self.plan.size, [[] for _ in range(self.plan.size)]
        for place, buffer in enumerate(self.plan.buffers):
            key = place, buffer.size, buffer.domain
            parts = self.kept.get(key) or {rank: _zeros(buffer.size) for rank in buffer.domain}
            self.memory[buffer] = self.kept[key] = parts
            for number, part in enumerate(parts.values()):
                self.memberships[part.ctypes.data] = Membership(number, tuple(parts.values()))
        self.races = self.raced(WindowRaces)

    def raced(self, races: Callable[[int, Iterable[Array], Iterable[Stretch]], R]) -> R:
        """Return what holds accesses to windows and to the caller's memory against each other."""
        parts = (part for parts in self.memory.values() for part in parts.values())
        return races(self.plan.size, parts, contested(self.plan, Footprints(self.program)))

    def perform(self, action: Collective) -> None:
        """Do what all ranks of a domain do together, all of them being there."""
        parts = [
            {name: window.live(self.region(rank, window).data) for name, window in action.windows.items()}
            for rank in action.domain
        ]
        MEANINGS[action.name](parts, **action.options)
        self.races.met(action.domain)

    def membership(self, elements: Array) -> Membership:
        """Return whose part of which domain a window is."""
        found = self.memberships.get(elements.ctypes.data)
        if found is None:
            raise ExecutionError("this is no window of a domain")
        return found

    def region(self, rank: int, window: Window) -> Region:
        """Return a rank's part of a window."""
        return whole(elements_of(self.memory[window.buffer][rank], window.shape, window.dtype.numpy))

    def others(self, one: _Rank) -> list[str]:
        """Return what the other ranks are at."""
        found: list[str] = []
        for rank in self.running:
            if rank is one:
                continue
            if rank.coroutine is None or rank.coroutine.is_over:
                found.append(f"rank {rank.number} has ended")
            elif rank.blocked is not None:
                found.append(f"rank {rank.number} {rank.blocked} at {rank.blocked.span}")
        return found

    def run(self) -> None:
        """Run every rank to its end; the first mistake ends them all."""
        self.running = [_Rank(number, self, self.machine(self.program)) for number in range(self.plan.size)]
        coroutines = [Coroutine(rank.run) for rank in self.running]
        for rank, coroutine in zip(self.running, coroutines, strict=True):
            rank.coroutine = coroutine
        try:
            while any(not coroutine.is_over for coroutine in coroutines):
                self._round()
        finally:
            for coroutine in coroutines:
                coroutine.stop()

    def _round(self) -> None:
        """Let each rank that can go on do so; where none can, say so where the first one waits."""
        moved = False
        left = [rank for rank in self.running if rank.coroutine is not None and not rank.coroutine.is_over]
        for rank in left:
            if rank.blocked is None or rank.blocked.holds():
                moved |= self._advance(rank)
        self.looks = 0 if moved else self.looks + 1
        looking = [rank for rank in left if rank.is_looking]
        if not moved and (self.looks > LOOKS or not looking):
            first = looking[0] if looking else left[0]
            alone = all(rank.blocked is None for rank in self.running if rank is not first)
            why = "nobody is left to change that" if alone else "all ranks wait"
            at = "looks again and again for a signal" if looking else first.blocked
            first.verdict = f"rank {first.number} {at}, and {why}"
            self._advance(first)

    def _advance(self, rank: _Rank) -> bool:
        """Let a rank go on; return whether it ended, or did more than to come to a look."""
        assert rank.coroutine is not None
        self.races.rank, rank.is_looking = rank.number, False
        rank.coroutine.advance()
        return not rank.is_looking


def _among(cell: Array, expected: Sequence[range]) -> range | None:
    """Return the range that a cell's value is in."""
    return next((each for each in expected if int(cell[0]) in each), None)


def _beside(cell: Array, expected: Sequence[range]) -> range:
    """Return the values around a cell's that are not expected: to have found one of those tells something, too."""
    value = int(cell[0])
    low = max((each.stop for each in expected if each.stop <= value), default=-(1 << 31))
    return range(low, min((each.start for each in expected if each.start > value), default=1 << 31))


def _zeros(size: int) -> Array:
    words: Any = np.zeros(-(-size // 8), np.int64)
    return words.view(np.uint8)[:size]


def run_host(
    program: Program, size: int, name: str, args: Sequence[Value], sub_worker: SubWorkers | None = None,
    kept: Kept | None = None,
) -> tuple[Value, ...]:  # fmt: skip
    """Run a host function on so many ranks; tensors among `args` are written in place, windows lie where they did."""
    machine = HostMachine(program, size)
    results = machine.planned(name, args)
    Ranks(program, machine.plan, sub_worker or _unknown, kept={} if kept is None else kept).run()
    return results


def _unknown(name: str) -> Callable[[list[Any]], Any]:
    raise ExecutionError(f"nobody has said what `{name}` does")
