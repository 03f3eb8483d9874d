"""Planes: views of tensors by the descriptors of the whole, and which rows of those their elements are in."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from tilewright.backends.cuda.ttir import extents
from tilewright.backends.cuda.ttir.addresses import place
from tilewright.backends.cuda.ttir.kernel import Kernel
from tilewright.backends.cuda.ttir.text import I32, Text, Value
from tilewright.backends.cuda.ttir.values import Extent, Planes, Tensor

AXES = 2
"""How many axes a plane has."""


def chosen(
    source: Tensor, starts: Sequence[Extent], sizes: Sequence[Extent], valid: Sequence[Extent], dropped: Collection[int]
) -> Planes | None:
    """Return the planes of a window that is inside its tensor; None where it has no more than a part of one."""
    planes, leading = source.planes, len(source.shape) - AXES
    if planes is None or any(axis >= leading for axis in dropped):
        return None
    if any(start != 0 for start in starts[leading:]) or tuple(sizes[leading:]) != source.shape[leading:]:
        return None
    if tuple(valid[leading:]) != source.valid[leading:]:
        return None
    before = zip(starts[:leading], planes.apart, strict=True)
    apart = (rows for axis, rows in enumerate(planes.apart) if axis not in dropped)
    return Planes(planes.descriptor, tuple(apart), (*planes.before, *before))


def is_one_plane(shape: Sequence[int]) -> bool:
    """Return whether a tile of more than two axes is a matrix all the same."""
    return len(shape) > AXES and all(extent == 1 for extent in shape[:-AXES])


def plane_at(k: Kernel, tensor: Tensor, starts: Sequence[Extent]) -> Tensor:
    """Return a plane of a tensor, which is there."""
    at, leading = (*starts, 0, 0), range(len(starts))
    shape, strides, valid = (each[-AXES:] for each in (tensor.shape, tensor.strides, tensor.valid))
    planes = chosen(tensor, at, tensor.shape, tensor.valid, leading)
    return replace(tensor, pointer=place(k, tensor, at), shape=shape, strides=strides, valid=valid, planes=planes)


def places(t: Text, planes: Planes, offsets: Sequence[Value]) -> list[Value]:
    """Return where a block of a plane is, as a descriptor counts that."""
    row, column = offsets
    for start, apart in planes.before:
        if start != 0:
            row = t.simple("arith.addi", row, extents.held(t, extents.times(t, start, apart())))
    return [t.convert("arith.trunci", each, I32) for each in (row, column)]
