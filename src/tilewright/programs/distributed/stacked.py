"""Stacked tensors: a tensor of the host's with a shard for each of some ranks, where the ranks keep it."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from operator import index
from typing import Any, cast

from tilewright.call.device_tensor import DeviceTensor, element_type


class StackedDeviceTensor:
    """Shards of one shape, one behind the other; a program that slices `x[r]` takes it as `x`."""

    def __init__(self, whole: DeviceTensor, worker_ids: Sequence[int]) -> None:
        self.whole = whole
        self.worker_ids = tuple(worker_ids)
        shape = tuple(whole.shape[1:])
        step = prod(shape) * element_type(whole.dtype).get_byte()
        self.shards = tuple(
            DeviceTensor(whole.data_ptr + number * step, shape, whole.dtype, buffer=whole.buffer)
            for number in range(whole.shape[0])
        )

    @property
    def full_shape(self) -> tuple[int, ...]:
        """The shape with the axis of shards."""
        return tuple(self.whole.shape)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape with the axis of shards."""
        return self.full_shape

    @property
    def dtype(self) -> Any:
        """The element type, as it was given."""
        return self.whole.dtype

    def __getitem__(self, key: Any) -> DeviceTensor:
        """Return a whole shard; TypeError, ValueError or IndexError for any other part."""
        parts: tuple[Any, ...] = cast("tuple[Any, ...]", key) if isinstance(key, tuple) else (key,)
        first, *rest = parts
        if any(part is not ... and part != slice(None) for part in rest):
            raise ValueError("a stacked tensor has whole shards: x[i], x[i, ...] or full slices behind the index")
        if isinstance(first, slice):
            raise TypeError("a stacked tensor is indexed by the number of a shard, got a slice")
        number = index(first)
        if not -len(self.shards) <= number < len(self.shards):
            raise IndexError(f"shard {number} of {len(self.shards)} does not exist")
        return self.shards[number]

    def __repr__(self) -> str:
        return f"StackedDeviceTensor(shape={list(self.full_shape)}, worker_ids={list(self.worker_ids)})"
