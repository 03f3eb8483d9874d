"""Producers: memory of a GPU that is handed over by DLPack, read from capsules that only say so."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

import tilewright.language as pl
from tilewright.backends.cuda.backend import CUDA
from tilewright.call.dlpack import handed_over
from tilewright.call.frameworks import argument_of, framework_of
from tilewright.call.producers import PRODUCERS


class Produced:
    """An array of the host's that says it is one of the second GPU."""

    def __init__(self, array: Any, *, is_old: bool = False) -> None:
        self.array, self.dtype = array, array.dtype
        self.is_old = is_old
        self.streams: list[int] = []

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 1

    def __dlpack__(self, *, stream: int, **options: Any) -> Any:
        if self.is_old and options:
            raise TypeError("max_version")
        self.streams.append(stream)
        capsule = self.array.__dlpack__(**options)
        python = ctypes.pythonapi
        python.PyCapsule_GetName.restype = ctypes.c_char_p
        python.PyCapsule_GetPointer.restype = ctypes.c_void_p
        name = python.PyCapsule_GetName(ctypes.py_object(capsule))
        at = python.PyCapsule_GetPointer(ctypes.py_object(capsule), ctypes.c_char_p(name))
        head = 32 if name == b"dltensor_versioned" else 0
        ctypes.c_int32.from_address(at + head + 8).value = 2
        ctypes.c_int32.from_address(at + head + 12).value = 1
        return capsule


@pytest.fixture(autouse=True)
def stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CUDA, "stream", lambda self, device: None)  # pyright: ignore


DATA: Any = np.reshape(np.arange(60, dtype=np.int16), (6, 10))


@pytest.mark.parametrize("is_old", [True, False])
def test_memory_is_found_where_it_lies(is_old: bool) -> None:
    part = DATA[1:5, 2:8:2]
    found = handed_over(Produced(part, is_old=is_old), 77)
    assert (found.address, found.shape, found.strides) == (part.ctypes.data, part.shape, part.strides)
    assert (found.device, found.dtype, found.owner.is_sealed) == ("cuda:1", pl.INT16, False)


def test_a_producer_is_told_the_stream_that_it_is_used_on() -> None:
    given = Produced(DATA)
    handed_over(given, 77)
    assert framework_of(given) is PRODUCERS
    argument_of(given, "x")
    assert given.streams == [77, 1]


def test_what_is_handed_over_to_be_read_is_not_written() -> None:
    sealed = DATA.copy()
    sealed.setflags(write=False)
    try:
        found = handed_over(Produced(sealed), None)
    except BufferError:
        pytest.skip("this NumPy hands over nothing that is read-only")
    assert "read-only" in PRODUCERS.write_objection(found)
    assert PRODUCERS.write_objection(handed_over(Produced(DATA.copy()), None)) == ""


def test_an_element_type_that_the_language_has_not_is_refused() -> None:
    with pytest.raises(TypeError, match="`x`: Unsupported element type complex64; supported: bool, fp16"):
        argument_of(Produced(DATA.astype(np.complex64)), "x")


def test_memory_of_two_places_is_refused_by_name() -> None:
    @pl.jit
    def add(x: pl.Tensor, y: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [0, 0], [6, 10]) + pl.load(y, [0, 0], [6, 10]), [0, 0], out)
        return out

    with pytest.raises(ValueError, match="`x` is on cuda:1 and `y` on cpu"):
        add(Produced(DATA), DATA)
