"""Tracing: what the calls of a thread are written to while somebody wants them on a timeline."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from tilewright.records import mutable

if TYPE_CHECKING:  # which only traced calls need
    from tilewright.backends.host import HostProgram
    from tilewright.call.timelines import Trace
    from tilewright.native.traced_regions import Recorder


@mutable
class Tracing:
    """What calls are written to, and whether any was."""

    trace: Trace
    is_noted: bool = False


CURRENT: ContextVar[Tracing | None] = ContextVar("CURRENT", default=None)
"""What the calls of this thread are written to."""


@contextmanager
def traced(path: str | os.PathLike[str] | None, name: str) -> Generator[None]:
    """Write the calls that are made inside to a file, where one is named, and at least that of `name`."""
    if path is None:
        yield
        return
    tracing, begin = Tracing(_trace_at(path)), time.monotonic_ns()
    token = CURRENT.set(tracing)
    try:
        with tracing.trace.call():
            try:
                yield
            finally:
                if not tracing.is_noted:  # where Python or ranks of their own run
                    tracing.trace.note(name, begin, time.monotonic_ns(), threading.get_ident())
    finally:
        CURRENT.reset(token)


def recorder_of(path: str | os.PathLike[str], native: HostProgram, threads: int) -> Recorder | None:
    """Return what records calls of a program on so many threads; None where a device does, which Python asks."""
    if native.traced() is not native:
        return None
    return _trace_at(path).recorder(native, threads)


def _trace_at(path: str | os.PathLike[str]) -> Trace:
    from tilewright.call.timelines import trace_to

    return trace_to(os.path.abspath(path))
