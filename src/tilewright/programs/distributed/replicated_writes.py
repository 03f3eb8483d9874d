"""Replicated writes: tensors that ranks write, of which every process has a copy that is told of them.

A process remembers what all know of a tensor. What differs from that in the bytes that its rank may have written is
what it has changed; the bytes between stay as others write them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tilewright.arrays import np
from tilewright.core.region import Array, Region
from tilewright.interpret.hosts import Collective, Dispatch
from tilewright.interpret.shadow import reach
from tilewright.passes.aliases import Footprint
from tilewright.programs.distributed.link import flat_bytes

Change = tuple[Sequence[int], Array]
"""A tensor's position among the arguments and how many bounds there are; the bounds, and the bytes between them."""


class Changes:
    """The tensors at some positions, and what each turn of a rank may write of them."""

    def __init__(
        self, actions: Sequence[Dispatch | Collective], args: Sequence[Any], positions: Sequence[int],
        footprints: Mapping[str, Footprint],
    ) -> None:  # fmt: skip
        self._positions = positions
        whole = {position: reach(args[position].data) for position in positions}
        self._turns = [[*_written(action, whole, footprints)] for action in actions]
        self._told = 0
        self._held: dict[int, Array] = {}
        """What this process has, as bytes."""
        self._known: dict[int, Array] = {}
        """What all have."""

    def begin(self, args: Sequence[Any]) -> Mapping[int, Array]:
        """Return copies of the tensors, for a run."""
        found = {position: np.array(args[position].data) for position in self._positions}
        self._told = 0
        self._held = {position: flat_bytes(array) for position, array in found.items()}
        self._known = {position: np.array(array) for position, array in self._held.items()}
        return found

    def since(self, turns: int) -> Iterator[Change]:
        """Yield what turns up to one have changed that was not told yet."""
        for position, low, high in dict.fromkeys(each for turn in self._turns[self._told : turns] for each in turn):
            held, known = (each[position][low:high] for each in (self._held, self._known))
            differs = np.concatenate(([False], held != known, [False]))
            bounds: list[int] = np.flatnonzero(differs[1:] != differs[:-1]).tolist()
            if bounds:
                changed = [held[start:stop] for start, stop in zip(bounds[::2], bounds[1::2], strict=True)]
                places = flat_bytes(np.array(bounds, np.int64) + low)
                yield (position, len(bounds)), np.concatenate([places, *changed])
                known[...] = held
        self._told = turns

    def take(self, position: int, count: int, data: Array) -> None:
        """Take what another process has changed."""
        at = 8 * count
        bounds: list[int] = np.frombuffer(data, np.int64, count).tolist()
        for start, stop in zip(bounds[::2], bounds[1::2], strict=True):
            for each in (self._held, self._known):
                each[position][start:stop] = data[at : at + stop - start]
            at += stop - start


def _written(
    action: Dispatch | Collective, whole: Mapping[int, tuple[int, int]], footprints: Mapping[str, Footprint]
) -> Iterator[tuple[int, int, int]]:
    """Yield which bytes of which tensors a turn may write."""
    if isinstance(action, Collective):
        return
    for arg in (action.args[k] for k in footprints[action.function].writes):
        if isinstance(arg, Region):
            low, high = reach(arg.data)
            for position, (first, last) in whole.items():
                if first <= low and high <= last:
                    yield position, low - first, high - first
