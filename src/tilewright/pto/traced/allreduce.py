"""All-reductions: sums and extremes over the work items of a launch, as bodies write them out.

Work items take part in groups of `threads`, those of a group whose numbers are equal modulo `scale` together. A warp
reduces with one op or by shuffles; what several warps have goes through scratch memory. These functions are read, and
not run.
"""

from __future__ import annotations

from typing import Any

from tilewright.pto.traced.namespace import Operation

get_tid_x, syncthreads, shuffle_bfly = (
    Operation(name, f"pto.{name}") for name in ("get_tid_x", "syncthreads", "shuffle_bfly")
)
redux_add, redux_max, redux_min = (Operation(name, f"pto.{name}") for name in ("redux_add", "redux_max", "redux_min"))
load, store = Operation("scalar.load"), Operation("scalar.store")
WARP = 32


def combined(first: Any, second: Any, word: str) -> Any:
    """Return the sum, or the larger or smaller of two numbers."""
    if word == "sum":
        return first + second
    return max(first, second) if word == "max" else min(first, second)


def over_a_warp(value: Any, word: str) -> Any:
    """Return what all lanes of a warp have together."""
    if word == "sum":
        return redux_add(value)
    return redux_max(value) if word == "max" else redux_min(value)


def over_lanes(value: Any, offsets: tuple[int, ...], word: str) -> Any:
    """Return what lanes have together whose numbers differ in some bits."""
    for offset in offsets:
        value = combined(value, shuffle_bfly(value, offset), word)
    return value


def over_warps(value: Any, scratch: Any, warps: int, scale: int, first: int, word: str) -> Any:
    """Return what the lanes of several warps have together, each of which has reduced its own."""
    item = get_tid_x() - first
    lane = item % WARP
    if lane < scale:
        store(value, scratch, item // WARP * scale + lane)
    syncthreads()
    total = load(scratch, lane % scale)
    for warp in range(1, warps):
        total = combined(total, load(scratch, warp * scale + lane % scale), word)
    syncthreads()
    return total


def over_items(value: Any, scratch: Any, threads: int, scale: int, first: int, word: str) -> Any:
    """Return what work items have together, all of them through memory."""
    item = get_tid_x() - first
    store(value, scratch, item)
    syncthreads()
    start = item // threads * threads + item % scale
    total = load(scratch, start)
    for step in range(scale, threads, scale):
        total = combined(total, load(scratch, start + step), word)
    syncthreads()
    return total
