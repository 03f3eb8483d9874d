"""Pipes: how the functions of a group hand each other tiles, while the interpreter runs them.

The functions of a group are sides that run in turns: a side runs until it takes a tile that nobody has pushed yet, then
the next one goes on. A turn around all of them in which nothing was pushed and nobody ended means that they wait for
each other.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import field
from functools import partial
from typing import Any

from tilewright.arrays import np
from tilewright.core.coroutines import Coroutine, in_turns
from tilewright.core.region import Region
from tilewright.errors import ExecutionError
from tilewright.records import mutable, record

STUCK = "the functions of this group wait for each other: nobody pushes the tile that is taken here"
OUTSIDE = "tiles are pushed and taken between functions that a Group function calls"


@record
class Channel:
    """One queue: where it leads, its number, and the lane of the vector side."""

    towards: str
    id: int
    lane: int


@mutable
class Pipes:
    """The queues of one run of a group."""

    lanes: int
    queues: dict[Channel, deque[Region]] = field(default_factory=dict["Channel", "deque[Region]"])
    progress: int = 0

    def queue(self, towards: str, id: int, lane: int) -> deque[Region]:
        """Return a queue."""
        return self.queues.setdefault(Channel(towards, id, lane), deque())


@record
class Side:
    """One function of a group that is running."""

    pipes: Pipes
    lane: int
    give_way: Callable[[], None]
    """Lets the others run until it is this one's turn again."""

    def push(self, towards: str, id: int, tile: Region, axis: int | None, only: int | None = None) -> None:
        """Append a copy of a tile; the lanes of the other side get a part of it each where an axis is split.

        With `only`, one lane gets all of it and the other nothing.
        """
        self.pipes.progress += 1
        if towards == "aic":
            self.pipes.queue(towards, id, self.lane).append(_copy(tile))
            return
        for lane in range(self.pipes.lanes) if only is None else (only,):
            is_whole = only is not None or self.pipes.lanes == 1
            part = tile if axis is None or is_whole else half(tile, axis, lane)
            self.pipes.queue(towards, id, lane).append(_copy(part))

    def pop(self, towards: str, id: int, axis: int | None, only: int | None = None, stuck: str = STUCK) -> Region:
        """Take the oldest tile, or what both lanes pushed, side by side; wait where there is none.

        With `only`, what one lane pushed. ExecutionError, which says `stuck`, where nobody pushes any.
        """
        if towards == "aiv":
            return self._take(towards, id, self.lane, stuck)
        if only is not None:
            return self._take(towards, id, only, stuck)
        parts = [self._take(towards, id, lane, stuck) for lane in range(self.pipes.lanes)]
        return parts[0] if axis is None or len(parts) == 1 else joined(parts, axis)

    def _take(self, towards: str, id: int, lane: int, stuck: str) -> Region:
        queue = self.pipes.queue(towards, id, lane)
        while not queue:
            before = self.pipes.progress
            self.give_way()
            if not queue and self.pipes.progress == before:
                raise ExecutionError(stuck)
        return queue.popleft()


RUNNING: ContextVar[Side | None] = ContextVar("side", default=None)
"""The side that is running."""


def running() -> Side:
    """Return the running side; ExecutionError outside of a group."""
    side = RUNNING.get()
    if side is None:
        raise ExecutionError(OUTSIDE)
    return side


def _copy(tile: Region) -> Region:
    return tile.moved(lambda array: np.array(array, order="C"), tile.valid)


def half(tile: Region, axis: int, lane: int) -> Region:
    """Return a lane's half of a tile: the first one is the larger."""
    size = -(-tile.data.shape[axis] // 2)
    cut = [slice(None)] * tile.data.ndim
    cut[axis] = slice(lane * size, (lane + 1) * size)
    valid = list(tile.valid)
    valid[axis] = min(max(valid[axis] - lane * size, 0), size)
    return tile.moved(lambda array: array[tuple(cut)], valid)


def joined(parts: Sequence[Region], axis: int) -> Region:
    """Return the tiles of both lanes as one; ExecutionError where the second would leave a gap."""
    first, second = parts
    if second.valid[axis] and first.valid[axis] < first.data.shape[axis]:
        raise ExecutionError("the first lane's half holds less than the second one follows")
    everything = (slice(None),) * first.data.ndim
    valid = list(first.valid)
    valid[axis] += second.valid[axis]
    data = np.concatenate([part.data for part in parts], axis)
    shadow = np.concatenate([part.shade(everything) for part in parts], axis)
    return Region(data, tuple(valid), shadow, first.origin if not first.is_defined else second.origin)


def run_sides(lanes: int, bodies: Sequence[tuple[int, Callable[[], Any]]]) -> list[Any]:
    """Run the functions of a group, each with its lane, in turns; return what each gives."""
    pipes = Pipes(lanes)
    return in_turns([partial(_side, pipes, lane, body) for lane, body in bodies])


def _side(pipes: Pipes, lane: int, body: Callable[[], Any], coroutine: Coroutine[Any]) -> Any:
    RUNNING.set(Side(pipes, lane, coroutine.pause))
    result = body()
    pipes.progress += 1
    return result
