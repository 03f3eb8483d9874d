"""Distant parts: the calls that bring copies of what peers hold up to date, and take away what was written to them.

They say which bytes an element has and its type, how many axes a region has, its extents and how far neighbours lie
apart, in elements.
"""

from __future__ import annotations

from tilewright.backends.cpu.compute.addresses import moved
from tilewright.backends.cpu.emit.function import FunctionEmitter, lowers
from tilewright.backends.cpu.emit.handlers import Bound
from tilewright.backends.cpu.emit.values import Tensor
from tilewright.backends.cpu.host.domains import LOST, tell
from tilewright.core.enums import AtomicType
from tilewright.core.expr import Call
from tilewright.native.domains import Touch
from tilewright.native.llvm import Value, i64


@lowers("distributed.fetch")
def _fetch(e: FunctionEmitter, call: Call, bound: Bound) -> tuple[()]:
    return _touch(e, call, bound, Touch.CLEAR if bound["atomic"] is AtomicType.Add else Touch.FETCH)


@lowers("distributed.send")
def _send(e: FunctionEmitter, call: Call, bound: Bound) -> tuple[()]:
    return _touch(e, call, bound, Touch.ADD if bound["atomic"] is AtomicType.Add else Touch.SEND)


def _touch(e: FunctionEmitter, call: Call, bound: Bound, what: Touch) -> tuple[()]:
    """Tell of the elements of a region that are there."""
    e.flush()
    view: Tensor = bound["view"]
    offsets = [i64(0)] * len(view.shape) if bound["offsets"] is None else e.indices(bound["offsets"])
    starts = [e.b.intrinsic("llvm.smax", offset, i64(0)) for offset in offsets]
    stops = [e.b.op("add", offset, size) for offset, size in zip(offsets, _extents(e, view, bound), strict=True)]
    ends = [e.b.intrinsic("llvm.smin", stop, extent) for stop, extent in zip(stops, view.shape, strict=True)]
    left = [e.b.op("sub", end, start) for start, end in zip(starts, ends, strict=True)]
    counts = [e.b.intrinsic("llvm.smax", count, i64(0)) for count in left]
    words = [i64(view.dtype.code()), i64(len(counts)), *counts, *view.strides]
    failed = tell(e, bound["window"], what, moved(e, view, starts), words)
    e.stop(e.b.compare("icmp ne", failed, i64(0)), LOST, call)
    return ()


def _extents(e: FunctionEmitter, view: Tensor, bound: Bound) -> list[Value]:
    """Return how large a region is: as it says, as what is written there, or all of the view."""
    if bound["shapes"] is not None:
        found = [*e.indices(bound["shapes"])]
    else:
        found = [*(view.shape if bound["source"] is None else bound["source"].valid)]
    return [i64(1)] * (len(view.shape) - len(found)) + found
