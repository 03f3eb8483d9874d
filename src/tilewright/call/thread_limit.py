"""The thread limit: how many threads programs that this thread starts run on, where their caller says so."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager

from tilewright import settings

_local = threading.local()


@contextmanager
def on_threads(count: int) -> Generator[None]:
    """Let programs run on so many threads inside; 0 for as many as the settings say."""
    before = thread_limit()
    _local.count = count
    try:
        yield
    finally:
        _local.count = before


def thread_limit() -> int:
    """Return on how many threads programs are to run, 0 where only the settings say."""
    return getattr(_local, "count", 0)


def thread_count() -> int:
    """Return how many threads a program that is started now runs on."""
    return thread_limit() or settings.num_threads()
