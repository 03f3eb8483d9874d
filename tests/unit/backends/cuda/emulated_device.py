"""A GPU that is not there: host functions run as they are, and what they launch is run by NumPy, last block first."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from unit.backends.cuda.test_launches import placed, recording
from unit.backends.cuda.test_printing import Emulating
from unit.backends.cuda.written import written

from tilewright.backends.cuda import loaded
from tilewright.call.argument import Argument, is_array
from tilewright.call.binding import Bound
from tilewright.call.frameworks import NUMPY
from tilewright.call.launch import run_native
from tilewright.core.enums import ParamDirection
from tilewright.core.program import Program
from tilewright.dtypes import from_numpy


class Device(Emulating):
    """A driver that lets the host read and fill the device's memory, too."""

    def __init__(self) -> None:
        super().__init__()
        types = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p
        self._keep["cuMemcpyDtoHAsync_v2"] = ctypes.CFUNCTYPE(ctypes.c_int, *types)(self._fetch)
        for size, number in {1: ctypes.c_uint8, 2: ctypes.c_uint16, 4: ctypes.c_uint32}.items():
            types = ctypes.c_int64, number, ctypes.c_int64, ctypes.c_void_p
            self._keep[f"cuMemsetD{8 * size}Async"] = ctypes.CFUNCTYPE(ctypes.c_int, *types)(self._filling(size))
        types = ctypes.c_int64, ctypes.c_int64, ctypes.c_uint32, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p
        self._keep["cuMemsetD2D32Async"] = ctypes.CFUNCTYPE(ctypes.c_int, *types)(self._fill_rows)

    def _fetch(self, place: int, address: int, size: int, stream: Any) -> int:
        ctypes.memmove(place, self.memory.load(address + np.arange(size), np.dtype(np.uint8)).tobytes(), size)
        return 0

    def _filling(self, size: int) -> Callable[[int, int, int, Any], int]:
        def fill(address: int, value: int, count: int, stream: Any) -> int:
            return self._fill(address, size, value, size, count)

        return fill

    def _fill(self, address: int, apart: int, value: int, size: int, count: int) -> int:
        self.memory.store(address + apart * np.arange(count), np.full(count, value, f"u{size}"))
        return 0

    def _fill_rows(self, address: int, apart: int, value: int, width: int, count: int, stream: Any) -> int:
        assert width == 1
        return self._fill(address, apart, value, 4, count)

    def call(self, name: str, *words: Any) -> None:
        assert name == "cuMemFreeAsync"

    def tensor(self, array: Any) -> Argument:
        """Return a tensor of the device with the elements of an array."""
        packed = np.ascontiguousarray(array)
        return Argument(
            self.memory.add(packed), packed.shape, packed.strides, from_numpy(packed.dtype), "cuda:0", packed
        )

    def array(self, tensor: Argument) -> Any:
        """Return the elements of a tensor of the device."""
        like: Any = tensor.owner
        found = self.memory.load(tensor.address + like.itemsize * np.arange(like.size), like.dtype)
        return found.reshape(like.shape)


def left(monkeypatch: pytest.MonkeyPatch, program: Program, args: Sequence[Any]) -> list[Any]:
    """Return what a program leaves in its tensors on such a GPU."""
    device, unit = recording(monkeypatch, Device()), written(program)
    monkeypatch.setattr(loaded, "current_stream", lambda _: 0)  # pyright: ignore
    device.texts = [text for each in unit.kernels for text in (each.aligned, each.other)]
    (entry,) = program.entries
    given = [device.tensor(arg) if is_array(arg) else arg for arg in args]
    bound = Bound(unit.program[entry.name], [ParamDirection.InOut] * len(given), [*args], given, NUMPY)
    run_native(placed(device, unit), bound)
    return [device.array(each) for each in given if isinstance(each, Argument)]
