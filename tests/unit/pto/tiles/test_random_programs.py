"""Random programs: the interpreter, the CPU and a simulator of bytes agree to the last one."""

from __future__ import annotations

from typing import Any, cast

import numpy
import pytest
from unit.pto.tiles.generator import READ, RUNTIME, WRITTEN, Generator
from unit.pto.tiles.running import PLATFORMS, SENTINEL, read, run
from unit.pto.tiles.simulator import simulate

np = cast("Any", numpy)
SEEDS = 150


@pytest.mark.parametrize("seed", range(SEEDS))
def test_every_way_to_run_a_program_gives_the_same_bytes(seed: int) -> None:
    text = Generator(seed).program()
    module = read(text)
    x = np.random.default_rng(seed).integers(0, 256, READ).astype(np.uint8)
    y = np.full(WRITTEN, SENTINEL, np.uint8)
    expected = y.copy()
    simulate(module, "main", 1, x.copy(), expected, *RUNTIME.values())
    for platform in PLATFORMS:
        inputs, found = run(module, "main", platform, 1, [x, y, *RUNTIME.values()])
        assert (inputs == x).all()
        wrong = np.flatnonzero(found != expected)
        assert not len(wrong), f"{platform}: bytes {wrong[:8]} of {len(wrong)} differ\n{text}"
