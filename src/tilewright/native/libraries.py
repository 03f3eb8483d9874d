"""Libraries: the system's own functions that native code calls, by name."""

from __future__ import annotations

import ctypes
import sys
from functools import cache

from tilewright.native.machines import System

_LIBRARIES = {
    System.LINUX.value: (None, "libm.so.6"),
    System.MACOS.value: (None,),
    System.WINDOWS.value: ("ucrtbase", "kernel32", "ntdll"),
}
"""Where to look, in order; None is whatever the process has loaded."""

_COROUTINES = ("getcontext", "makecontext", "swapcontext")
"""What other systems than Linux have, if at all, with records laid out their own way."""


@cache
def library_symbol(name: str) -> int:
    """Return the address of a function or variable of the system's C library, or 0."""
    if sys.platform != System.LINUX.value and name in _COROUTINES:
        return 0
    for each in _LIBRARIES.get(sys.platform, (None,)):
        try:
            return ctypes.addressof(ctypes.c_char.in_dll(library(each), name))
        except (ValueError, OSError):
            continue
    return 0


@cache
def library(name: str | None) -> ctypes.CDLL:
    """Return a library of the system's."""
    return ctypes.CDLL(name, use_errno=True)


def c_library() -> ctypes.CDLL:
    """Return the library that has the C functions of this process."""
    return library(_LIBRARIES.get(sys.platform, (None,))[0])
