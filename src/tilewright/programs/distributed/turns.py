"""Turns: calls over processes that several threads of one process make, one after the other.

Processes know a call by when it comes, and by nothing else: two that are under way at once could not be told apart.
"""

from __future__ import annotations

from tilewright.forks import Lock
from tilewright.programs.distributed.team import check_caller

_TURN = Lock()


def turn() -> Lock:
    """Return what a call over processes holds to its end; one that is a part of another holds it as well.

    ExecutionError for a call that a rank makes: the one that it is part of waits for it.
    """
    check_caller()
    return _TURN
