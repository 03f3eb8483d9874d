"""Tests that run kernels on a GPU: all of them are skipped, file by file and for one reason, where there is none."""

from __future__ import annotations

from functools import cache

import pytest

from tilewright.backends.cuda.driver import is_there
from tilewright.backends.cuda.target import triton_objection


@cache
def objection() -> str:
    return triton_objection() or ("" if is_there() else "needs an NVIDIA GPU")


@pytest.hookimpl(tryfirst=True)
def pytest_make_collect_report(collector: pytest.Collector) -> pytest.CollectReport | None:
    """Mark the files here, or skip them before anything in them is made."""
    if isinstance(collector, pytest.Module):
        collector.add_marker(pytest.mark.gpu)
        if objection():
            return pytest.CollectReport(collector.nodeid, "skipped", (str(collector.path), 0, objection()), [])
    return None
