"""Progress of ranks that are processes: turns and meetings, by words that each process writes for itself."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.native import futexes
from tilewright.programs.distributed.progress import Ended
from tilewright.programs.distributed.segments import Control, Segment

SPINS = 50
"""How often a process looks before it sleeps."""


class ProcessProgress:
    """The turns and meetings of ranks that are processes."""

    def __init__(self, rank: int, segments: Sequence[Segment]) -> None:
        self.rank = rank
        self.words = [segment.words for segment in segments]
        self._starts = [segment.words.ctypes.data for segment in segments]

    def advance(self, rank: int, turns: int, wakes: bool) -> None:
        """Take note that this process has had so many more turns."""
        self.words[rank][Control.TURNS] += turns
        if wakes:
            futexes.wake(self._starts[rank] + 8 * Control.TURNS)

    def until(self, rank: int, number: int) -> None:
        """Wait until a rank has had so many turns; Ended where the run is over."""
        self._until(rank, Control.TURNS, number)

    def meet(self) -> None:
        """Wait until all processes have come as far; Ended where the run is over."""
        number = int(self.words[self.rank][Control.EPOCH]) + 1
        self.words[self.rank][Control.EPOCH] = number
        futexes.wake(self._starts[self.rank] + 8 * Control.EPOCH)
        for rank in range(len(self.words)):
            self._until(rank, Control.EPOCH, number)

    def _until(self, rank: int, word: Control, number: int) -> None:
        words, own, spins = self.words[rank], self.words[self.rank], 0
        while (held := int(words[word])) < number:
            if own[Control.ABORT]:
                raise Ended(f"it waits for rank {rank}")
            spins += 1
            if spins == SPINS:
                own[Control.WORD], own[Control.NUMBER], own[Control.AWAITED] = word, number, rank + 1
            if spins > SPINS:
                futexes.wait(self._starts[rank] + 8 * word, held)
        if spins >= SPINS:
            own[Control.AWAITED] = 0

    def blocked(self) -> int:
        """Return how many processes wait for turns that have not been, or for others to come."""
        words: list[list[int]] = [each[: Control.NUMBER + 1].tolist() for each in self.words]
        awaited = [each for each in words if each[Control.AWAITED]]
        return sum(words[each[Control.AWAITED] - 1][each[Control.WORD]] < each[Control.NUMBER] for each in awaited)
