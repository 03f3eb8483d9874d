"""Timelines: calls as a file that Perfetto and Chrome open, chunks on their threads and kernels on streams.

To write a file takes as long as many calls do, so what was left of those that follow each other is written together:
after a pause, or when the process ends. A forked child writes to its parent's file, under a number of its own.
"""

from __future__ import annotations

import atexit
import os
import sys
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tilewright.call.event_files import EventFile
from tilewright.forks import Lock, after_fork
from tilewright.named_tuples import NamedTuple
from tilewright.native.threads import parallel_address
from tilewright.native.traced_regions import CALL, PAUSE, Recorder, Ring, told

if TYPE_CHECKING:
    from tilewright.backends.host import HostProgram
    from tilewright.backends.interface import Timeline

UNKNOWN = '"?"'


class Called(NamedTuple):
    """A call that Python made: its name, when it began and ended, and on which thread."""

    name: str
    begin: int
    end: int
    thread: int


class Trace:
    """A timeline and its file."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.ring = Ring()
        self.waiting: list[Called | Any] = []
        """Calls, and what was taken from the ring."""
        self.lost = 0
        """How many calls and chunks were lost that no call on the timeline tells of yet."""
        self.threads: dict[int | str, int] = {}
        """The number of each thread, and of each stream by its name."""
        self.devices: dict[int, Timeline] = {}
        """What devices note of launches."""
        self.last = 0
        """When the last call ended that is known of, in nanoseconds of the monotonic clock."""
        self.lock = Lock()
        self.pid = os.getpid()
        self._recorders: dict[int, Recorder] = {}
        self._names: dict[int, str] = {}
        """What the code that lies at an address is called, in JSON."""
        self._programs: dict[HostProgram, None] = {}
        """The programs that it lies in, which stay."""
        self._file = EventFile(path, _introduction())
        self._greeting = ""
        """What a forked child says of itself before anything else."""
        atexit.register(self.flush)

    def follow_fork(self) -> None:
        """Be the timeline of a forked child: what its parent did is written by that one."""
        self.waiting, self.threads, self.devices, self.lost = [], {}, {}, 0
        self.ring.taken()
        self.pid, self._greeting = os.getpid(), f",\n{_introduction()}"
        if "multiprocessing.util" in sys.modules:  # whose children end without what Python does at exit
            from multiprocessing.util import Finalize, register_after_fork

            register_after_fork(self, lambda trace: Finalize(None, trace.flush, exitpriority=0))

    def recorder(self, native: HostProgram, threads: int) -> Recorder:
        """Return what records the calls of a program on so many threads."""
        from tilewright.native.profilers import shown

        if native not in self._programs:
            self._programs[native] = None
            addresses = native.loaded.addresses.items()
            self._names |= {at: _json(shown(symbol).removeprefix("tilewright.")) for symbol, at in addresses}
            self._names |= {native.address(name): _json(name) for name in native.code.symbols}
        parallel = parallel_address(threads, native.emit)
        if parallel not in self._recorders:
            self._recorders[parallel] = Recorder(self.ring, parallel, threads)
        return self._recorders[parallel]

    @contextmanager
    def call(self) -> Generator[None]:
        """Take what is called inside, and write what is waiting where that came after a pause."""
        self._take()
        is_paused = time.monotonic_ns() - self.last > PAUSE
        try:
            yield
        finally:
            self._take()
            if is_paused or any(device.is_filling for device in self.devices.values()):
                self.flush()

    def note(self, name: str, begin: int, end: int, thread: int) -> None:
        """Take note of a call that Python made."""
        with self.lock:
            self.waiting.append(Called(name, begin, end, thread))
            self.last = max(end, self.last)

    def read(self, device: Timeline) -> None:
        """Be the one who reads what a device notes from now on; whoever was it before writes what there is."""
        before = _READERS.get(id(device))
        if before is not None and before is not self:
            before.flush()
            before.devices.pop(id(device), None)
        if before is not self:
            _READERS[id(device)], self.devices[id(device)] = self, device
        device.begin()

    def _take(self) -> None:
        """Make room in the ring."""
        with self.lock:
            rows, lost = self.ring.taken()
            self.lost += lost
            if len(rows):
                self.waiting.append(rows)
                self.last = max(int(told(rows[-1:])[3][0]), self.last)

    def flush(self) -> None:
        """Write what is waiting."""
        self._take()
        with self.lock:
            waiting, self.waiting = self.waiting, []
            if not waiting:
                return
            text = "".join(f",\n{event}" for each in waiting for event in self._events(each))
            text += "".join(f",\n{event}" for device in self.devices.values() for event in self._launches(device))
            greeting, self._greeting = self._greeting, ""
            self._file.append(greeting + text)

    def _events(self, what: Called | Any) -> Iterator[str]:
        if isinstance(what, Called):
            yield from self._thread(what.thread)
            yield self._span(_json(what.name), what.begin, what.end, what.thread, "call", "dropped", 0)
            return
        code, chunks, begins, ends, threads = told(what)
        for thread in threads[chunks == CALL].tolist():  # whose numbers come before those of their helpers
            yield from self._thread(thread)
        columns = (each.tolist() for each in (code, chunks, begins, ends, threads))
        for code, chunk, begin, end, thread in zip(*columns, strict=True):
            yield from self._thread(thread)
            if chunk == CALL:
                yield self._span(self._names.get(code, UNKNOWN), begin, end, thread, "call", "dropped", self.lost)
                self.lost = 0
            else:
                yield self._span(self._names.get(code, UNKNOWN), begin, end, thread, "task", "chunk", chunk)

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


def _introduction() -> str:
    """Return the event that says what this process is called."""
    return _json({"name": "process_name", "ph": "M", "pid": os.getpid(), "args": {"name": "tilewright"}})


_READERS: dict[int, Trace] = {}
"""Which timeline shows what a device notes."""


def _json(value: object) -> str:
    import json  # which only traced calls need

    return json.dumps(value, separators=(",", ":"))


_TRACES: dict[str, Trace] = {}
"""The timelines of this process, by their files."""


def trace_to(path: str) -> Trace:
    """Return the timeline of a file, begun with the first call that is written to it; TraceError for what is none."""
    if path not in _TRACES:
        _TRACES[path] = Trace(path)
    return _TRACES[path]


def _follow_fork() -> None:
    _READERS.clear()
    for trace in _TRACES.values():
        trace.follow_fork()


after_fork(_follow_fork)
