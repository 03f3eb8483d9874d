"""Calls over processes take turns: whoever waits for one can be interrupted, and a call inside another goes on."""

from __future__ import annotations

import signal
import threading
from types import FrameType

import pytest

from tilewright.programs.distributed.turns import turn


class Interrupt(Exception):
    """What a signal's handler raises."""


def raise_it(_: int, __: FrameType | None) -> None:
    raise Interrupt


def test_a_thread_that_waits_for_its_turn_is_interrupted_and_the_turn_is_free_after_that() -> None:
    is_held, is_waited_for, is_over = threading.Event(), threading.Event(), threading.Event()

    def hold() -> None:
        with turn(), turn():
            is_held.set()
            is_waited_for.wait()
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)
            is_over.wait()

    holder = threading.Thread(target=hold)
    before = signal.signal(signal.SIGUSR1, raise_it)
    try:
        holder.start()
        is_held.wait()
        with pytest.raises(Interrupt):
            is_waited_for.set()
            with turn():
                pytest.fail("two threads have their turn")
    finally:
        signal.signal(signal.SIGUSR1, before)
        is_over.set()
        holder.join()
    with turn():
        pass
