"""Extents: how much of a tile is valid, held within the tile."""

from __future__ import annotations

from tilewright.backends.cpu.emit.function import FunctionEmitter
from tilewright.backends.cpu.emit.stops import Exact
from tilewright.core.expr import Call
from tilewright.native.llvm import Value


def within(e: FunctionEmitter, call: Call, extent: Value, limit: Value) -> Value:
    """Return a valid extent; one that does not fit is an error, and cut."""
    if not e.checked:
        return extent

    def cut() -> Value:
        exact = Exact("a valid part of {0} does not fit {1}", lambda: (extent, limit))
        e.fail(e.b.compare("icmp ugt", extent, limit), "a valid part does not fit its tile", call, exact)
        return e.b.intrinsic("llvm.umin", extent, limit)

    return e.once((extent, limit), cut)
