"""Random programs: every target agrees with a simulator of bytes to the last one."""

from __future__ import annotations

from typing import Any, cast

import numpy
import pytest
from soon import soon
from unit.pto.tiles.generator import READ, RUNTIME, WRITTEN, Generator
from unit.pto.tiles.running import SENTINEL, launched, lowered, read
from unit.pto.tiles.simulator import simulate

np = cast("Any", numpy)
SEEDS = 100


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_program_gives_the_bytes_of_the_simulator(seed: int, targets: list[str]) -> None:
    text = Generator(seed).program()
    module = read(text)
    x = np.random.default_rng(seed).integers(0, 256, READ).astype(np.uint8)
    y = np.full(WRITTEN, SENTINEL, np.uint8)
    expected = y.copy()
    simulate(module, "main", 1, x.copy(), expected, *RUNTIME.values())
    program = lowered(module, "main")
    for target in targets:
        with soon(seed % 4 != 0):
            inputs, found = launched(program, "main", target, 1, [x, y, *RUNTIME.values()])
        assert (inputs == x).all()
        wrong = np.flatnonzero(found != expected)
        assert not len(wrong), f"{target}: bytes {wrong[:8]} of {len(wrong)} differ\n{text}"
