"""Tracing: what calls are named and written to while somebody wants them on a timeline, ours or a profiler's."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from tilewright import settings
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


APART = "TILEWRIGHT_PERF names its calls"


@contextmanager
def named(name: str) -> Generator[None]:
    """Let what runs inside go by a name."""
    wanted = settings.ranges()
    torch: Any = sys.modules.get("torch")
    nvtx = _nvtx(torch) if "nvtx" in wanted else None
    if nvtx is not None:
        nvtx[0](name)
    try:
        if "torch" in wanted and torch is not None:
            with torch.profiler.record_function(name):
                yield
        else:
            yield
    finally:
        if nvtx is not None:
            nvtx[1]()


def _nvtx(torch: Any) -> Any:
    """Return what begins and what ends a range of NVIDIA's tools, in whichever library is there that knows them."""
    if torch is not None and torch.cuda.is_available():
        return torch.cuda.nvtx.range_push, torch.cuda.nvtx.range_pop
    cupy: Any = sys.modules.get("cupy")
    return None if cupy is None else (cupy.cuda.nvtx.RangePush, cupy.cuda.nvtx.RangePop)
