"""Teams on GPUs: a thread for each rank, which launches on a stream of its own what the rank is to run.

Ranks run on at once: one that others wait for at the host's level, by turns or collectives, waits for its stream first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from time import monotonic, sleep
from typing import Any

from tilewright.backends.cuda.loaded import LaunchedProgram, PlacedProgram, Seat
from tilewright.backends.cuda.ranks import await_callers, is_done, reach, seats, shared_words
from tilewright.core.expr import Call
from tilewright.core.program import Program
from tilewright.core.visitor import expressions, statements
from tilewright.errors import ExecutionError
from tilewright.interpret.hosts import Collective, Dispatch, Plan, Window, WindowBuffer
from tilewright.programs.distributed.chips import Chips
from tilewright.programs.distributed.device_collectives import performed
from tilewright.programs.distributed.device_windows import DeviceParts, DeviceWindows
from tilewright.programs.distributed.launches import Launch, launched
from tilewright.programs.distributed.steps import Step, Steps
from tilewright.programs.distributed.team import TeamRun
from tilewright.programs.distributed.waits import WORDS, Waits
from tilewright.records import mutable

LOOKS, NAP = 200, 5e-5
"""How often a thread looks for the end of its rank's kernels before it sleeps, and for how long: seconds."""
PATIENCE = 10.0
"""Seconds for which kernels may go on once they have been told to end."""


@mutable
class Stand:
    """A rank: where it runs, and the programs that it has launched there."""

    rank: int
    seat: Seat
    natives: dict[str, PlacedProgram] = field(default_factory=dict[str, PlacedProgram])
    stopped: float = 0.0
    """When it was told to end; 0 while it was not."""

    def native(self, chips: Chips, name: str) -> PlacedProgram:
        """Return a function for this rank, loaded on its GPU."""
        if name not in self.natives:
            program, _ = chips.native(name)
            assert isinstance(program, LaunchedProgram)
            self.natives[name] = program.of_rank(self.seat)
        return self.natives[name]

    def settle(self) -> None:
        """Wait until all is done that was launched, and raise what it did wrong."""
        looks = 0
        while not is_done(self.seat):
            looks += 1
            if looks > LOOKS:
                sleep(NAP)
            if self.stopped and monotonic() > self.stopped + PATIENCE:
                raise ExecutionError(f"kernels of rank {self.rank} do not end: the GPU may have to be reset")
        errors = [error for name, native in self.natives.items() if (error := _noted(name, native)) is not None]
        if errors:
            raise errors[0]

    def begin(self) -> None:
        """Forget what became of the last run."""
        self.stopped = 0.0
        for name, native in self.natives.items():
            _noted(name, native)

    def stop(self) -> None:
        """Take note that kernels should have ended."""
        self.stopped = self.stopped or monotonic()


def _noted(name: str, native: PlacedProgram) -> ExecutionError | None:
    """Return what kernels of a program have done wrong, and forget it."""
    try:
        native.finish(name, 0, 0)
    except ExecutionError as error:
        return error
    return None


@mutable
class DeviceSteps(Steps):
    """What every rank does on its GPU."""

    windows: DeviceWindows | None = None
    """What keeps the memory of the parts."""
    stands: Sequence[Stand] = ()
    callers: int = 0
    """The GPU whose current stream the caller's tensors were made on."""

    def begin(self, bases: Sequence[int]) -> None:
        """Make ready for a run: what the caller has started is done, and all windows are zero before a rank begins."""
        for gpu in {self.callers, *(stand.seat.device for stand in self.stands)}:
            await_callers(gpu)
        for stand in self.stands:
            stand.begin()
        super().begin(bases)
        for stand in self.stands:
            stand.settle()

    def stop(self) -> None:
        """Let what the ranks run here end soon."""
        super().stop()
        for stand in self.stands:
            stand.stop()


def device_run(
    plan: Plan, program: Program, chips: Chips, args: Sequence[Any], device_ids: Sequence[int], callers: int
) -> TeamRun:
    """Return a plan made ready for ranks on GPUs, all of this process; `callers` is the GPU of the arguments."""
    held = Waits(plan.size, shared_words(WORDS * plan.size))
    places = dict(enumerate(seats(device_ids, waits=has_waits(program))))
    for gpu in {seat.device for seat in places.values()} - {callers}:
        reach(gpu, callers)
    windows = DeviceWindows(plan.buffers, places, held.aborts)
    stands = [Stand(rank, replace(seat, heads=windows.heads[rank])) for rank, seat in places.items()]
    return TeamRun(device_steps(plan, chips, args, windows, stands, callers), held)


def has_waits(program: Program) -> bool:
    """Return whether ranks wait for each other inside of functions that they run."""
    calls = (e for function in program.function_list for s in statements(function.body) for e in expressions(s))
    return any(isinstance(call, Call) and call.op.name == "distributed.wait" for call in calls)


def device_steps(
    plan: Plan, chips: Chips, args: Sequence[Any], windows: DeviceWindows, stands: Sequence[Stand], callers: int
) -> DeviceSteps:
    """Return what ranks do; views of the host's `args` follow those."""
    awaited = {need for turns in plan.turns for turn in turns for need in turn.needs}
    parts = windows.parts
    made = DeviceSteps(parts, {stand.rank: [] for stand in stands}, [], list(parts.values()))
    made.windows, made.stands, made.callers = windows, stands, callers
    gpus = {stand.rank: stand.seat.device for stand in stands}
    for stand in stands:
        for number, turn in enumerate(plan.turns[stand.rank], 1):
            if isinstance(turn.action, Collective):
                run = _collective(turn.action, stand, parts, gpus)
            else:
                run = _launched(turn.action, stand, chips, parts, args)
                made.launches.append(run)
            wakes = (stand.rank, number) in awaited
            made.ranks[stand.rank].append(Step(_settled(run, stand) if wakes else run, turn.needs, wakes))
        made.ranks[stand.rank].append(Step(stand.settle, (), False, 0))
    return made


def _launched(
    action: Dispatch, stand: Stand, chips: Chips, parts: Mapping[WindowBuffer, DeviceParts], args: Sequence[Any]
) -> Launch:
    if chips.function(action.function).is_sub_worker:
        message = f"`{action.function}` runs on the host, which has no tensors of a GPU"
        raise ExecutionError(message, spans=[action.span], help="pass tensors of the processor, or do it in a kernel")
    function = chips.compiled(action.function).declared[action.function]
    return launched(action, stand.native(chips, action.function), function, parts, args, 1)


def _collective(
    action: Collective, stand: Stand, parts: Mapping[WindowBuffer, DeviceParts], gpus: Mapping[int, int]
) -> Any:
    if stand.rank != action.domain[0]:
        return _nothing

    def place(rank: int, window: Window) -> tuple[int, int]:
        return parts[window.buffer].starts[rank], gpus[rank]

    return performed(action, place, stand.seat)


def _nothing() -> None:
    """Leave the work to the first of the domain."""


def _settled(run: Any, stand: Stand) -> Any:
    return partial(_both, run, stand)


def _both(run: Any, stand: Stand) -> None:
    run()
    stand.settle()
