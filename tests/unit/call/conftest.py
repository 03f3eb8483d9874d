"""Fixtures of calls: how they are dispatched, where programs are kept, and a busy machine."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest


@pytest.fixture(params=["native", "python"])
def dispatch(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How calls are dispatched: by machine code, or as where there is none."""
    monkeypatch.setenv("TILEWRIGHT_DISPATCH", request.param)
    return request.param


@pytest.fixture(scope="module", autouse=True)
def cache_dir(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Programs are compiled once for all that are made anew."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def busy() -> Iterator[None]:
    """Threads that take turns as often as they can."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)
