"""Ranks on GPUs: which GPU each runs on, its stream there, and memory that all of them reach.

Rank r runs on the GPU `device_ids[r]`, counted around where there are fewer. Kernels that wait for other ranks hold
their multiprocessors meanwhile, so those that share a GPU have to run at the same time: each has a stream whose work
does not queue up behind another's, and so many blocks that wait that all of them fit.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Sequence
from functools import cache
from typing import Any
from weakref import finalize

from tilewright.backends.cuda.driver import DriverError, current_stream, driver
from tilewright.backends.devices import Seat
from tilewright.core.region import Array
from tilewright.errors import ExecutionError

CONNECTIONS = "CUDA_DEVICE_MAX_CONNECTIONS"
USUAL_CONNECTIONS, MOST_CONNECTIONS = 8, 32
"""How many streams of a GPU are sure not to queue up behind each other, and how many that can be told to be."""
_NON_BLOCKING = 1
_PORTABLE, _MAPPED = 1, 2
_NOT_READY, _ALREADY = 600, 704
_REACHING = 1  # another GPU's memory is reached from the first time on that it is touched
SHARED = 1 << 21
"""What memory for other processes is a multiple of: the driver hands out whole pages of that size."""
_ORDINAL = 9  # attribute of an address: the GPU that it is on


class GPUs:
    """The GPUs of this machine as ranks share them."""

    def holder(self, address: int) -> int:
        """Return the GPU that some memory lies on; ExecutionError for what is none of a GPU's."""
        found = ctypes.c_int()
        driver().call("cuPointerGetAttribute", ctypes.byref(found), _ORDINAL, ctypes.c_uint64(address))
        return found.value

    def seats(self, device_ids: Sequence[int], *, waits: bool) -> list[Seat]:
        """Return where ranks run; ExecutionError where kernels that wait might not run at the same time."""
        gpus = [device % driver().count for device in device_ids]
        for gpu in set(gpus):
            if waits:
                _check_connections(gpus.count(gpu))
            for other in set(gpus) - {gpu}:
                self.reach(gpu, other)
        numbers = [gpus[:rank].count(gpu) for rank, gpu in enumerate(gpus)]
        rooms = [driver().multiprocessors(gpu) // gpus.count(gpu) for gpu in gpus]
        return [Seat(gpu, _stream(gpu, n), room) for gpu, n, room in zip(gpus, numbers, rooms, strict=True)]

    def reach(self, device: int, other: int) -> None:
        """Let a GPU reach the memory of another; ExecutionError where it cannot."""
        _reach(device, other)

    def memory(self, device: int, size: int, *, is_shared: bool = False) -> GPUMemory:
        """Return so many bytes of a GPU, perhaps for other processes, too."""
        return GPUMemory(device, -(-size // SHARED) * SHARED if is_shared else size)

    def words(self, count: int) -> Any:
        """Return words of the host's that all GPUs see at the same address."""
        found = ctypes.c_void_p()
        with driver().using(0):
            driver().call("cuMemHostAlloc", ctypes.byref(found), ctypes.c_size_t(8 * count), _PORTABLE | _MAPPED)
        words = (ctypes.c_int64 * count).from_address(found.value or 0)
        finalize(words, _free_words, found).atexit = False
        return words

    def clear(self, parts: Sequence[tuple[Seat, int, int]]) -> None:
        """Let memory of ranks be zero, addresses and sizes, once their streams have nothing left to do."""
        zero = ctypes.c_ubyte(0)
        for gpu in {seat.device for seat, *_ in parts}:
            here = [(ctypes.c_void_p(seat.stream), *place) for seat, *place in parts if seat.device == gpu]
            with driver().using(gpu):
                for stream, address, size in here:
                    driver().call("cuMemsetD8Async", ctypes.c_uint64(address), zero, ctypes.c_size_t(size), stream)
                for stream in {stream.value: stream for stream, *_ in here}.values():
                    driver().call("cuStreamSynchronize", stream)

    def is_done(self, seat: Seat) -> bool:
        """Return whether a rank's stream has nothing left to do; ExecutionError where a kernel has failed.

        The thread uses that GPU from then on: whoever asks does so again and again.
        """
        driver().call("cuCtxSetCurrent", ctypes.c_void_p(driver().context(seat.device)))
        code: int = driver().library.cuStreamQuery(ctypes.c_void_p(seat.stream))
        if code not in (0, _NOT_READY):
            driver().call("cuStreamSynchronize", ctypes.c_void_p(seat.stream))
        return code == 0

    def await_callers(self, device: int) -> None:
        """Wait for what the caller has started on a GPU, whose current stream that is."""
        driver().join(device, current_stream(device), None)

    # processes

    def seat(self, device_id: int) -> Seat:
        """Return where the rank of this process runs, as if nobody else ran there."""
        gpu = device_id % driver().count
        return Seat(gpu, _stream(gpu, 0), driver().multiprocessors(gpu))

    def identity(self, device: int) -> bytes:
        """Return the number that NVIDIA gave a GPU, or a part of one."""
        found = (ctypes.c_char * 16)()
        driver().call("cuDeviceGetUuid_v2", ctypes.byref(found), device)
        return bytes(found)

    def opened(self, device: int, handle: bytes) -> OpenedMemory:
        """Return memory of another process for a GPU of this one; ExecutionError where that cannot reach it."""
        return OpenedMemory(device, handle)

    def shown(self, words: Array) -> Shown:
        """Let all GPUs see memory of the host at its own address."""
        return Shown(words)

    def copy(self, target: Array, source: Array) -> None:
        """Copy elements by torch, behind what the caller has started, and return once they are there."""
        torch: Any = sys.modules["torch"]
        to, of = (torch.as_tensor(_Bytes(each), device=self._device(each)) for each in (target, source))
        with torch.no_grad():
            to.copy_(of)
        for each in (to, of):
            torch.cuda.current_stream(each.device).synchronize()

    def _device(self, array: Array) -> str:
        return f"cuda:{self.holder(array.ctypes.data)}"


GPUS = GPUs()


def _check_connections(ranks: int) -> None:
    said = os.environ.get(CONNECTIONS, "")
    most = int(said) if said.isdecimal() else USUAL_CONNECTIONS
    if ranks > most:
        message = f"{ranks} ranks share a GPU and wait for each other, and it runs {most} streams side by side"
        fewer = f"use {MOST_CONNECTIONS} ranks on a GPU at most"
        help = f"set {CONNECTIONS}={ranks} before the process uses a GPU" if ranks <= MOST_CONNECTIONS else fewer
        raise ExecutionError(message, help=help)


@cache
def _stream(gpu: int, number: int) -> int:
    """Return a stream of a GPU for the ranks of that number there, the same in every program."""
    found = ctypes.c_void_p()
    with driver().using(gpu):
        driver().call("cuStreamCreate", ctypes.byref(found), _NON_BLOCKING)
    return found.value or 0


@cache
def _reach(gpu: int, other: int) -> None:
    found = ctypes.c_int()
    driver().call("cuDeviceCanAccessPeer", ctypes.byref(found), gpu, other)
    if not found.value:
        message = f"GPU {gpu} does not reach the memory of GPU {other}, and ranks on them share windows"
        raise ExecutionError(message, help="name GPUs in device_ids that reach each other, or one of them")
    with driver().using(gpu):
        try:
            driver().call("cuCtxEnablePeerAccess", ctypes.c_void_p(driver().context(other)), 0)
        except DriverError as error:
            if error.code != _ALREADY:
                raise


class GPUMemory:
    """Bytes of a GPU, given back with this object."""

    def __init__(self, gpu: int, size: int) -> None:
        found = ctypes.c_uint64()
        self.gpu = gpu
        with driver().using(gpu):
            driver().call("cuMemAlloc_v2", ctypes.byref(found), ctypes.c_size_t(max(size, 1)))
        self.address = found.value
        finalize(self, _free, gpu, self.address).atexit = False

    def write(self, offset: int, data: bytes) -> None:
        """Copy bytes of the host's into it."""
        with driver().using(self.gpu):
            driver().call("cuMemcpyHtoD_v2", ctypes.c_uint64(self.address + offset), data, ctypes.c_size_t(len(data)))

    @property
    def handle(self) -> bytes:
        """What another process opens it by."""
        found = _Handle()
        with driver().using(self.gpu):
            driver().call("cuIpcGetMemHandle", ctypes.byref(found), ctypes.c_uint64(self.address))
        return bytes(found)


class OpenedMemory(GPUMemory):
    """Bytes of a GPU that another process has, mapped here."""

    def __init__(self, gpu: int, handle: bytes) -> None:
        found = ctypes.c_uint64()
        self.gpu = gpu
        with driver().using(gpu):
            driver().call("cuIpcOpenMemHandle_v2", ctypes.byref(found), _Handle.from_buffer_copy(handle), _REACHING)
        self.address = found.value
        finalize(self, _close, gpu, self.address).atexit = False


class _Handle(ctypes.Structure):
    """What the driver tells another process's driver, handed over by value."""

    _fields_ = (("data", ctypes.c_ubyte * 64),)


def _close(gpu: int, address: int) -> None:
    with driver().using(gpu):
        driver().call("cuIpcCloseMemHandle", ctypes.c_uint64(address))


class Shown:
    """Memory of the host that GPUs see, for as long as this is held."""

    def __init__(self, words: Array) -> None:
        self._words = words
        address = ctypes.c_void_p(words.ctypes.data)
        with driver().using(0):
            driver().call("cuMemHostRegister_v2", address, ctypes.c_size_t(words.nbytes), _PORTABLE | _MAPPED)
        finalize(self, _hide, address).atexit = False


def _hide(address: ctypes.c_void_p) -> None:
    with driver().using(0):
        driver().call("cuMemHostUnregister", address)


class _Bytes:
    """Elements of a GPU as torch takes them: each is a row of bytes."""

    def __init__(self, array: Array) -> None:
        self.__cuda_array_interface__ = {
            "version": 3, "typestr": "|u1", "data": (array.ctypes.data, False),
            "shape": (*array.shape, array.itemsize), "strides": (*array.strides, 1),
        }  # fmt: skip


def _free(gpu: int, address: int) -> None:
    with driver().using(gpu):
        driver().call("cuMemFree_v2", ctypes.c_uint64(address))


def _free_words(address: ctypes.c_void_p) -> None:
    with driver().using(0):
        driver().call("cuMemFreeHost", address)
