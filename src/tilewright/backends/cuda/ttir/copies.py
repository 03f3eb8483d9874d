"""Copies: tensors into others, some elements at a time; blocks of a launch that does nothing else share them."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.backends.cuda.ttir import extents
from tilewright.backends.cuda.ttir.addresses import checked, offsets_of, place
from tilewright.backends.cuda.ttir.convert import as_element
from tilewright.backends.cuda.ttir.kernel import Kernel
from tilewright.backends.cuda.ttir.picks import split
from tilewright.backends.cuda.ttir.recipes import Bound, recipe, refused
from tilewright.backends.cuda.ttir.stores import PAST, add_to_memory, put
from tilewright.backends.cuda.ttir.text import I64, Value
from tilewright.backends.cuda.ttir.tiles import in_memory, zeros
from tilewright.backends.cuda.ttir.values import Extent, Tensor, Tile, memory_element
from tilewright.core.enums import AtomicType
from tilewright.core.expr import Call
from tilewright.dtypes import BOOL
from tilewright.ops.broadcast import REPEATED

TOGETHER = 1024
"""How many elements are copied at once."""


@recipe("tensor.assemble")
def _assemble(k: Kernel, call: Call, bound: Bound) -> Tensor:
    source, target = bound["source"], bound["target"]
    if isinstance(source, Tile):
        return put(k, call, source, target, "offset", bound)
    _copy(k, call, source, target, bound, add=bound["atomic"] is AtomicType.Add)
    return target


def _copy(k: Kernel, call: Call, source: Tensor, target: Tensor, bound: Bound, *, add: bool) -> None:
    """Write a copy of a tensor's valid part to some offsets of another, or its sum with what is there."""
    pad = len(target.shape) - len(source.shape)
    sizes: list[Extent] = [*(1,) * pad, *source.valid]
    fit = checked(k, call, offsets_of(call, "offset"), PAST, sizes, target.shape)
    strides: list[Extent] = [*(0,) * pad, *source.strides]
    to = place(k, target, k.indices(bound["offset"]))
    _copied(k, call, (source, source.pointer, strides), (target, to), sizes, fit, add=add)


@recipe("tensor.expand_clone")
def _expand_clone(k: Kernel, call: Call, bound: Bound) -> Tensor:
    """Write a copy of a tensor into another, what there is one of repeated; one that does not fit writes nothing."""
    t, source, target = k.t, bound["src"], bound["target"]
    fit: Value | None = None
    sizes, strides = list(source.valid), list(source.strides)
    for axis, (have, want) in enumerate(zip(source.shape, target.shape, strict=True)):
        if have == want:
            continue
        single = t.compare("cmpi eq", extents.held(t, have), t.integer(1))
        strides[axis] = t.select(single, t.integer(0), extents.held(t, strides[axis]))
        sizes[axis] = t.select(single, extents.held(t, want), extents.held(t, sizes[axis]))
        same = t.compare("cmpi eq", extents.held(t, have), extents.held(t, want))
        here = t.simple("arith.ori", single, same)
        fit = here if fit is None else t.simple("arith.andi", fit, here)
    if fit is not None:
        broken = t.simple("arith.xori", fit, t.constant("true", "i1"))
        k.fail(broken, f"a tensor cannot be repeated to fill another\n{REPEATED}", call.span)
    _copied(k, call, (source, source.pointer, strides), (target, target.pointer), sizes, fit, add=False)
    return target


def _copied(
    k: Kernel,
    call: Call,
    source: tuple[Tensor, Value, Sequence[Extent]],
    target: tuple[Tensor, Value],
    sizes: Sequence[Extent],
    fit: Value | None,
    *,
    add: bool,
) -> None:
    t, (given, start, apart), (into, to) = k.t, source, target
    if given.root is into.root:
        raise refused("a copy of a tensor into itself", call.span, "copy it into a new tensor first")
    k.reads(given)
    k.writes(into)
    k.facts.in_rows |= {given.root, into.root}
    count: Extent = 1
    for size in sizes:
        count = extents.times(t, count, size)
    if fit is not None:
        count = t.select(fit, extents.held(t, count), t.integer(0))
    first, by = k.share or (0, 1)
    low, high, step = (
        extents.held(t, end) for end in (extents.times(t, first, TOGETHER), count, extents.times(t, by, TOGETHER))
    )
    turn = t.fresh(I64)
    with t.block(f"scf.for {turn} = {low} to {high} step {step} : i64 {{"):
        numbers = t.simple("arith.addi", extents.positions(t, (TOGETHER,), 0), t.splat(turn, (TOGETHER,)))
        inside = t.compare("cmpi slt", numbers, t.splat(high, (TOGETHER,)))
        places = split(t, numbers, sizes)
        found, there = _addresses(k, start, places, apart), _addresses(k, to, places, into.strides)
        element = memory_element(given.dtype)
        other = zeros(k, Value("", element, (TOGETHER,)))
        value = t.op(f"tt.load {found}, {inside}, {other} : {found.type}", element, (TOGETHER,))
        if given.dtype != into.dtype:
            value = t.compare("cmpi ne", value, zeros(k, value)) if given.dtype == BOOL else value
            value = in_memory(k, as_element(t, value, given.dtype, into.dtype), into.dtype)
        if add:
            add_to_memory(k, there, value, inside, into)
        else:
            t.do(f"tt.store {there}, {value}, {inside} : {there.type}")


def _addresses(k: Kernel, start: Value, places: Sequence[Value], strides: Sequence[Extent]) -> Value:
    t, found = k.t, k.t.splat(start, places[0].shape)
    for numbers, stride in zip(places, strides, strict=True):
        steps = t.simple("arith.muli", numbers, t.splat(extents.held(t, stride), numbers.shape))
        found = t.op(f"tt.addptr {found}, {steps} : {found.type}, {steps.type}", found.element, found.shape)
    return found
