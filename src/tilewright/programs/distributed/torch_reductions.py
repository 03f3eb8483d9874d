"""Reductions by torch: what elements of all ranks make, to the bits that `ops/collectives.py` says."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from tilewright.core.enums import ReduceOp
from tilewright.ops.collectives import COMBINED


def reduced_by_torch(elements: Sequence[Any], op: int) -> Any:
    """Return what tensors of all ranks make in their order, rounded after each of them; its NaNs are not `settled`."""
    torch: Any = sys.modules["torch"]
    result = elements[0]
    for each in elements[1:]:
        result = COMBINED[ReduceOp(op)](torch, result, each)
    return result.clone() if result is elements[0] else result


def settled(tensor: Any) -> Any:
    """Return a tensor in which every NaN has become the same one."""
    if tensor.is_floating_point():
        tensor.masked_fill_(tensor != tensor, float("nan"))  # noqa: PLR0124
    return tensor
