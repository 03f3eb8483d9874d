"""What kernels give back to the host's functions, without a GPU: their texts run by NumPy between those."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from unit.backends.cuda.test_launches import entry_of, recording
from unit.backends.cuda.test_printing import Emulating
from unit.backends.cuda.written import written
from unit.frontend.texts import jitted

from tilewright.backends.cuda.host.kernels import Wait

KERNEL = jitted(
    """
    with pl.at(level=pl.Level.CORE_GROUP):
        turn = 0
        while pl.read(x, [turn, 0]) > 0.5:
            turn = turn + 1
        is_long = turn > 2
        twice = pl.create_tensor([8, 16], dtype=pl.FP32)
        twice = pl.store(pl.load(x, [0, 0], [8, 16]) * 2.0, [0, 0], twice)
    for row in pl.parallel(turn):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(twice, [row, 0], [1, 16])
            if is_long:
                pl.store(t, [row, 0], out)
            else:
                pl.store(t + 100.0, [row, 0], out)
    """,
    "x: pl.Tensor, out: pl.InOut[pl.Tensor]",
)


class Reading(Emulating):
    """A driver that lets the host read the device's memory, too."""

    def __init__(self) -> None:
        super().__init__()
        types = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p
        self._keep["cuMemcpyDtoHAsync_v2"] = ctypes.CFUNCTYPE(ctypes.c_int, *types)(self._fetch)

    def _fetch(self, place: int, address: int, size: int, stream: Any) -> int:
        ctypes.memmove(place, self.memory.load(address + np.arange(size), np.dtype(np.uint8)).tobytes(), size)
        return 0


@pytest.mark.parametrize("turns", [0, 2, 5])
def test_numbers_and_tensors_of_one_kernel_are_those_of_the_next(monkeypatch: pytest.MonkeyPatch, turns: int) -> None:
    driver = recording(monkeypatch, Reading())
    x = np.random.default_rng(turns).uniform(0.6, 2.0, (8, 16)).astype(np.float32)
    x[turns, 0] = 0.25
    unit = written(KERNEL.specialize(x, x).program)
    assert len(unit.kernels) == 2
    assert [each.why for each in unit.launches if isinstance(each, Wait)] == [
        "for numbers that `kernel_incore_0` computes"
    ]
    driver.texts = [text for each in unit.kernels for text in (each.aligned, each.other)]
    there, out = driver.memory.add(x), driver.memory.add(np.zeros_like(x))
    entry_of(driver, KERNEL, x, x)(there, 8, 16, 16, 1, out, 8, 16, 16, 1)
    found = driver.memory.load(out + 4 * np.arange(128), np.dtype(np.float32)).reshape(8, 16)
    wanted = np.zeros_like(x)
    wanted[:turns] = x[:turns] * 2 + (0 if turns > 2 else 100)
    assert np.array_equal(found, wanted)
