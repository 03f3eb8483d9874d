"""Teams on GPUs: a thread for each rank of a process, which launches on a stream of its own what the rank is to run.

Ranks run on at once: one that others wait for at the host's level, by turns or collectives, waits for its stream first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from time import monotonic, sleep
from typing import Any

from tilewright.backends.devices import Devices, Seat
from tilewright.backends.host import HostProgram
from tilewright.core.expr import Call
from tilewright.core.program import Program
from tilewright.core.visitor import expressions, statements
from tilewright.errors import ExecutionError, UnsupportedFeatureError
from tilewright.interpret.hosts import Collective, Dispatch, Plan, Window, WindowBuffer
from tilewright.programs.distributed.chips import Chips
from tilewright.programs.distributed.device_collectives import performed
from tilewright.programs.distributed.device_memory import MappedMemory
from tilewright.programs.distributed.device_windows import DeviceParts, DeviceWindows, Layout
from tilewright.programs.distributed.group import Group
from tilewright.programs.distributed.launches import Launch, launched
from tilewright.programs.distributed.processes import ProcessRun, process_run
from tilewright.programs.distributed.steps import Step, Steps
from tilewright.programs.distributed.team import TeamRun
from tilewright.programs.distributed.waits import WORDS, Waits
from tilewright.records import mutable

LOOKS, NAP, REST = 200, 2e-5, 2e-4
"""How often a thread looks for the end of its rank's kernels with a nap between two looks, and how long it rests later.

It never looks twice without one: threads of other ranks that have to launch something wait for Python's lock."""
PATIENCE = 10.0
"""Seconds for which kernels may go on once they have been told to end."""


@mutable
class Stand:
    """A rank: where it runs, and the programs that it has launched there."""

    rank: int
    seat: Seat
    devices: Devices
    natives: dict[str, HostProgram] = field(default_factory=dict[str, HostProgram])
    stopped: float = 0.0
    """When it was told to end; 0 while it was not."""

    def native(self, chips: Chips, name: str) -> HostProgram:
        """Return a function for this rank, loaded on its GPU."""
        if name not in self.natives:
            program, _ = chips.native(name)
            self.natives[name] = program.of_rank(self.seat)
        return self.natives[name]

    def settle(self) -> None:
        """Wait until all is done that was launched, and raise what it did wrong."""
        looks = 0
        while not self.devices.is_done(self.seat):
            looks += 1
            sleep(NAP if looks < LOOKS else REST)
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


def _noted(name: str, native: HostProgram) -> ExecutionError | None:
    """Return what kernels of a program have done wrong, and forget it."""
    try:
        native.finish(name, 0, 0)
    except ExecutionError as error:
        return error
    return None


@mutable
class DeviceSteps(Steps):
    """What every rank does on its GPU."""

    stands: Sequence[Stand] = ()
    callers: int = 0
    """The GPU whose current stream the caller's tensors were made on."""

    def begin(self, bases: Sequence[int]) -> None:
        """Make ready for a run: what the caller has started is done, and all windows are zero before a rank begins."""
        for gpu in {self.callers, *(stand.seat.device for stand in self.stands)}:
            self.stands[0].devices.await_callers(gpu)
        super().begin(bases)
        for stand in self.stands:
            stand.begin()

    def stop(self) -> None:
        """Let what the ranks run here end soon."""
        super().stop()
        for stand in self.stands:
            stand.stop()


def device_run(
    devices: Devices, plan: Plan, program: Program, chips: Chips, args: Sequence[Any], device_ids: Sequence[int],
    callers: int,
) -> TeamRun:  # fmt: skip
    """Return a plan made ready for ranks on GPUs, all of this process; `callers` is the GPU of the arguments."""
    held = Waits(plan.size, devices.words(WORDS * plan.size))
    seats = dict(enumerate(devices.seats(device_ids, waits=has_waits(program))))
    for gpu in {seat.device for seat in seats.values()} - {callers}:
        devices.reach(gpu, callers)
    layouts = [Layout.of(plan.buffers, rank) for rank in seats]
    memory = {rank: devices.memory(seat.device, layouts[rank].size) for rank, seat in seats.items()}
    bases = [each.address for each in memory.values()]
    windows = DeviceWindows(devices, plan.buffers, layouts, seats, memory, bases, held.aborts)
    return TeamRun(device_steps(devices, plan, chips, args, windows, seats, callers), held)


def mapped_run(
    group: Group, devices: Devices, plan: Plan, chips: Chips, args: Sequence[Any], sizes: Mapping[int, int],
    device_ids: Sequence[int], callers: int,
) -> ProcessRun:  # fmt: skip
    """Return a plan made ready for this process of a group; of tensors that are written `sizes` tells the bytes."""
    memory = MappedMemory(group, devices, plan, device_ids[group.rank], callers, sizes)
    seats = {group.rank: memory.seat}
    make = partial(device_steps, devices, plan, chips, args, memory.windows, seats, callers)
    return process_run(group, memory, plan, make)


def has_waits(program: Program) -> bool:
    """Return whether ranks wait for each other inside of functions that they run."""
    return any(call.op.name == "distributed.wait" for call in _calls(program))


def refuse_pointers(program: Program) -> None:
    """Raise UnsupportedFeatureError where a rank waits by a pointer, which nobody could end on a GPU."""
    for call in _calls(program):
        if call.op.name in ("distributed.until", "distributed.holds"):
            message = "on GPUs ranks wait for cells of windows alone, and this one is behind a pointer"
            raise UnsupportedFeatureError(message, spans=[call.span], help="pld.system.wait waits for a window's cell")


def _calls(program: Program) -> Iterator[Call]:
    for function in program.function_list:
        for stmt in statements(function.body):
            yield from (each for each in expressions(stmt) if isinstance(each, Call))


def device_steps(
    devices: Devices, plan: Plan, chips: Chips, args: Sequence[Any], windows: DeviceWindows, seats: Mapping[int, Seat],
    callers: int,
) -> DeviceSteps:  # fmt: skip
    """Return what the ranks of some seats do; views of the host's `args` follow those."""
    awaited = {need for turns in plan.turns for turn in turns for need in turn.needs}
    stands = [Stand(rank, replace(seat, heads=windows.heads[rank]), devices) for rank, seat in seats.items()]
    made = DeviceSteps(windows.parts, {rank: [] for rank in seats}, [], [windows])
    made.stands, made.callers = stands, callers
    for stand in stands:
        for number, turn in enumerate(plan.turns[stand.rank], 1):
            if isinstance(turn.action, Collective):
                run = _collective(turn.action, stand, windows)
            else:
                run = _launched(turn.action, stand, chips, windows.parts, args)
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
    refuse_pointers(chips.program(action.function))
    function = chips.compiled(action.function).declared[action.function]
    return launched(action, stand.native(chips, action.function), function, parts, args, 1)


def _collective(action: Collective, stand: Stand, windows: DeviceWindows) -> Callable[[], None]:
    if stand.rank != action.domain[0]:
        return _nothing

    def place(rank: int, window: Window) -> tuple[int, int]:
        return windows.parts[window.buffer].starts[rank], windows.gpus[rank]

    return performed(action, place, stand.seat)


def _nothing() -> None:
    """Leave the work to the first of the domain."""


def _settled(run: Callable[[], None], stand: Stand) -> Callable[[], None]:
    return partial(_both, run, stand)


def _both(run: Callable[[], None], stand: Stand) -> None:
    run()
    stand.settle()
