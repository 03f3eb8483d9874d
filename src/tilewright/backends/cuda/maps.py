"""Maps: which part of a tensor the copy engine moves at once, for each descriptor that a compiled kernel is given.

The host makes descriptors for boxes of just that size. A box has a block's rows, or half of them where two groups of
warps share them, and at most as many bytes of each row as shared memory is swizzled by.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from tilewright.records import record


@record
class Box:
    """What is moved at once: rows and columns, and how they lie in shared memory, as CUDA counts that."""

    rows: int
    columns: int
    swizzle: int


def boxes(text: str, told: Sequence[Mapping[str, Any]]) -> tuple[Box, ...]:
    """Return the boxes of a kernel's descriptors, from its text with layouts and what Triton tells about them."""
    names = re.findall(r"(%\w+): !tt\.tensordesc<", text.partition(") attributes")[0])
    copied = {name: int(rows) for name, rows in re.findall(_COPY, text)}
    for captures, regions in re.findall(r"ttg\.warp_specialize\(([^)]*)\)(.*?)(?=ttg\.warp_specialize|\Z)", text, re.S):
        for params in re.findall(r"partition\d+\((.*?)\) num_warps", regions):
            inner = re.findall(r"(%\w+):", params)
            outer = re.findall(r"%\w+", captures)
            copied |= {name: copied[own] for name, own in zip(outer, inner, strict=True) if own in copied}
    found: list[Box] = []
    for name, facts in zip(names, told, strict=True):
        rows, columns = facts["block_size"]
        found.append(Box(min(rows, copied.get(name, rows)), columns, facts["swizzle"]))
    return tuple(found)


_COPY = r"async_tma_copy_(?:global_to_local|local_to_global) (%\w+)\[[^\n]*(?:->|,) !ttg\.memdesc<(\d+)x\d+x"
