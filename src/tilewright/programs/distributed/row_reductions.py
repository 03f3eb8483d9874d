"""Row reductions: what arrays of several ranks make in their order, to the bits that `ops/collectives.py` says.

NumPy and torch write where they are told to, since new memory of megabytes takes as long as reducing them, and block
after block, in each of which a look for NaN finds the elements in the cache.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from tilewright.arrays import np
from tilewright.core.enums import ReduceOp
from tilewright.ops.collectives import reduced
from tilewright.programs.distributed.torch_reductions import reduced_by_torch, settled

BLOCK = 1 << 16
"""Elements."""
_IN_PLACE = {ReduceOp.Sum: "add", ReduceOp.Prod: "multiply"}
_INFINITE = {"bfloat16": 0x7F80, "float16": 0x7C00}
"""Infinity, as bits: those of NaN are more. NumPy reduces such elements ten to forty times as slowly as torch does."""


def reducing(rows: Sequence[Any], op: int, into: Any) -> Callable[[], None]:
    """Return what lets `into`, which may be one of the rows, be what they make, rounded after each; they are lost."""
    is_narrow, name = into.dtype.name in _INFINITE, _IN_PLACE.get(ReduceOp(op))
    if name is None or (into.dtype.kind not in "fiu" and not is_narrow):
        return lambda: _copy(rows, op, into, is_narrow)
    combine = getattr(sys.modules["torch"] if is_narrow else np, name)
    held, made = ([tensor_of(row) for row in rows], tensor_of(into)) if is_narrow else (rows, into)
    flat = [each.reshape(-1) for each in (*held, made, into)]
    starts = range(0, into.size, BLOCK)
    blocks = [[each[start : start + BLOCK] for each in flat] for start in starts]
    found = [(given, result, _nan_finder(elements)) for *given, result, elements in blocks]
    as_tensor = tensor_of(into)

    def reduce() -> None:
        has_nan = False
        with np.errstate(all="ignore"):
            for (total, *others), result, finds_nan in found:
                for row in others:
                    total = combine(total, row, out=result if row is others[-1] else total)
                has_nan = has_nan or finds_nan()
        if has_nan:
            settled(as_tensor)

    return reduce


def _copy(rows: Sequence[Any], op: int, into: Any, is_narrow: bool) -> None:
    if not is_narrow:
        into[...] = reduced(rows, op)
        return
    tensor_of(into).copy_(settled(reduced_by_torch([tensor_of(row) for row in rows], op)))


def _nan_finder(array: Any) -> Callable[[], bool]:
    """Return what says whether a NaN is among elements: the bits of one of two bytes are the largest of their sign."""
    if array.dtype.kind in "iu":
        return lambda: False
    if array.dtype.name not in _INFINITE:
        return lambda: bool(np.isnan(array.min()))
    infinite, signed, unsigned = _INFINITE[array.dtype.name], array.view(np.int16), array.view(np.uint16)
    return lambda: bool(signed.max() > infinite or unsigned.max() > infinite + (1 << 15))


def tensor_of(array: Any) -> Any:
    """Return the memory of an array as a tensor of torch's with the same elements."""
    torch: Any = sys.modules["torch"]
    name = array.dtype.name
    return (
        torch.from_numpy(array.view(np.int16)).view(getattr(torch, name))
        if name in _INFINITE
        else torch.from_numpy(array)
    )
