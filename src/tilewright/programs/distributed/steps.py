"""Steps: a plan made ready, what each rank calls in order, to be run again on other tensors of the same shapes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tilewright.backends.host import HostProgram
from tilewright.core.program import Function
from tilewright.core.region import Array
from tilewright.interpret.hosts import Collective, Dispatch, Plan, Turn, Window, WindowBuffer
from tilewright.ops.collectives import MEANINGS
from tilewright.ops.window_buffers import nbytes
from tilewright.programs.distributed.launches import Batch, Launch, Work, launched, worked
from tilewright.programs.distributed.progress import Progress
from tilewright.programs.distributed.windows import Cleared, Placed
from tilewright.records import mutable, record

Natives = Callable[[str], "tuple[HostProgram, Function]"]
"""Where native functions are found by name."""
Bodies = Callable[[str], "Callable[[list[Any]], Any] | None"]
"""Where functions are found that Python runs, None for others."""
Joins = Callable[[Collective], Callable[[], None]]
"""What every rank of a domain does in a collective, together with the others, where the first cannot do it for all."""
LARGE = 1 << 16
"""Bytes from which on a window is zero only where that could be seen: to look takes as long as to clear fewer."""
_FILLING = "allgather", "all_to_all"
"""The collectives after which a target has rows of all ranks, and nothing of what it held."""


@record
class Step:
    """One turn of a rank: what to call, once others have had so many turns."""

    run: Callable[[], None]
    needs: tuple[tuple[int, int], ...]
    wakes: bool
    """Whether others wait for it."""
    turns: int = 1
    """How many turns it is."""


@mutable
class Steps:
    """What every rank does, and the memory of the windows."""

    parts: Mapping[WindowBuffer, Placed]
    ranks: Mapping[int, list[Step]]
    launches: list[Launch | Work]
    cleared: Sequence[Cleared] = ()
    """What is zero when a run begins."""
    keeps_windows: bool = False
    """Whether windows keep what they hold from one run to the next."""

    filled: Sequence[tuple[Array, Any]] = ()
    """Tensors of the host function's own, and what number all elements of each are then."""

    bases: Sequence[int] = ()
    """Where the arguments of the last run started."""

    is_stopped: bool = False
    """Whether the last run was ended while ranks were at work."""

    def begin(self, bases: Sequence[int]) -> None:
        """Make ready for a run on arguments that start at some addresses."""
        for parts in () if self.keeps_windows else self.cleared:
            parts.clear()
        for array, number in self.filled:
            array[...] = number
        for step in self.launches if bases != self.bases else ():
            step.place(bases)
        for step in self.launches if self.is_stopped else ():
            step.begin()
        self.bases, self.is_stopped = bases, False

    def stop(self) -> None:
        """Let what the ranks run here end soon."""
        self.is_stopped = True
        for step in self.launches:
            step.stop()

    def run(self, rank: int, progress: Progress) -> None:
        """Do what one rank has to."""
        for step in self.ranks[rank]:
            for need in step.needs:
                progress.until(*need)
            step.run()
            progress.advance(rank, step.turns, step.wakes)


def steps_of(
    plan: Plan, natives: Natives, bodies: Bodies, args: Sequence[Any], parts: Mapping[WindowBuffer, Placed],
    here: Sequence[int], threads: int, joins: Joins | None = None,
) -> Steps:  # fmt: skip
    """Return what the ranks that run here do, on so many threads each; views of the host's `args` follow those."""
    made = Steps(parts, {rank: [] for rank in here}, [], filled=plan.filled)
    made.cleared = [
        parts[buffer]
        for buffer in parts
        if not (_is_overwritten(buffer, plan) or (buffer.size >= LARGE and _is_filled(buffer, plan, natives, bodies)))
    ]
    awaited = {need for turns in plan.turns for turn in turns for need in _needs(turn, joins)}
    for rank in here:
        steps: list[Step] = []
        for number, turn in enumerate(plan.turns[rank], 1):
            run = _step(turn.action, rank, natives, bodies, args, parts, threads, joins)
            made.launches += [run] if isinstance(run, (Launch, Work)) else []
            steps.append(Step(run, _needs(turn, joins), (rank, number) in awaited))
        made.ranks[rank].extend(_batched(steps))
    return made


