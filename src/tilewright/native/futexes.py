"""Futexes: waiting for a word in shared memory to change, without looking at it all the time."""

from __future__ import annotations

import ctypes
import platform
import time
from functools import cache
from typing import Any

from tilewright.native.libraries import c_library

_NUMBERS = {"x86_64": 202, "aarch64": 98}
_WAIT, _WAKE = 0, 1
PATIENCE = 0.01
"""Seconds after which a wait ends all the same."""


@cache
def _call() -> Any:
    """Return the system's own function, None where there is none that we know."""
    number = _NUMBERS.get(platform.machine()) if platform.system() == "Linux" else None
    function = c_library().syscall if number is not None else None
    if function is None:
        return None
    function.restype = ctypes.c_long
    patience = (ctypes.c_long * 2)(0, int(PATIENCE * 1e9))

    def futex(address: int, what: int, value: int) -> None:
        function(number, ctypes.c_void_p(address), what, ctypes.c_uint32(value), patience if what == _WAIT else None)

    return futex


def wait(address: int, value: int) -> None:
    """Sleep until somebody wakes those who wait for the word at an address, unless it is another number already."""
    futex = _call()
    time.sleep(1e-4) if futex is None else futex(address, _WAIT, value & 0xFFFFFFFF)


def wake(address: int) -> None:
    """Wake everybody who waits for the word at an address."""
    futex = _call()
    if futex is not None:
        futex(address, _WAKE, 0x7FFFFFFF)
