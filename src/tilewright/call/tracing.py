"""Tracing: calls written as a timeline that Perfetto and Chrome open, each chunk on the thread that ran it.

A file is a list of events that is whole after every call: the next one is written over its end. Calls that follow each
other quickly are written together, at the latest when the process ends.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import TYPE_CHECKING, Any

from tilewright.forks import Lock
from tilewright.records import record

if TYPE_CHECKING:  # which only traced calls need
    from tilewright.native.traced_regions import Recorder

CURRENT: ContextVar[Trace | None] = ContextVar("CURRENT", default=None)
"""What the calls of this thread are written to."""
PAUSE = 0.1
"""Seconds between two writes of a file."""
END = "\n]\n"


@record
class Called:
    """One call: its name, when it began and ended, and the chunks that it ran, as code, number, times and thread."""

    name: str
    begin: int
    end: int
    thread: int
    chunks: Any
    dropped: int
    names: Mapping[int, str]
    """What each code address is called."""


class Trace:
    """A timeline and its file."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.waiting: list[Called] = []
        self.threads: dict[int, int] = {}
        self.written = float("-inf")
        self.lock = Lock()
        self.pid = os.getpid()
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"[\n{_json(name='process_name', ph='M', pid=self.pid, args={'name': 'tilewright'})}{END}")
        atexit.register(self.flush)

    @contextmanager
    def call(self, name: str, recorder: Recorder, names: Mapping[int, str]) -> Generator[None]:
        """Note a call that runs inside."""
        begin = time.monotonic_ns()
        try:
            yield
        finally:
            end = time.monotonic_ns()
            chunks, count = recorder.taken()
            dropped = count - len(chunks)
            with self.lock:
                called = Called(name, begin, end, threading.get_ident(), chunks, dropped, names)
                self.waiting.append(called)
            if time.monotonic() - self.written > PAUSE:
                self.flush()

    def flush(self) -> None:
        """Write what is waiting."""
        with self.lock:
            if not self.waiting or os.getpid() != self.pid:  # a child of a fork leaves the file to its parent
                return
            text = "".join(f",\n{event}" for called in self.waiting for event in self._events(called))
            self.waiting.clear()
            with open(self.path, "r+b") as file:
                file.seek(-len(END), os.SEEK_END)
                file.write(f"{text}{END}".encode())
            self.written = time.monotonic()

    def _events(self, called: Called) -> Iterator[str]:
        yield from self._thread(called.thread)
        args = {"dropped": called.dropped} if called.dropped else {}
        yield self._span(called.name, called.begin, called.end, called.thread, "call", args)
        for code, chunk, begin, end, thread in called.chunks.tolist():
            yield from self._thread(thread)
            yield self._span(called.names.get(code, hex(code)), begin, end, thread, "task", {"chunk": chunk})

    def _span(self, name: str, begin: int, end: int, thread: int, kind: str, args: Mapping[str, object]) -> str:
        times = {"ts": begin / 1e3, "dur": (end - begin) / 1e3}
        return _json(name=name, cat=kind, ph="X", pid=self.pid, tid=self.threads[thread], args=args, **times)

    def _thread(self, thread: int) -> Iterator[str]:
        """Yield what a thread is called, where it is new."""
        if thread not in self.threads:
            self.threads[thread] = number = len(self.threads)
            name = "caller" if number == 0 else f"thread {number}"
            yield _json(name="thread_name", ph="M", pid=self.pid, tid=number, args={"name": name})


def _json(**fields: object) -> str:
    import json  # which only traced calls need

    return json.dumps(fields, separators=(",", ":"))


@cache
def trace_to(path: str) -> Trace:
    """Return the timeline of a file, begun with the first call that is written to it."""
    return Trace(path)


@contextmanager
def traced(path: str | os.PathLike[str] | None) -> Generator[None]:
    """Write the calls that are made inside to a file, where one is named."""
    if path is None:
        yield
        return
    token = CURRENT.set(trace_to(os.path.abspath(path)))
    try:
        yield
    finally:
        CURRENT.reset(token)
