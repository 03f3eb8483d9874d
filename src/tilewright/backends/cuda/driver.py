"""The driver: CUDA's own library, as far as loading and launching kernels takes it.

It is looked for when a program is first run; a process that only compiles never loads it.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

from tilewright.errors import ExecutionError

LIBRARY = "libcuda.so.1"
_MAJOR, _MINOR = 75, 76  # attributes of a device: its compute capability
_MOST_SHARED = 8  # attribute of a function: how much shared memory it may ask for
_MAPPED = 2  # memory of the host that the device sees


class Driver:
    """The library, loaded and initialised."""

    def __init__(self) -> None:
        self.library: Any = ctypes.CDLL(LIBRARY)
        self.call("cuInit", 0)

    def call(self, name: str, *args: Any) -> None:
        """Call a function of the driver; ExecutionError says what it objects to."""
        code: int = getattr(self.library, name)(*args)
        if code:
            raise ExecutionError(f"CUDA's driver: {name} failed, {self._said(code)}")

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
        found = ctypes.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(found), device)
        self.call("cuCtxSetCurrent", found)
        return found.value or 0

    def function(self, cubin: bytes, name: str, shared: int) -> int:
        """Return a kernel loaded in the current context, allowed the shared memory that it needs."""
        module, found = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), cubin)
        self.call("cuModuleGetFunction", ctypes.byref(found), module, name.encode())
        if shared > 48 * 1024:
            self.call("cuFuncSetAttribute", found, _MOST_SHARED, shared)
        return found.value or 0

    def current_device(self) -> int:
        """Return the GPU that this thread uses, which is the first where it has used none."""
        found, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuCtxGetCurrent", ctypes.byref(context))
        if not context.value:
            self.context(0)
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
        self.context(device)
        if second is None:
            self.call("cuStreamSynchronize", ctypes.c_void_p(first))
            return
        event = self._event()
        self.call("cuEventRecord", event, ctypes.c_void_p(first))
        self.call("cuStreamWaitEvent", ctypes.c_void_p(second), event, 0)
        self.call("cuEventDestroy_v2", event)

    def _event(self) -> ctypes.c_void_p:
        made = ctypes.c_void_p()
        self.call("cuEventCreate", ctypes.byref(made), 0)
        return made

    def shared_word(self) -> tuple[int, int]:
        """Return a word that host and device see, zero: its address for one and for the other."""
        host, device = ctypes.c_void_p(), ctypes.c_uint64()
        self.call("cuMemHostAlloc", ctypes.byref(host), ctypes.c_size_t(8), _MAPPED)
        self.call("cuMemHostGetDevicePointer_v2", ctypes.byref(device), host, 0)
        ctypes.c_uint64.from_address(host.value or 0).value = 0
        return host.value or 0, device.value


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
    torch: Any = sys.modules.get("torch") if has_torch else None
    if torch is None or not torch.cuda.is_available():
        return _kept(_default_stream)
    try:
        found = ctypes.CDLL("libtorch_cuda.so").aoti_torch_get_current_cuda_stream
    except (OSError, AttributeError):
        return _kept(lambda device, place: _told(place, torch._C._cuda_getCurrentRawStream(device)))
    return ctypes.cast(found, ctypes.c_void_p).value or 0, found


def current_stream(device: int | None = None) -> int | None:
    """Return the stream that work for a GPU, or for the one that this thread uses, goes to: torch's current one."""
    asked = driver().current_device() if device is None else device
    found = ctypes.c_void_p()
    _Stream(stream_function("torch" in sys.modules)[0])(asked, ctypes.pointer(found))
    return found.value


def _default_stream(device: int, place: Any) -> int:
    return _told(place, None)


def _told(place: Any, stream: int | None) -> int:
    place[0] = stream
    return 0


def _kept(function: Callable[[int, Any], int]) -> tuple[int, object]:
    made = _Stream(function)
    return ctypes.cast(made, ctypes.c_void_p).value or 0, made
