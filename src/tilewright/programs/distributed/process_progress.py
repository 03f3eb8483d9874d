"""Progress of ranks that are processes: turns and meetings, by words that each process writes for itself."""

from __future__ import annotations

from tilewright.native import futexes
from tilewright.programs.distributed.progress import Ended
from tilewright.programs.distributed.segments import Control
from tilewright.programs.distributed.shared_memory import ProcessMemory

SPINS = 50
"""How often a process looks before it sleeps."""


class ProcessProgress:
    """The turns and meetings of ranks that are processes."""

    def __init__(self, rank: int, memory: ProcessMemory) -> None:
        self.rank = rank
        self.memory = memory
        self.words = [segment.words for segment in memory.segments]
        self._starts = [words.ctypes.data for words in self.words]

    def advance(self, rank: int, turns: int, wakes: bool) -> None:
        """Take note that this process has had so many more turns."""
        words = self.words[rank]
        if wakes:
            self.memory.settle(int(words[Control.TURNS]) + turns)
        words[Control.TURNS] += turns
        if wakes:
            futexes.wake(self._starts[rank] + 8 * Control.TURNS)
            self.memory.tell()

    def until(self, rank: int, number: int) -> None:
        """Wait until a rank has had so many turns; Ended where the run is over."""
        self._until(rank, Control.TURNS, number)

    def begin(self) -> None:
        """Come to a run, and wait for all processes where it begins with a meeting; Ended where the run is over."""
        if self.memory.is_met_first:
            self.meet()
        else:
            self.words[self.rank][Control.EPOCH] += 1  # which others are told with what follows

    def meet(self) -> None:
        """Wait until all processes have come as far; Ended where the run is over."""
        own = self.words[self.rank]
        number = int(own[Control.EPOCH]) + 1
        self.memory.come(number, int(own[Control.TURNS]))
        futexes.wake(self._starts[self.rank] + 8 * Control.EPOCH)
        for rank in range(len(self.words)):
            self._until(rank, Control.EPOCH, number)

    def _until(self, rank: int, word: Control, number: int) -> None:
        words, own, spins = self.words[rank], self.words[self.rank], 0
        while (held := int(words[word])) < number:
            if own[Control.ABORT]:
                is_done = word is Control.EPOCH and not number % 2  # each run begins with a meeting, and ends with one
                raise Ended(f"it {'has had all its turns, and ' if is_done else ''}waits for rank {rank}")
            spins += 1
            if spins == SPINS:
                own[Control.WORD], own[Control.NUMBER], own[Control.AWAITED] = word, number, rank + 1
            if spins > SPINS:
                futexes.wait(self._starts[rank] + 8 * word, held)
        if spins >= SPINS:
            own[Control.AWAITED] = 0

    def blocked(self) -> int:
        """Return how many processes wait for turns that have not been, or for others to come."""
        words: list[list[int]] = [each[: max(Control) + 1].tolist() for each in self.words]
        awaited = [each for each in words if each[Control.AWAITED]]
        return sum(words[each[Control.AWAITED] - 1][each[Control.WORD]] < each[Control.NUMBER] for each in awaited)
