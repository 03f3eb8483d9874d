"""Ranges: calls named for the profilers of NVIDIA and torch, where TILEWRIGHT_PERF asks for it."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from tilewright import settings
from tilewright.imported import imported

APART = "TILEWRIGHT_PERF names its calls"


@contextmanager
def named(name: str) -> Generator[None]:
    """Let what runs inside go by a name."""
    wanted = settings.ranges()
    torch: Any = imported("torch")
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
    cupy: Any = imported("cupy")
    return None if cupy is None else (cupy.cuda.nvtx.RangePush, cupy.cuda.nvtx.RangePop)
