"""Time on a GPU: what lies between two events, not what the host function takes."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

from tilewright.backends.cuda import backend
from tilewright.backends.cuda.driver import Driver


class Waiting(Driver):
    """Stands for a driver: notes what is asked of it."""

    def __init__(self) -> None:
        self.order: list[str] = []

    def call(self, name: str, *args: Any) -> None:
        self.order.append(name)
        if name == "cuEventElapsedTime":
            ctypes.cast(args[0], ctypes.POINTER(ctypes.c_float))[0] = 2.5


def test_a_run_is_timed_by_events_around_it_on_a_gpu_that_does_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = Waiting()
    monkeypatch.setattr(backend, "driver", lambda: waiting)
    monkeypatch.setattr(backend, "current_stream", lambda: 7)
    assert backend.BACKEND.elapsed(lambda: waiting.order.append("run")) == 0.0025
    record = "cuEventRecord"
    assert waiting.order[2:7] == ["cuCtxSynchronize", record, "run", record, "cuEventSynchronize"]
    assert waiting.order[-2:] == ["cuEventDestroy_v2"] * 2
