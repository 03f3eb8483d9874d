"""Forks: children of a process whose other threads compile run, compile and end."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import BuiltinMethodType

import pytest

from tilewright import forks
from tilewright.collector import paused_collection
from tilewright.forks import Lock, computed_once, undivided

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")

SCRIPT = """
import gc, os, signal, sys, threading, time
import numpy as np
import tilewright.language as pl

@pl.jit
def doubled(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    for r in pl.parallel(0, x.shape[0], 4):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [r, 0], [4, x.shape[1]]) * 2.0, [r, 0], out)
    return out

@pl.jit
def next_(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], x.shape) + 1.0, [0, 0], out)
    return out

def ones(columns):
    return np.ones((4, columns), np.float32)

def compile_many(columns):
    while not is_done:
        columns += 2
        doubled(ones(columns))

def child(number):
    signal.alarm(60)  # ends it where it hangs
    fine = (next_(ones(8 + number)) == 2).all() and (doubled(ones(1001 + 2 * number)) == 2).all()
    os._exit(0 if fine and gc.isenabled() else 1)

is_done = False
if sys.argv[1] == "warm":
    doubled(ones(1))
threads = [threading.Thread(target=compile_many, args=(start,)) for start in (2, 3)]
for thread in threads:
    thread.start()
ends = []
for number in range(12):
    time.sleep(0.007 * (number % 5))
    pid = os.fork()
    if not pid:
        child(number)
    ends.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
is_done = True
for thread in threads:
    thread.join()
sys.exit(f"children ended with {ends}" if any(ends) else 0)
"""


@pytest.mark.parametrize("start", ["cold", "warm"])
def test_a_child_forked_while_threads_compile_runs_and_compiles(start: str, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    env = {**os.environ, "TILEWRIGHT_CACHE_DIR": "off"}
    done = subprocess.run([sys.executable, script, start], env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def in_child(work: Callable[[], bool]) -> bool:
    """Return what `work` returns in a forked child."""
    pid = os.fork()
    if not pid:
        status = 1
        try:
            status = 0 if work() else 2
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


class Holder:
    """A thread that does something until told to stop."""

    def __init__(self, work: Callable[[Callable[[], None]], None]) -> None:
        self.begun, self.stop = threading.Event(), threading.Event()
        self.thread = threading.Thread(target=work, args=(self._hold,))
        self.thread.start()
        self.begun.wait()

    def _hold(self) -> None:
        self.begun.set()
        self.stop.wait(20)

    def end(self) -> None:
        self.stop.set()
        self.thread.join()


def test_a_child_finds_a_lock_open_that_a_thread_of_its_parent_holds() -> None:
    lock = Lock()

    def hold(until_stopped: Callable[[], None]) -> None:
        with lock:
            until_stopped()

    holder = Holder(hold)
    try:
        assert not lock.acquire(blocking=False)
        assert in_child(lambda: lock.acquire(blocking=False))
    finally:
        holder.end()


def test_a_fork_waits_for_undivided_work() -> None:
    began, at_work = time.monotonic(), threading.Event()

    def work() -> None:
        with paused_collection():
            at_work.set()
            time.sleep(0.3)

    thread = threading.Thread(target=work)
    thread.start()
    at_work.wait()
    assert in_child(gc.isenabled)
    assert time.monotonic() - began >= 0.3
    thread.join()


def test_a_thread_may_fork_inside_its_own_undivided_work() -> None:
    def nested() -> bool:
        with undivided():
            return True

    with undivided():
        assert in_child(nested)
    with undivided():
        assert nested()


def test_a_fork_does_not_wait_forever_for_work_that_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forks, "PATIENCE", 0.2)

    def hold(until_stopped: Callable[[], None]) -> None:
        with undivided():
            until_stopped()

    holder = Holder(hold)
    try:
        assert in_child(lambda: True)
    finally:
        holder.end()


def test_a_property_is_computed_once_and_described() -> None:
    class Sample:
        count = 0

        @computed_once
        def answer(self) -> int:
            """Say what it is."""
            self.count += 1
            return 42

    sample = Sample()
    assert (sample.answer, sample.answer, sample.count) == (42, 42, 1)
    assert Sample.answer.__doc__ == "Say what it is."


def test_no_python_runs_between_taking_a_lock_and_holding_it() -> None:
    lock = Lock()
    assert isinstance(lock.__enter__, BuiltinMethodType) and isinstance(lock.__exit__, BuiltinMethodType)
