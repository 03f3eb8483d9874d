"""Shared memory: where the windows of processes lie that run on one machine, and the tensors that they write.

Each process maps the segments of all others: what a rank writes is there for its peers as soon as a signal says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from tilewright.core.region import Array
from tilewright.interpret.hosts import Plan, WindowBuffer
from tilewright.programs.distributed.group import Group
from tilewright.programs.distributed.in_place import PAGE, InPlace
from tilewright.programs.distributed.mapped import Pieces
from tilewright.programs.distributed.segments import Control, Segment
from tilewright.programs.distributed.steps import Joins
from tilewright.programs.distributed.windows import Parts, Placed, aligned, room_of


class ProcessMemory(Protocol):
    """The memory of a plan, as one of its processes sees it."""

    @property
    def segments(self) -> Sequence[Segment]:
        """What the process of each rank says of itself."""
        ...

    @property
    def parts(self) -> Mapping[WindowBuffer, Placed]:
        """The windows."""
        ...

    @property
    def is_shared(self) -> bool:
        """Whether all see at once what one says of itself."""
        ...

    @property
    def failure(self) -> BaseException | None:
        """Why what a peer holds was out of reach."""
        ...

    @property
    def is_at_fault(self) -> bool:
        """Whether what a peer asked for went wrong here."""
        ...

    def opened(self) -> None:
        """Take note that all processes have opened what they need of each other's, or have given up."""
        ...

    def begin(self, args: Sequence[Any], timeout: float) -> Mapping[int, Array]:
        """Return where the tensors that are written lie in the run that begins, holding what the arguments do."""
        ...

    def bring(self, args: Sequence[Any], written: Mapping[int, Array]) -> None:
        """Let arguments hold what all ranks have written, once the run is over."""
        ...

    def settle(self, turns: int) -> None:
        """Let others see what this rank wrote in so many turns, before they are told that it has had them."""
        ...

    @property
    def is_met_first(self) -> bool:
        """Whether all ranks wait for each other before any of them begins with a run."""
        ...

    def come(self, number: int, turns: int) -> None:
        """Let others see what this rank wrote in so many turns, and that it has come to that meeting of all."""
        ...

    def tell(self) -> None:
        """Let others see what this process says of itself."""
        ...

    def beat(self) -> None:
        """Let others see it as well, now and then, while this process waits."""
        ...

    def end(self, how: int) -> None:
        """End the waits of all, who know then what this process says of itself."""
        ...

    def give_up(self) -> None:
        """Take note that a run has failed, all of which is known by now."""
        ...

    def ended(self) -> Sequence[int]:
        """Return the ranks whose processes have ended."""
        ...

    @property
    def joins(self) -> Joins | None:
        """What every rank does in a collective; None where the first of a domain does it for all."""
        ...


class NearMemory:
    """What processes of one machine say of themselves, in segments that all of them map."""

    is_shared = True

    def __init__(self, group: Group, size: int) -> None:
        self.group = group
        self.failure: BaseException | None = None
        self.is_at_fault = False
        self.segments = self._shared(size)

    def _shared(self, size: int) -> list[Segment]:
        """Return the segments of all processes."""
        own = Segment.made(size)
        told = self.group.exchanged((own.descriptor, own.size), "memory")
        processes = self.group.processes
        try:
            return [
                own if peer == self.group.rank else Segment.opened(processes[peer], descriptor, size)
                for peer, (descriptor, size) in enumerate(told)
            ]
        except OSError:
            self.group.check()  # who fails while others open descriptors says so, and closes its own
            raise

    def opened(self) -> None:
        """Give up all descriptors."""
        for segment in self.segments:
            segment.close()

    def settle(self, turns: int) -> None:
        """Do nothing: what was written is there."""

    @property
    def is_met_first(self) -> bool:
        """Yes: others reach what a rank has zeroed."""
        return True

    def come(self, number: int, turns: int) -> None:
        """Let others see that this rank has come to a meeting: what it wrote is there."""
        self.segments[self.group.rank].words[Control.EPOCH] = number

    def tell(self) -> None:
        """Do nothing: others look at the segment."""

    def beat(self) -> None:
        """Do nothing, as well."""

    def end(self, how: int) -> None:
        """End the waits of all."""
        for segment in self.segments:
            segment.words[Control.ABORT] = segment.words[Control.ABORT] or how

    def give_up(self) -> None:
        """Do nothing: nobody writes here any more."""

    def ended(self) -> Sequence[int]:
        """Return the ranks whose processes have ended."""
        return self.group.ended()

    @property
    def joins(self) -> Joins | None:
        """None: the parts of all ranks are at hand."""
        return None


class SharedMemory(NearMemory):
    """The memory of processes that share it."""

    def __init__(self, group: Group, plan: Plan, sizes: Mapping[int, int], chosen: InPlace) -> None:
        self.group = group
        self.sizes = sizes
        self._number = 0
        pieces = Pieces(plan, chosen)
        super().__init__(group, self._room(plan, pieces) + pieces.rooms[group.rank])
        self.parts = self._parts(plan, pieces)

    def _room(self, plan: Plan, pieces: Pieces) -> int:
        """Return the bytes in front of the pieces: parts of windows, and with rank 0 the tensors that are written."""
        held = [buffer for buffer in plan.buffers if self.group.rank in buffer.ranks and buffer not in pieces.of]
        staged = 2 * sum(map(aligned, self.sizes.values())) if self.group.rank == 0 else 0
        return -(-(sum(map(room_of, held)) + staged) // PAGE) * PAGE

    def _parts(self, plan: Plan, pieces: Pieces) -> Mapping[WindowBuffer, Parts]:
        aborts = {self.group.rank: self.segments[self.group.rank].abort}
        starts = [segment.size - room for segment, room in zip(self.segments, pieces.rooms, strict=True)]
        found = pieces.parts(aborts, lambda rank: (self.segments[rank].descriptor, starts[rank]))
        places = [0] * self.group.size
        for buffer in (each for each in plan.buffers if each not in pieces.of):
            memory: dict[int, Array] = {}
            for rank in buffer.domain:
                memory[rank] = self.segments[rank].part(places[rank], room_of(buffer))
                places[rank] += room_of(buffer)
            found[buffer] = Parts(memory, aborts)
        self._staged_at = places[0]
        return found

    def begin(self, args: Sequence[Any], timeout: float) -> Mapping[int, Array]:
        """Return where tensors that are written lie: in two places of rank 0's memory, by turns."""
        self._number += 1
        half = sum(map(aligned, self.sizes.values()))
        at, found = self._staged_at + half * (self._number % 2), dict[int, Array]()
        for position, size in self.sizes.items():
            data: Any = args[position].data
            found[position] = self.segments[0].part(at, size).view(data.dtype).reshape(data.shape)  # pyright: ignore[reportUnknownMemberType]
            at += aligned(size)
            if self.group.rank == 0:
                found[position][...] = data
        return found

    def bring(self, args: Sequence[Any], written: Mapping[int, Array]) -> None:
        """Copy what all ranks have written into arguments."""
        for position, array in written.items():
            args[position].data[...] = array