def _is_overwritten(buffer: WindowBuffer, plan: Plan) -> bool:
    """Return whether the first that is done with a buffer is to fill it with the rows of all its ranks."""
    for action in plan.actions:
        if isinstance(action, Dispatch):
            if any(isinstance(arg, Window) and arg.buffer is buffer for arg in action.args):
                return False
        elif any(window.buffer is buffer for window in action.windows.values()):
            return action.name in _FILLING and _fills(action.windows["target"], buffer, action.domain)
    return False


def _is_filled(buffer: WindowBuffer, plan: Plan, natives: Natives, bodies: Bodies) -> bool:
    """Return whether what each of its ranks does first with a buffer is to write all of its part, and to look at none.

    Ranks that look at the part of one which has not begun are told of a race by the interpreter.
    """
    left = set(buffer.domain)
    for action in plan.actions:
        if not isinstance(action, Dispatch):
            if left and any(window.buffer is buffer for window in action.windows.values()):
                return False
            continue
        held = [k for k, arg in enumerate(action.args) if isinstance(arg, Window) and arg.buffer is buffer]
        if not held or action.rank not in left:
            continue
        window: Window = action.args[held[0]]
        if len(held) > 1 or nbytes(window.shape, window.dtype) != buffer.size or bodies(action.function) is not None:
            return False
        if held[0] not in natives(action.function)[0].code.filled.get(action.function, ()):
            return False
        left.remove(action.rank)
    return not left


def _fills(target: Window, buffer: WindowBuffer, domain: Sequence[int]) -> bool:
    """Return whether a window is all of a buffer, and has rows of the ranks of its domain alone."""
    is_whole = target.buffer is buffer and nbytes(target.shape, target.dtype) == buffer.size
    return is_whole and buffer.domain == domain and target.shape[0] == len(domain)


def _needs(turn: Turn, joins: Joins | None) -> tuple[tuple[int, int], ...]:
    """Return the turns of others that come first: of a collective that all join, torch sees to that."""
    return () if joins is not None and isinstance(turn.action, Collective) else turn.needs


def _batched(steps: Sequence[Step]) -> Iterator[Step]:
    """Yield steps, native ones that follow each other as one: where nobody waits for any but the last of them."""
    held: list[Step] = []
    for step in steps:
        if held and (step.needs or not isinstance(step.run, Launch)):
            yield _together(held)
            held = []
        if not isinstance(step.run, Launch):
            yield step
            continue
        held.append(step)
        if step.wakes:
            yield _together(held)
            held = []
    if held:
        yield _together(held)


def _together(steps: Sequence[Step]) -> Step:
    launches = [step.run for step in steps if isinstance(step.run, Launch)]
    if len(steps) == 1:
        return steps[0]
    return Step(Batch(launches), steps[0].needs, steps[-1].wakes, len(steps))


def _step(
    action: Dispatch | Collective, rank: int, natives: Natives, bodies: Bodies, args: Sequence[Any],
    parts: Mapping[WindowBuffer, Placed], threads: int, joins: Joins | None,
) -> Callable[[], None]:  # fmt: skip
    """Return what a rank calls in one turn."""
    if isinstance(action, Collective):
        if joins is not None:
            return joins(action)
        return _performing(action, parts) if rank == action.domain[0] and not _is_done(action, parts) else _nothing
    body = bodies(action.function)
    if body is not None:
        return worked(action, body, args)
    return launched(action, *natives(action.function), parts, args, threads)


def _is_done(action: Collective, parts: Mapping[WindowBuffer, Placed]) -> bool:
    """Return whether a collective is done once its ranks have met: its target is a view of what it gathers."""
    target = action.windows.get("target")
    return target is not None and not parts[target.buffer].copies


def _nothing() -> None:
    """Leave the work to the first of the domain."""


def _performing(action: Collective, parts: Mapping[WindowBuffer, Placed]) -> Callable[[], None]:
    def perform() -> None:
        arrays = [
            {name: window.live(parts[window.buffer].array(rank, window)) for name, window in action.windows.items()}
            for rank in action.domain
        ]
        MEANINGS[action.name](arrays, **action.options)

    return perform
