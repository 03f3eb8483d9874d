"""The driver: CUDA's own library, as far as loading and launching kernels takes it.

It is looked for when a program is first run; a process that only compiles never loads it.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import cache
from time import monotonic, sleep
from typing import Any

from tilewright.errors import ExecutionError
from tilewright.imported import imported

LIBRARY = "libcuda.so.1"
_MAJOR, _MINOR = 75, 76  # attributes of a device: its compute capability
_MULTIPROCESSORS = 16
_CLOCKS = 13, 36, 37  # of the multiprocessors and the memory, in kHz, and the bits that this moves at a time
_MOST_SHARED = 8  # attribute of a function: how much shared memory it may ask for
_RELAXED = 2  # a thread's own calls are none that a capture may object to
_NOT_READY = 600
_PAGE = 4096
_MAPPED = 2  # memory of the host that the device sees


class DriverError(ExecutionError):
    """What the driver objects to, by its number."""

    code = 0


class Driver:
    """The library, loaded and initialised."""

    def __init__(self) -> None:
        self.library: Any = ctypes.CDLL(LIBRARY)
        self._contexts: dict[int, int] = {}
        self._words: dict[int, list[tuple[int, int]]] = {}
        self.call("cuInit", 0)

    def call(self, name: str, *args: Any) -> None:
        """Call a function of the driver; ExecutionError says what it objects to."""
        code: int = getattr(self.library, name)(*args)
        if code:
            error = DriverError(f"CUDA's driver: {name} failed, {self._said(code)}")
            error.code = code
            raise error

    def _said(self, code: int) -> str:
        text = ctypes.c_char_p()
        self.library.cuGetErrorString(code, ctypes.byref(text))
        return f"error {code}: {(text.value or b'unknown').decode()}"

    def address(self, name: str) -> int:
        """Return where a function of the driver lies."""
        found = ctypes.cast(getattr(self.library, name), ctypes.c_void_p).value
        assert found is not None
        return found

    @property
    def version(self) -> int:
        """The newest CUDA that the driver knows, times a thousand."""
        return self._number("cuDriverGetVersion")

    @property
    def count(self) -> int:
        """How many GPUs there are."""
        return self._number("cuDeviceGetCount")

    def capability(self, device: int) -> int:
        """Return the compute capability of a GPU, times ten."""
        major, minor = (self._number("cuDeviceGetAttribute", kind, device) for kind in (_MAJOR, _MINOR))
        return 10 * major + minor

    def multiprocessors(self, device: int) -> int:
        """Return how many blocks that fill a multiprocessor run on a GPU at a time."""
        return self._number("cuDeviceGetAttribute", _MULTIPROCESSORS, device)

    def clocks(self, device: int) -> tuple[float, float]:
        """Return how many cycles a second the multiprocessors of a GPU make, and how many bytes its memory moves."""
        core, memory, wires = (self._number("cuDeviceGetAttribute", kind, device) for kind in _CLOCKS)
        return 1e3 * core, 2e3 * memory * wires / 8

    def device_name(self, device: int) -> str:
        """Return what a GPU is called."""
        room = ctypes.create_string_buffer(128)
        self.call("cuDeviceGetName", room, 128, device)
        return room.value.decode()

    def _number(self, name: str, *args: int) -> int:
        found = ctypes.c_int()
        self.call(name, ctypes.byref(found), *args)
        return found.value

    def context(self, device: int) -> int:
        """Return the context that everybody in this process shares on a GPU, held for the life of the process."""
        if device not in self._contexts:
            found = ctypes.c_void_p()
            self.call("cuDevicePrimaryCtxRetain", ctypes.byref(found), device)
            self._contexts[device] = found.value or 0
        return self._contexts[device]

    @contextmanager
    def using(self, device: int) -> Generator[None, None, None]:
        """Use a GPU for what is done inside, and then the one again that this thread used before.

        What is done is no part of a graph that somebody captures meanwhile.
        """
        mode = ctypes.c_int(_RELAXED)
        self.call("cuThreadExchangeStreamCaptureMode", ctypes.byref(mode))
        self.call("cuCtxPushCurrent_v2", ctypes.c_void_p(self.context(device)))
        try:
            yield
        finally:
            self.call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))
            self.call("cuThreadExchangeStreamCaptureMode", ctypes.byref(mode))

    def function(self, cubin: bytes, name: str, shared: int) -> int:
        """Return a kernel loaded in the current context, allowed the shared memory that it needs."""
        module, found = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), cubin)
        self.call("cuModuleGetFunction", ctypes.byref(found), module, name.encode())
        if hasattr(self.library, "cuFuncLoad"):  # or the driver might load it when it is launched, and wait for others
            self.call("cuFuncLoad", found)
        if shared > 48 * 1024:
            self.call("cuFuncSetAttribute", found, _MOST_SHARED, shared)
        return found.value or 0

    def current_device(self) -> int:
        """Return the GPU that this thread uses, which is the first where it has used none."""
        found, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuCtxGetCurrent", ctypes.byref(context))
        if not context.value:
            self.call("cuCtxSetCurrent", ctypes.c_void_p(self.context(0)))
        self.call("cuCtxGetDevice", ctypes.byref(found))
        return found.value

    def elapsed(self, run: Callable[[], object], stream: int | None) -> float:
        """Return how many seconds lie between two events on a stream, one before a run and one after it."""
        begin, end = (self._event() for _ in range(2))
        self.call("cuCtxSynchronize")
        try:
            self.call("cuEventRecord", begin, ctypes.c_void_p(stream))
            run()
            self.call("cuEventRecord", end, ctypes.c_void_p(stream))
            self.call("cuEventSynchronize", end)
            found = ctypes.c_float()
            self.call("cuEventElapsedTime", ctypes.byref(found), begin, end)
        finally:
            for event in (begin, end):
                self.call("cuEventDestroy_v2", event)
        return found.value / 1e3

    def join(self, device: int, first: int | None, second: int | None) -> None:
        """Let a stream of a GPU wait for what another has to do; without one, wait for that here."""
        with self.using(device):
            if second is None:
                self.call("cuStreamSynchronize", ctypes.c_void_p(first))
                return
            event = self._event()
            self.call("cuEventRecord", event, ctypes.c_void_p(first))
            self.call("cuStreamWaitEvent", ctypes.c_void_p(second), event, 0)
            self.call("cuEventDestroy_v2", event)

    def wait(self, device: int, seconds: float) -> None:
        """Wait until the usual stream of a GPU has nothing left to do, or for so long."""
        with self.using(device):
            event, end = self._event(), monotonic() + seconds
            self.call("cuEventRecord", event, None)
            while self.library.cuEventQuery(event) == _NOT_READY and monotonic() < end:
                sleep(1e-3)
            self.call("cuEventDestroy_v2", event)

    def _event(self) -> ctypes.c_void_p:
        made = ctypes.c_void_p()
        self.call("cuEventCreate", ctypes.byref(made), 0)
        return made

    def words(self, address: int, count: int, stream: int | None) -> list[int]:
        """Return so many words of the current GPU's memory, as they are once a stream has nothing left to do."""
        found = (ctypes.c_int64 * count)()
        size, there = ctypes.c_size_t(8 * count), ctypes.c_void_p(stream)
        self.call("cuMemcpyDtoHAsync_v2", found, ctypes.c_uint64(address), size, there)
        self.call("cuStreamSynchronize", there)
        return list(found)

    def shared_word(self, device: int) -> tuple[int, int]:
        """Return a word that the host and a GPU see, zero and nobody else's: its address for one and for the other."""
        words = self._words.setdefault(device, [])
        if not words:
            words += self._shared_page(device)
        return words.pop()

    def _shared_page(self, device: int) -> list[tuple[int, int]]:
        host, there = ctypes.c_void_p(), ctypes.c_uint64()
        with self.using(device):
            self.call("cuMemHostAlloc", ctypes.byref(host), ctypes.c_size_t(_PAGE), _MAPPED)
            self.call("cuMemHostGetDevicePointer_v2", ctypes.byref(there), host, 0)
        start = host.value or 0
        ctypes.memset(start, 0, _PAGE)
        return [(start + at, there.value + at) for at in range(0, _PAGE, 8)]


