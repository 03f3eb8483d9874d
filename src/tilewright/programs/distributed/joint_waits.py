"""Joint waits: those of a rank in collectives, which says for whom it waits, and ends with the run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from tilewright.programs.distributed.link import Link
from tilewright.programs.distributed.progress import Ended
from tilewright.programs.distributed.segments import Control, Segment
from tilewright.programs.distributed.torch_works import Swaps, until_done


class JointWaits:
    """The waits of this process's rank in the collectives of a plan, given what the process of each says of itself."""

    def __init__(self, link: Link, segments: Sequence[Segment]) -> None:
        self._link = link
        self._segments = segments
        self._own = segments[link.rank].words
        self._swaps = Swaps(segments[link.rank])

    def until_done(self, domain: Sequence[int], number: int, work: Any) -> None:
        """Wait for what torch does; Ended where the run is over, after which nobody may use the link again."""
        until_done(domain, partial(self._look, domain, number), work)

    def until_swapped(self, domain: tuple[int, ...], number: int, swap: Callable[[Any], None]) -> None:
        """Do what sends ranks something, and takes something from them, over a group of theirs; Ended as above."""
        self._swaps.until_done(domain, partial(self._look, domain, number), self._link.domain(domain), swap)

    def look_on(self) -> None:
        """Look, from another thread, at what the rank swaps with others, if anything: it ends where the run is over."""
        self._swaps.look()

    def _look(self, domain: Sequence[int], number: int) -> None:
        own, words = self._own, [self._segments[rank].words for rank in domain]
        come = [each[Control.JOINED] >= number and each[Control.EPOCH] >= own[Control.EPOCH] for each in words]
        missing = [rank for rank, is_here in zip(domain, come, strict=True) if not is_here]
        self.look(number, (*missing, *domain)[0])

    def look(self, number: int, rank: int) -> None:
        """Say that this one waits for a rank, and a collective; Ended where the run is over."""
        words = self._own
        words[Control.WORD], words[Control.NUMBER], words[Control.AWAITED] = Control.JOINED, number, rank + 1
        if words[Control.ABORT]:
            raise Ended(f"it waits for rank {rank}")
