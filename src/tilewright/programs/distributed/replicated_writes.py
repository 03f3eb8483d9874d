"""Replicated writes: tensors that ranks write, of which every process has a copy that is told of them.

What an `Out` tensor holds beforehand is not the same in all processes, and must not matter: a rank sends all bytes that
it alone may write. Of other tensors a process remembers what all know, and what differs from that in the bytes that its
rank may have written is what it has changed; the bytes between stay as others write them. Where several ranks may write
to the same bytes of an `Out` tensor, all begin with what rank 0 has: what others change of it comes after that.

Turns that have windows may write the same bytes in an order that signals alone tell. What they have changed goes ahead
of each signal, and of each collective: who writes after it has it, and so have all others.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from tilewright.arrays import np
from tilewright.core.enums import ParamDirection
from tilewright.core.region import Array, Region
from tilewright.interpret.hosts import Collective, Dispatch, Plan, Window
from tilewright.interpret.shadow import reach
from tilewright.passes.aliases import Footprint
from tilewright.programs.distributed.link import flat_bytes

Change = tuple[Sequence[int], Array]
"""A tensor's position among the arguments and how many bounds there are; the bounds, and the bytes between them.
Without bounds, all that it holds before ranks write to it."""
Written = tuple[int, int, int]
"""A tensor's position, and which of its bytes may be written: from where on, and up to where."""


class Changes:
    """The tensors at some positions, how they are written, and what each turn of a rank may write of them."""

    def __init__(
        self, plan: Plan, rank: int, args: Sequence[Any], written: Mapping[int, ParamDirection],
        footprints: Mapping[str, Footprint],
    ) -> None:  # fmt: skip
        self._positions = [*written]
        self._rank = rank
        whole = {position: reach(args[position].data) for position in written}
        turns = [[[*_written(turn.action, whole, footprints)] for turn in each] for each in plan.turns]
        self._turns = turns[rank]
        contested = _contested([{*chain(*each)} for each in turns])
        told = [[turn.action for turn in each if has_windows(turn.action)] for each in plan.turns]
        signalling = [{each for action in actions for each in _written(action, whole, footprints)} for actions in told]
        met = _contested(signalling)
        self.signalled = sorted(written for written in signalling[rank] if written[0] in met)
        """What turns of this rank write that others may write behind a signal of it."""
        outs = {position for position, direction in written.items() if direction is ParamDirection.Out}
        self._sent_whole = outs - contested
        self._agreed = sorted(outs & contested)
        """What all begin with the same bytes of, which rank 0 sends."""
        self.begin_alike = bool(self._agreed)
        """Whether there is such: ranks write behind that."""
        self._sent: dict[int, Array] = {}
        """Those bytes, where they come before this process has begun."""
        self._awaited: dict[int, list[tuple[int, Array]]] = {}
        """What is to come of them in this run, and what others have changed by then."""
        self._lock = threading.Lock()
        self._told = -1
        self._held: dict[int, Array] = {}
        """What this process has, as bytes."""
        self._known: dict[int, Array] = {}
        """What all have."""

    def begin(self, args: Sequence[Any]) -> Mapping[int, Array]:
        """Return copies of the tensors, for a run."""
        found = {position: np.array(args[position].data) for position in self._positions}
        self._told = -1
        self._held = {position: flat_bytes(array) for position, array in found.items()}
        self._known = {position: np.array(array) for position, array in self._held.items()}
        with self._lock:
            self._awaited = {position: [] for position in self._agreed if self._rank}
            for position in [*self._sent]:
                self._agree(position, self._sent.pop(position))
        return found

    def since(self, turns: int) -> Iterator[Change]:
        """Yield what turns up to one have changed that was not told yet."""
        if self._told < 0:
            yield from (((position, 0), self._held[position]) for position in self._agreed if not self._rank)
        for written in dict.fromkeys(chain(*self._turns[max(0, self._told) : turns])):
            position, low, high = written
            if position in self._sent_whole:
                bounds = flat_bytes(np.array([low, high], np.int64))
                yield (position, 2), np.concatenate([bounds, self._held[position][low:high]])
            else:
                yield from self._differing(written)
        self._told = turns

    def ahead(self) -> Iterator[Change]:
        """Yield what this rank has changed so far that goes ahead of a signal."""
        for written in self.signalled:
            yield from self._differing(written)

    def _differing(self, written: Written) -> Sequence[Change]:
        """Return what this rank has changed between two places, which all know then."""
        position, low, high = written
        with self._lock:  # what others have changed comes to both at once
            held, known = (each[position][low:high] for each in (self._held, self._known))
            differs = np.concatenate(([False], held != known, [False]))
            bounds: list[int] = np.flatnonzero(differs[1:] != differs[:-1]).tolist()
            if not bounds:
                return ()
            changed = [np.array(held[start:stop]) for start, stop in zip(bounds[::2], bounds[1::2], strict=True)]
            places = flat_bytes(np.array(bounds, np.int64) + low)
            data = np.concatenate([places, *changed])
            for start, stop, own in zip(bounds[::2], bounds[1::2], changed, strict=True):
                known[start:stop] = own
        return [((position, len(bounds)), data)]

    def take(self, position: int, count: int, data: Array) -> None:
        """Take what another process has changed, or what to begin this run with, or the next."""
        with self._lock:
            if count and position in self._awaited:
                self._awaited[position].append((count, np.array(data)))
            elif count:
                self._change(position, count, data)
            elif position in self._awaited:
                self._agree(position, data)
            else:
                self._sent[position] = np.array(data)

    def _agree(self, position: int, data: Array) -> None:
        for each in (self._held, self._known):
            each[position][...] = data
        for count, changed in self._awaited.pop(position):
            self._change(position, count, changed)

    def _change(self, position: int, count: int, data: Array) -> None:
        at = 8 * count
        bounds: list[int] = np.frombuffer(data, np.int64, count).tolist()
        for start, stop in zip(bounds[::2], bounds[1::2], strict=True):
            for each in (self._held, self._known):
                each[position][start:stop] = data[at : at + stop - start]
            at += stop - start


def _contested(ranks: Sequence[set[Written]]) -> set[int]:
    """Return the tensors some of whose bytes several ranks may write, given what each of them may."""
    found, ends = set[int](), dict[int, tuple[int, int]]()
    for position, low, high, rank in sorted((*each, rank) for rank, written in enumerate(ranks) for each in written):
        end, last = ends.get(position, (0, rank))
        if low < end and rank != last:
            found.add(position)
        ends[position] = max((end, last), (high, rank))
    return found


def has_windows(action: Dispatch | Collective) -> bool:
    """Return whether a turn may send or await signals."""
    return isinstance(action, Dispatch) and any(isinstance(arg, Window) for arg in action.args)


def _written(
    action: Dispatch | Collective, whole: Mapping[int, tuple[int, int]], footprints: Mapping[str, Footprint]
) -> Iterator[Written]:
    """Yield which bytes of which tensors a turn may write."""
    if isinstance(action, Collective):
        return
    for arg in (action.args[k] for k in footprints[action.function].writes):
        if isinstance(arg, Region):
            low, high = reach(arg.data)
            for position, (first, last) in whole.items():
                if first <= low and high <= last:
                    yield position, low - first, high - first
