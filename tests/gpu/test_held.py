"""Tests of ops that hold native code against the interpreter, with the GPU in the place of native code."""

from __future__ import annotations

from types import ModuleType

import pytest
from gpu.device import OnDevice
from ops import (
    along,
    indexed,
    test_atomics,
    test_axes,
    test_gather,
    test_indexed,
    test_masked,
    test_memory_gather,
    test_order,
    test_scan,
    test_scan_by,
    test_scatter,
)

HOLDING: list[ModuleType] = [along, indexed, test_axes, test_masked, test_order, test_scan, test_scan_by]
TESTS: list[ModuleType] = [
    test_atomics, test_axes, test_gather, test_indexed, test_masked, test_memory_gather, test_order, test_scan,
    test_scan_by, test_scatter,
]  # fmt: skip

for _module in TESTS:
    _noun = _module.__name__.rpartition("test_")[2]
    for _name, _test in vars(_module).items():
        if _name.startswith("test_"):
            globals()[f"test_{_noun}_{_name.removeprefix('test_')}"] = _test


@pytest.fixture(autouse=True)
def _on_the_device(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    for module in HOLDING:
        monkeypatch.setattr(module, "Native", OnDevice)
    name = str(request.node.name)  # pyright: ignore
    if "pass_the_caches" in name:
        pytest.skip("a GPU's caches are its own affair")
    if "index_too_large_is_refused" in name:
        pytest.skip("an error on the GPU names the lower half of an index, with a sign")
    if "one_after_the_other" in name and any(kind in name for kind in ("fp", "bf")):
        pytest.skip("in which order floats are added that nobody reads is open")
