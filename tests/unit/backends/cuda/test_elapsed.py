"""Time on a GPU: a run is over when its work is, not when the host function returns."""

from __future__ import annotations

import pytest

from tilewright.backends.cuda import backend


class Waiting:
    """Stands for a driver: notes what is asked of it."""

    def __init__(self) -> None:
        self.order: list[str] = []

    def call(self, name: str) -> None:
        self.order.append(name)


def test_a_run_is_timed_between_two_moments_at_which_nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = Waiting()
    monkeypatch.setattr(backend, "driver", lambda: waiting)
    assert backend.BACKEND.elapsed(lambda: waiting.order.append("run")) > 0.0
    assert waiting.order == ["cuCtxSynchronize", "run", "cuCtxSynchronize"]
