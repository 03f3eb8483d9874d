"""Tracing: calls written as a timeline that Perfetto and Chrome open, chunks on their threads and kernels on streams.

A file is a list of events that is whole whenever it was written: more are written over its end. That takes as long as
some calls do, so calls that follow each other are written together: after a pause, or when the process ends.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections import Counter
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from tilewright.forks import Lock

if TYPE_CHECKING:  # which only traced calls need
    from tilewright.backends.interface import Timeline
    from tilewright.native.traced_regions import Recorder

CURRENT: ContextVar[Trace | None] = ContextVar("CURRENT", default=None)
"""What the calls of this thread are written to."""
PAUSE = 0.5
"""Seconds between two calls in which whoever looks at the file is taken to do so."""
END = "\n]\n"


class Called(NamedTuple):
    """One call: its name, when it began and ended, and the chunks that it ran, as code, number, times and thread."""

    name: str
    begin: int
    end: int
    thread: int
    chunks: Any
    dropped: int
    symbols: Mapping[str, int]
    """Where the code of each function lies."""


class Trace:
    """A timeline and its file."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.waiting: list[Called] = []
        self.threads: dict[int | str, int] = {}
        """The number of each thread, and of each stream by its name."""
        self.devices: dict[int, Timeline] = {}
        """What devices note of launches."""
        self.last = float("-inf")
        self.lock = Lock()
        self.noted: Counter[int] = Counter()
        """How many calls of each thread are on it."""
        self.pid = os.getpid()
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            first = _json({"name": "process_name", "ph": "M", "pid": self.pid, "args": {"name": "tilewright"}})
            file.write(f"[\n{first}{END}")
        atexit.register(self.flush)

    def begun(self, device: Timeline | None = None) -> int:
        """Return when a call begins, which is now, and let a device take note of it."""
        if device is not None:
            self._read(device)
        return time.monotonic_ns()

    def ended(self, name: str, begin: int, recorder: Recorder, symbols: Mapping[str, int]) -> None:
        """Note a call that has ended, and the chunks that it ran."""
        end = time.monotonic_ns()
        chunks, count = recorder.taken()
        self.note(Called(name, begin, end, threading.get_ident(), chunks, count - len(chunks), symbols))

    def _read(self, device: Timeline) -> None:
        """Be the one who reads what a device notes from now on; whoever was it before writes what there is."""
        before = _READERS.get(id(device))
        if before is not None and before is not self:
            before.flush()
            before.devices.pop(id(device), None)
        if before is not self:
            _READERS[id(device)], self.devices[id(device)] = self, device
        device.begin()

    def note(self, called: Called) -> None:
        """Take note of a call; write what is waiting after a pause."""
        with self.lock:
            self.noted[called.thread] += 1
            self.waiting.append(called)
            is_paused, self.last = called.begin / 1e9 - self.last > PAUSE, called.end / 1e9
        if is_paused or (self.devices and any(device.is_filling for device in self.devices.values())):
            self.flush()

    def flush(self) -> None:
        """Write what is waiting."""
        with self.lock:
            is_gone = not os.path.exists(self.path)
            if not self.waiting or is_gone or os.getpid() != self.pid:  # a child of a fork leaves it to its parent
                return
            text = "".join(f",\n{event}" for called in self.waiting for event in self._events(called))
            text += "".join(f",\n{event}" for device in self.devices.values() for event in self._launches(device))
            self.waiting.clear()
            with open(self.path, "r+b") as file:
                file.seek(-len(END), os.SEEK_END)
                file.write(f"{text}{END}".encode())

    def _events(self, called: Called) -> Iterator[str]:
        from tilewright.native.profilers import shown

        yield from self._thread(called.thread)
        yield self._span(_json(called.name), called.begin, called.end, called.thread, "call", "dropped", called.dropped)
        names = {at: _json(shown(symbol).removeprefix("tilewright.")) for symbol, at in called.symbols.items()}
        for code, chunk, begin, end, thread in () if called.chunks is None else called.chunks.tolist():
            yield from self._thread(thread)
            yield self._span(names.get(code, '"?"'), begin, end, thread, "task", "chunk", chunk)

    def _launches(self, device: Timeline) -> Iterator[str]:
        for number, kernel in enumerate(device.taken()):
            yield from self._thread(kernel.place)
            yield self._span(_json(kernel.name), kernel.begin, kernel.end, kernel.place, "kernel", "launch", number)

    def _span(self, name: str, begin: int, end: int, thread: int | str, kind: str, told: str, number: int) -> str:
        place = f'"pid":{self.pid},"tid":{self.threads[thread]},"args":{{"{told}":{number}}}'
        return f'{{"name":{name},"cat":"{kind}","ph":"X","ts":{begin / 1e3},"dur":{(end - begin) / 1e3},{place}}}'

    def _thread(self, thread: int | str) -> Iterator[str]:
        """Yield what a thread or a stream is called, where it is new."""
        if thread not in self.threads:
            self.threads[thread] = number = len(self.threads)
            usual = "caller" if number == 0 else f"thread {number}"
            name = thread if isinstance(thread, str) else usual
            yield _json({"name": "thread_name", "ph": "M", "pid": self.pid, "tid": number, "args": {"name": name}})


_READERS: dict[int, Trace] = {}
"""Which timeline shows what a device notes."""


def _json(value: object) -> str:
    import json  # which only traced calls need

    return json.dumps(value, separators=(",", ":"))


@cache
def trace_to(path: str) -> Trace:
    """Return the timeline of a file, begun with the first call that is written to it."""
    return Trace(path)


@cache
def _seen_from(folder: str, path: str) -> Trace:
    return trace_to(os.path.abspath(os.path.join(folder, path)))


@contextmanager
def traced(path: str | os.PathLike[str] | None, name: str) -> Generator[None]:
    """Write the calls that are made inside to a file, where one is named, and at least that of `name`."""
    if path is None:
        yield
        return
    trace = _seen_from("" if os.path.isabs(path) else os.getcwd(), os.fspath(path))
    token, thread, begin = CURRENT.set(trace), threading.get_ident(), time.monotonic_ns()
    before = trace.noted[thread]
    try:
        yield
    finally:
        CURRENT.reset(token)
        if trace.noted[thread] == before:  # where Python or ranks of their own run
            trace.note(Called(name, begin, time.monotonic_ns(), thread, None, 0, {}))
