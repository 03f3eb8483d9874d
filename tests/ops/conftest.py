"""Fixtures of the tests of ops."""

from __future__ import annotations

import pytest
from ops import kernels


@pytest.fixture
def on_target(target: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run the kernels of a test on each target."""
    monkeypatch.setattr(kernels, "TARGET", target)
    return target
