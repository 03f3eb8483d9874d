"""Tests that run kernels on a GPU: all of them are skipped, for one reason, where there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilewright.backends.cuda.driver import is_there
from tilewright.backends.cuda.target import triton_objection

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = [item for item in items if HERE in item.path.parents]
    reason = triton_objection() or ("" if not here or is_there() else "needs an NVIDIA GPU")
    for item in here:
        item.add_marker(pytest.mark.gpu)
        if reason:
            item.add_marker(pytest.mark.skip(reason=reason))
