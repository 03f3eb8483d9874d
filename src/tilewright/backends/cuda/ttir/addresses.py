"""Addresses: where the elements of a tensor lie, and whether a part of it does.

An address is that of the first element, a scalar of 64 bits, and the distance from there.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.backends.cuda.ttir import extents
from tilewright.backends.cuda.ttir.kernel import Kernel
from tilewright.backends.cuda.ttir.text import Value
from tilewright.backends.cuda.ttir.values import Extent, Tensor
from tilewright.core.build import arguments
from tilewright.core.expr import Call, Expr, MakeTuple
from tilewright.core.extents import fits


def place(k: Kernel, tensor: Tensor, offsets: Sequence[Extent]) -> Value:
    """Return the address of one element."""
    first: Extent = 0
    for offset, stride in zip(offsets, tensor.strides, strict=True):
        first = extents.plus(k.t, first, extents.times(k.t, offset, stride))
    if first == 0:
        return tensor.pointer
    start, pointer = extents.held(k.t, first), tensor.pointer
    return k.t.op(f"tt.addptr {pointer}, {start} : {pointer.type}, i64", pointer.element)


def places(k: Kernel, tensor: Tensor, shape: Sequence[int], offsets: Sequence[Extent]) -> Value:
    """Return the address of each element of a shape, the first at some offsets."""
    t, apart = k.t, None
    if shape and shape[-1] > 1:
        k.facts.in_rows.add(tensor.root)
    for axis, stride in enumerate(tensor.strides):
        if shape[axis] == 1:
            continue
        steps = extents.positions(t, shape, axis)
        if stride != 1:
            steps = t.simple("arith.muli", steps, t.splat(extents.held(t, stride), steps.shape))
        steps = extents.spread(t, steps, shape)
        apart = steps if apart is None else t.simple("arith.addi", apart, steps)
    first = t.splat(place(k, tensor, offsets), shape)
    if apart is None:
        return first
    return t.op(f"tt.addptr {first}, {apart} : {first.type}, {apart.type}", first.element, shape)


def checked(
    k: Kernel, call: Call, named: Sequence[Expr], message: str, sizes: Sequence[Extent], shape: Sequence[Extent]
) -> Value | None:
    """Return whether the part of a shape at some offsets is inside it, None where that is certain.

    Where it is not, the message is noted.
    """
    t, found = k.t, None
    for expr, size, extent in zip(named, sizes, shape, strict=True):
        known = size if isinstance(size, int) else None, extent if isinstance(extent, int) else None
        if fits(expr, *known):
            continue
        start = k.index(k.scalar(expr))
        first = t.compare("cmpi sge", extents.held(t, start), t.integer(0))
        last = t.compare("cmpi sle", extents.held(t, extents.plus(t, start, size)), extents.held(t, extent))
        fit = t.simple("arith.andi", first, last)
        found = fit if found is None else t.simple("arith.andi", found, fit)
    if found is not None:
        k.fail(t.simple("arith.xori", found, t.constant("true", "i1")), message, call.span)
    return found


def offsets_of(call: Call, name: str) -> Sequence[Expr]:
    """Return the offsets that a call is given by a name, as they are written."""
    written = arguments(call)[name]
    assert isinstance(written, MakeTuple)
    return written.elements
