"""Matrix units: whether a processor has AMX, and whether this process may use it.

Linux keeps the tiles of AMX from processes that have not asked for them: https://docs.kernel.org/arch/x86/xstate.html
"""

from __future__ import annotations

import ctypes
import platform

from tilewright.native.libraries import library
from tilewright.native.target import cpu_flags

_ARCH_PRCTL, _GET_PERMITTED, _TILE_DATA = 158, 0x1022, 18


def amx() -> tuple[str, ...]:
    """Return which kinds of AMX the processor has, nothing where it has none."""
    return tuple(sorted(flag for flag in cpu_flags() if flag.startswith("amx")))


def is_permitted() -> bool:
    """Return whether this process has asked for AMX's tiles, and got them."""
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        return False
    mask = ctypes.c_uint64()
    failed = library(None).syscall(_ARCH_PRCTL, _GET_PERMITTED, ctypes.byref(mask))
    return not failed and bool(mask.value >> _TILE_DATA & 1)
