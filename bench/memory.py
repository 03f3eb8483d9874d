"""Memory: outputs that exist before the clock starts.

A fresh 64 MB tensor costs 20 ms of page faults, several times the work of writing it. Where torch takes no `out=` its
result is fresh at every call, so the allocator is told to keep what it has once had.
"""

from __future__ import annotations

import contextlib
import ctypes

import torch

M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4  # from <malloc.h>


def output(*shape: int) -> torch.Tensor:
    """Return a tensor to write to, its pages there already; whoever leaves an element out leaves a NaN."""
    return torch.full(shape, float("nan"))


def keep_pages() -> None:
    """Have malloc hand no memory back to the system and take none that it would have to hand back."""
    with contextlib.suppress(AttributeError):  # only glibc has it
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(M_MMAP_MAX, 0)
        mallopt(M_TRIM_THRESHOLD, 2**31 - 1)
