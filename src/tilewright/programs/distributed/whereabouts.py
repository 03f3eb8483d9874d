"""Whereabouts: whether the processes of a run come to it, as each of them says.

One that is called with other arguments plans, or runs something else, and the others of the run wait for it in vain.
Where messages tell it, one that says so may be on its way back by the time that others hear it, and one that has been
there already may not have been heard yet. So it says up to which meeting it has heard others come: whoever waits
further on has to hear it again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from tilewright.programs.distributed.segments import Control, Segment

_ANY = 1 << 62
"""More meetings than there are: those who share memory see at once who is back."""


class Tells(Protocol):
    """The memory of a run, as far as processes say there where they are."""

    @property
    def segments(self) -> Sequence[Segment]:
        """What the process of each rank says of itself."""
        ...

    @property
    def is_shared(self) -> bool:
        """Whether all see that at once."""
        ...

    def beat(self) -> None:
        """Let others see it."""
        ...


class Whereabouts:
    """Where the processes of a run are, as the one of a rank knows."""

    def __init__(self, rank: int, memory: Tells) -> None:
        self._rank = rank
        self._memory = memory

    def leave(self, is_elsewhere: bool, missing: Callable[[], Iterable[int]] | None = None) -> None:
        """Say that this process is elsewhere, waiting there for those who are `missing`, or that it no longer is.

        Those who are not have been where it is, and may have gone on to this run: they wait for no other.
        """
        words = [segment.words for segment in self._memory.segments]
        met = [int(each[Control.EPOCH]) for each in words]  # before who is missing: what comes meanwhile is not known
        known = 1 + max((met[k] for k in (range(len(met)) if missing is None else missing())), default=-1)
        known = _ANY if self._memory.is_shared else known
        words[self._rank][Control.ELSEWHERE] = known if is_elsewhere else 0
        self._memory.beat()

    def leave_for_good(self) -> None:
        """Say that this process does not come to the run any more: whoever waits there need not be heard."""
        self._memory.segments[self._rank].words[Control.ELSEWHERE] = _ANY
        self._memory.beat()

    def remind(self) -> None:
        """Say again that this process is elsewhere, if it is and others have come to the run meanwhile."""
        words = [segment.words for segment in self._memory.segments]
        own = words[self._rank]
        if own[Control.ELSEWHERE] and any(each[Control.EPOCH] > own[Control.EPOCH] for each in words):
            self.leave(True)

    def is_alone(self) -> bool:
        """Return whether another process, for which this one waits, is elsewhere and knows that it is waited for."""
        words = [segment.words for segment in self._memory.segments]
        number = words[self._rank][Control.EPOCH]
        return any(each[Control.ELSEWHERE] > number > each[Control.EPOCH] for each in words)