def number_of(device: str) -> int:
    """Return which GPU a device is, as in `cuda:1`."""
    return int(device.partition(":")[2] or 0)


@cache
def driver() -> Driver:
    """Return the driver; ExecutionError where there is no GPU to drive."""
    try:
        found = Driver()
    except OSError as error:
        raise ExecutionError(f"this machine has no driver for NVIDIA GPUs: {error}") from None
    if not found.count:
        raise ExecutionError("CUDA's driver finds no GPU")
    return found


def is_there() -> bool:
    """Return whether there is a GPU."""
    try:
        return driver().count > 0
    except ExecutionError:
        return False


_Stream = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.POINTER(ctypes.c_void_p))
"""How the current stream of a device is asked for."""


@cache
def stream_function(has_torch: bool) -> tuple[int, object]:
    """Return where the function lies that tells the current stream, torch's where it is loaded, and what keeps it."""
    torch: Any = imported("torch") if has_torch else None
    if torch is None or not torch.cuda.is_available():
        return _kept(_told)
    try:
        found = ctypes.CDLL("libtorch_cuda.so").aoti_torch_get_current_cuda_stream
    except (OSError, AttributeError):
        return _kept(_told)
    return ctypes.cast(found, ctypes.c_void_p).value or 0, found


def current_stream(device: int | None = None) -> int | None:
    """Return the stream that work for a GPU, or for the one that this thread uses, goes to: torch's current one."""
    asked = driver().current_device() if device is None else device
    found = ctypes.c_void_p()
    _Stream(stream_function(imported("torch") is not None)[0])(asked, ctypes.pointer(found))
    return found.value


def _told(device: int, place: Any) -> int:
    """Tell the current stream as torch has it by now, which may have come after the program that asks."""
    cuda: Any = getattr(imported("torch"), "cuda", None)
    uses_torch = cuda is not None and cuda.is_initialized()
    place[0] = sys.modules["torch"]._C._cuda_getCurrentRawStream(device) if uses_torch else None
    return 0


def fixed_stream(stream: int) -> tuple[int, object]:
    """Return where a function lies that always tells one stream, and what keeps it."""

    def told(device: int, place: Any) -> int:
        place[0] = stream
        return 0

    return _kept(told)


def _kept(function: Callable[[int, Any], int]) -> tuple[int, object]:
    made = _Stream(function)
    return ctypes.cast(made, ctypes.c_void_p).value or 0, made
