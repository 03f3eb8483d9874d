"""Tasks: the threads of this process as Linux lists them, whoever has made them."""

from __future__ import annotations

import os
import threading


def tasks() -> set[str]:
    """Return the numbers of all threads, after those of Python have come to their end.

    One that ends while Linux lists them takes its neighbour's place in the list, so that a thread is missing: the
    list is good once it reads the same twice.
    """
    for thread in {*threading.enumerate()} - {threading.current_thread()}:
        thread.join()  # what loads LLVM beside
    seen = {*os.listdir("/proc/self/task")}
    while (again := {*os.listdir("/proc/self/task")}) != seen:
        seen = again
    return seen
