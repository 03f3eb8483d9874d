"""Meetings: what processes tell each other while they make ready to run, over the store that torch keeps for them.

All of them come to each meeting, with some bytes. One that has failed, or has waited for too long, leaves why and goes:
whoever comes to that meeting later is told so, and all are at the next one then. A collective of torch's could not be
used again once somebody has waited for it in vain. Who comes last, or fails, leaves a mark that it is over: that alone
is what others look for, as each look is work for whoever holds the store.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Sequence
from typing import Any

from tilewright.forks import computed_once

SHORTEST, LONGEST, GROWTH = 5e-4, 0.02, 2
"""Seconds between two looks at the store, as they grow: each is work for whoever holds that, often rank 0."""
RARELY = 10
"""Looks of those after which one counts who has come."""
_JOINED = "tilewright/joined"


class Failed(Exception):
    """Another process has not come to a meeting, and has left why."""

    def __init__(self, rank: int, text: str) -> None:
        super().__init__(rank, text)
        self.rank = rank
        self.text = text


class Absent(Exception):
    """Processes have not come to a meeting in time."""

    def __init__(self, ranks: Sequence[int]) -> None:
        super().__init__(ranks)
        self.ranks = ranks


class Meetings:
    """The meetings of some processes, one after the other; `store` gives what torch keeps for them."""

    def __init__(self, store: Callable[[], Any], rank: int, size: int) -> None:
        self._store = store
        self._rank = rank
        self._size = size
        self._number = 0

    @computed_once
    def name(self) -> str:
        """What tells these meetings from those of others in the same store: all processes have come as often."""
        return f"tilewright/{(self._store().add(_JOINED, 1) - 1) // self._size}"

    def exchanged(self, data: bytes, patience: float, look: Callable[[], None]) -> list[bytes]:
        """Return what every process has brought, in the order of ranks; `look` is called while this one waits.

        Failed where another one left why it does not come, and Absent where some have not come in so many seconds.
        """
        store, keys, over = self._store(), [self._key(rank) for rank in range(self._size)], [self._key("over")]
        store.set(keys[self._rank], data)
        if store.check(keys):
            store.set(*over, b"")
        until, pause, rests = time.monotonic() + patience, SHORTEST, 0
        while not store.check(over):
            rests += pause == LONGEST
            if rests and not rests % RARELY and store.check(keys):  # who came last may have ended
                break
            look()
            absent = [rank for rank, key in enumerate(keys) if time.monotonic() > until and not store.check([key])]
            if absent and store.check([self._key("failed")]):  # who has left had come
                break
            if absent:
                raise Absent(absent)
            time.sleep(pause)
            pause = min(pause * GROWTH, LONGEST)
        if not store.check(keys):
            raise self._failed(store)
        brought = store.multi_get(keys) if store.has_extended_api() else [store.get(key) for key in keys]
        if self._number:
            for who in (self._rank, "over")[: 1 + (self._rank == 0)]:
                store.delete_key(self._key(who, self._number - 1))  # which all have seen who are here
        self._number += 1
        return brought

    def check(self) -> None:
        """Raise Failed where another process has left why it does not come to the next meeting."""
        store = self._store()
        if store.check([self._key("over")]) and not store.check([self._key(rank) for rank in range(self._size)]):
            raise self._failed(store)

    def fail(self, text: str) -> None:
        """Leave why this process does not come to the next meeting, or to the one that it waits at."""
        store = self._store()
        store.set(self._key("failed"), pickle.dumps((self._rank, text)))
        store.delete_key(self._key(self._rank))
        store.set(self._key("over"), b"")
        self._number += 1

    def _failed(self, store: Any) -> Failed:
        found = Failed(*pickle.loads(store.get(self._key("failed"))))
        store.delete_key(self._key(self._rank))
        self._number += 1
        return found

    def _key(self, who: int | str, number: int | None = None) -> str:
        return f"{self.name}/{self._number if number is None else number}/{who}"
