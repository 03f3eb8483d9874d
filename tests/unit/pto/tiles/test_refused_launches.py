"""Refused launches: numbers that would take a kernel out of its tiles or buffers stop it, with the op named."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from unit.pto.tiles.running import KERNELS, PLATFORMS, read, run
from unit.pto.tiles.test_kernels import CASES

from tilewright.errors import ExecutionError

BEYOND: list[tuple[str, dict[str, Any]]] = [
    ("runtime_valid", {"r": 17}),
    ("runtime_valid", {"c": 33}),
    ("runtime_valid", {"r": -1}),
    ("padding_in_place", {"c": 33}),
    ("resized", {"r": 17}),
    ("extracting", {"i": 30}),
    ("extracting", {"i": -1}),
    ("inserting", {"i": 30}),
    ("windows", {"i": 15}),
    ("elements", {"i": 128}),
    ("elements", {"i": -1}),
    ("carried_numbers", {"n": 17}),
    ("blocks", {"n": 65}),
    ("ping_pong", {"n": 9}),
    ("product_ragged", {"m": 17}),
    ("product_ragged", {"d": 33}),
]


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize(("kernel", "numbers"), BEYOND, ids=lambda value: str(value))
def test_a_number_too_large_or_small_names_the_op(kernel: str, numbers: dict[str, Any], platform: str) -> None:
    case = next(c for c in CASES if c.kernel == kernel)
    case = replace(case, arguments={**case.arguments, **numbers})
    path = KERNELS / f"{kernel}.pto"
    module = read(case.text(path.read_text()), path.name)
    with pytest.raises(ExecutionError, match=rf"{kernel}\.pto:\d+"):
        run(module, kernel, platform, case.grid, list(case.given().values()))
