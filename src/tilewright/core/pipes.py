"""Pipes: how the functions of a group hand each other tiles, while the interpreter runs them.

The functions of a group are sides that run in turns, one at a time: a side runs until it takes a tile that nobody has
pushed yet, then the next one goes on. A turn around all of them in which nothing was pushed and nobody ended means that
they wait for each other. Each side is a thread; a baton says whose turn it is.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextvars import ContextVar, copy_context
from dataclasses import field
from typing import Any

from tilewright.arrays import np
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
    """The queues of one run of a group, and whose turn it is."""

    lanes: int
    sides: list[Side] = field(default_factory=list["Side"])
    queues: dict[Channel, deque[Region]] = field(default_factory=dict["Channel", "deque[Region]"])
    progress: int = 0

    def queue(self, towards: str, id: int, lane: int) -> deque[Region]:
        """Return a queue."""
        return self.queues.setdefault(Channel(towards, id, lane), deque())


@mutable
class Side:
    """One function of a group that is running."""

    pipes: Pipes
    lane: int
    baton: threading.Semaphore
    has_ended: bool = False
    error: BaseException | None = None
    result: Any = None

    def push(self, towards: str, id: int, tile: Region, axis: int | None) -> None:
        """Append a copy of a tile; the lanes of the other side get a part of it each where an axis is split."""
        self.pipes.progress += 1
        if towards == "aic":
            self.pipes.queue(towards, id, self.lane).append(_copy(tile))
            return
        for lane in range(self.pipes.lanes):
            part = tile if axis is None or self.pipes.lanes == 1 else half(tile, axis, lane)
            self.pipes.queue(towards, id, lane).append(_copy(part))

    def pop(self, towards: str, id: int, axis: int | None) -> Region:
        """Take the oldest tile, or what both lanes pushed, side by side; wait where there is none."""
        if towards == "aiv":
            return self._take(towards, id, self.lane)
        parts = [self._take(towards, id, lane) for lane in range(self.pipes.lanes)]
        return parts[0] if axis is None or len(parts) == 1 else joined(parts, axis)

    def _take(self, towards: str, id: int, lane: int) -> Region:
        queue = self.pipes.queue(towards, id, lane)
        while not queue:
            before = self.pipes.progress
            self.give_way()
            if not queue and self.pipes.progress == before:
                raise ExecutionError(STUCK)
        return queue.popleft()

    def give_way(self) -> None:
        """Let the next side that has not ended run until it is this one's turn again."""
        other = self.following()
        if other is not self:
            other.baton.release()
            self.baton.acquire()

    def following(self) -> Side:
        """Return whose turn is next."""
        sides = self.pipes.sides
        start = sides.index(self)
        order = (sides[(start + k) % len(sides)] for k in range(1, len(sides) + 1))
        return next((side for side in order if not side.has_ended), self)


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
    pipes.sides += [Side(pipes, lane, threading.Semaphore(0)) for lane, _ in bodies]
    threads = [_started(side, body) for side, (_, body) in zip(pipes.sides, bodies, strict=True)]
    pipes.sides[0].baton.release()
    for thread in threads:
        thread.join()
    for side in pipes.sides:
        if side.error is not None:
            raise side.error
    return [side.result for side in pipes.sides]


def _started(side: Side, body: Callable[[], Any]) -> threading.Thread:
    def run() -> None:
        side.baton.acquire()
        RUNNING.set(side)
        try:
            side.result = body()
        except BaseException as error:
            side.error = error
        side.has_ended = True
        side.pipes.progress += 1
        other = side.following()
        if other is not side:
            other.baton.release()

    thread = threading.Thread(target=copy_context().run, args=(run,), daemon=True)
    thread.start()
    return thread
