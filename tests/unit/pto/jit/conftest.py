"""Fixtures of the tests of `@pto.jit`."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest
from unit.pto.jit import stand_in


@pytest.fixture
def lowering(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, tuple[int, ...] | None]]:
    """Lower kernels to ones that copy; the list says which were lowered, and how their pointers shared memory."""
    module = ModuleType("tilewright.pto.lower")
    module.__dict__["lower"] = stand_in.lower
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(stand_in, "LOWERED", [])
    return stand_in.LOWERED
