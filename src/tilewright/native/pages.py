"""Pages: memory that the system maps, of files or of none, until nobody looks at it any more.

Python's own maps each hold on to a descriptor of their file; these do not.
"""

from __future__ import annotations

import ctypes
import mmap
import weakref
from functools import cache
from typing import Any

from tilewright.arrays import np
from tilewright.native.libraries import c_library


def map_pages(address: int | None, size: int, flags: int, descriptor: int, offset: int) -> int:
    """Return where so many bytes of a file are mapped, to be read and written; OSError where they cannot be."""
    found = _calls().mmap(address, size, mmap.PROT_READ | mmap.PROT_WRITE, flags, descriptor, offset)
    if found in (None, ctypes.c_void_p(-1).value):
        raise OSError(ctypes.get_errno(), f"{size} bytes of windows could not be mapped")
    return int(found)


def held_pages(start: int, size: int) -> Any:
    """Return mapped bytes as an array; they are unmapped with the last view of it."""
    memory: Any = (ctypes.c_uint8 * size).from_address(start)
    weakref.finalize(memory, _unmap, start, size).atexit = False
    return np.frombuffer(memory, np.uint8)


def _unmap(start: int, size: int) -> None:
    _calls().munmap(start, size)


@cache
def _calls() -> Any:
    library = c_library()
    library.mmap.restype = ctypes.c_void_p
    library.mmap.argtypes = [
        ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_int64,
    ]  # fmt: skip
    library.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    return library
