"""Deadlines: what does not end, or ends its process, is known soon, and the next call starts afresh."""

from __future__ import annotations

import os
import time

import pytest
from property.deadline import DidNotEnd, Elsewhere


def test_what_does_not_end_is_ended_and_the_next_call_is_answered() -> None:
    with Elsewhere(time.sleep) as sleep:
        with pytest.raises(DidNotEnd, match="has not ended after 1 s"):
            sleep.within(1, 3600)
        assert sleep.within(60, 0) is None


def test_what_ends_its_process_is_known_by_it() -> None:
    with Elsewhere(os.abort) as abort, pytest.raises(DidNotEnd, match="its process ended with -6"):
        abort.within(60)
