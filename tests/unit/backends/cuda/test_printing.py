"""What kernels print on a GPU, without one: their texts run by NumPy between the host function and what shows it."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from unit.backends.cuda.emulated import Machine
from unit.backends.cuda.emulated_memory import Memory, numpy_type
from unit.backends.cuda.test_launches import Recorder, entry_of, recording
from unit.backends.cuda.written import written
from unit.frontend.texts import jitted

import tilewright.language as pl
from tilewright.backends.cuda.prints import LOST, Print, said
from tilewright.errors import ExecutionError
from tilewright.runtime import RunConfig

KERNEL = jitted(
    """
    pl.print("before", n)
    for row in pl.parallel(0, x.shape[0], 4):
        for column in pl.parallel(0, 40, 20):
            with pl.at(level=pl.Level.CORE_GROUP):
                t = pl.load(x, [row, column], [4, 20])
                pl.print(f"{x.shape} row", row, column, n, n > 3, t, "end", 2.5)
                for turn in pl.range(row // 4):
                    pl.print("turn", pl.cast(turn, pl.UINT32), pl.read(t, [0, turn]))
                if column > 0:
                    pl.print(x, pl.row_sum(t), pl.cast(t, pl.UINT8), pl.cast(t, pl.FP16), pl.cast(t, pl.INT64))
                pl.print()
                pl.store(t, [row, column], out)
    pl.print("after")
    """,
    "x: pl.Tensor, n: pl.Scalar[pl.INT8, pl.RUNTIME], out: pl.Out[pl.Tensor]",
)


class Emulating(Recorder):
    """A driver that runs kernels, the last block first."""

    def __init__(self) -> None:
        super().__init__()
        self.memory, self.texts = Memory(), list[str]()

    def _launch(self, config: int, function: int, params: int, extra: int | None) -> int:
        code = super()._launch(config, function, params, extra)
        kernel, blocks, words = self.single[-1]
        for block in reversed(range(blocks)):
            machine = Machine(self.texts[kernel], self.memory)
            machine.run([_given(*each) for each in zip(words, machine.params, strict=False)], block)
        return code

    def _allocate(self, place: Any, size: int, stream: Any) -> int:
        place[0] = ctypes.c_void_p(self.memory.add(np.zeros(size, np.uint8)))
        return 0

    def words(self, address: int, count: int, stream: int | None) -> Sequence[int]:
        return self.memory.load(address + 8 * np.arange(count), np.dtype(np.int64)).tolist()


def _given(word: int, param: tuple[str, str]) -> Any:
    """Return the number that a word holds in its first bytes, as a parameter has it."""
    _, type_ = param
    dtype: Any = numpy_type(type_)
    return np.frombuffer(np.int64(word).tobytes()[: dtype.itemsize], dtype)[0]


def printed_by(recorder: Emulating, x: Any, n: int) -> None:
    args = x, pl.RUNTIME, np.zeros_like(x)
    recorder.texts = [
        text for each in written(KERNEL.specialize(*args).program).kernels for text in (each.aligned, each.other)
    ]
    there, out = recorder.memory.add(x), recorder.memory.add(x)
    entry_of(recorder, KERNEL, *args)(there, *x.shape, x.shape[1], 1, n, out, *x.shape, x.shape[1], 1)


@pytest.fixture
def emulating(monkeypatch: pytest.MonkeyPatch) -> Emulating:
    return recording(monkeypatch, Emulating())


def test_kernels_print_what_the_interpreter_does(emulating: Emulating, capfd: pytest.CaptureFixture[str]) -> None:
    x = np.reshape(np.arange(400, dtype=np.float32) / 3, (10, 40))
    x[0, 1], x[0, 2], x[1, 1] = -np.nan, -np.inf, 1e-20
    KERNEL(x, -3, np.zeros_like(x), config=RunConfig(platform="interpret"))
    meant = capfd.readouterr().out
    printed_by(emulating, x, -3)
    assert capfd.readouterr().out == meant
    assert meant.count("(10, 40) row ") == 6 and "..." in meant


def test_a_kernel_that_prints_is_no_part_of_a_capture(emulating: Emulating) -> None:
    emulating.capturing = 1
    with pytest.raises(ExecutionError, match="cannot while a CUDA graph is captured"):
        printed_by(emulating, np.zeros((8, 40), np.float32), 1)


def test_what_has_no_room_is_said_to_be_lost() -> None:
    assert said([5, 1, 7, 3, 0], [Print("n ", "\n", "i")]) == f"n 3\n{LOST}"
