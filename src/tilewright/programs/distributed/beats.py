"""Beats: what a process says of itself now and then, to those who listen.

One that is stopped, or hangs, takes a few messages and no more: whoever sent it another would hang as well. All who are
in a run tell each other of themselves, and so whoever says nothing is told no more until it does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

UNHEARD = 2
"""Beats for one who says nothing: that this process is elsewhere, and that it no longer is."""


class Beats:
    """The beats of a process for some others; `send` sends one, and returns whether it could."""

    def __init__(self, peers: Sequence[int], send: Callable[[int], bool]) -> None:
        self._send = send
        self.heard = dict.fromkeys(peers, 0)
        """How many messages each has sent."""
        self._answered = dict(self.heard)
        """And how many it had when it was last known to listen."""
        self._unheard = dict.fromkeys(peers, 0)

    def beat(self) -> None:
        """Tell those who have said something since they were told, or may listen."""
        for peer, heard in [*self.heard.items()]:
            if heard != self._answered[peer]:
                self._answered[peer], self._unheard[peer] = heard, 0
            if self._unheard[peer] < UNHEARD:
                self._unheard[peer] += self._send(peer)
