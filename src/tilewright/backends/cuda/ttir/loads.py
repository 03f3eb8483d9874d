"""Loads: tiles and single elements out of tensors, as much of them as is there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from tilewright.backends.cuda.ttir import extents
from tilewright.backends.cuda.ttir.addresses import checked, offsets_of, place, places
from tilewright.backends.cuda.ttir.convert import as_element
from tilewright.backends.cuda.ttir.folds import some
from tilewright.backends.cuda.ttir.kernel import Kernel
from tilewright.backends.cuda.ttir.planes import AXES, is_one_plane, plane_at
from tilewright.backends.cuda.ttir.planes import places as block_at
from tilewright.backends.cuda.ttir.recipes import Bound, recipe, refused
from tilewright.backends.cuda.ttir.text import I64, Value, type_of
from tilewright.backends.cuda.ttir.tiles import in_memory, operand, spread_to, tile_type, zeros
from tilewright.backends.cuda.ttir.values import (
    MATRIX_UNITS,
    SMALL_FLOATS,
    Extent,
    Scalar,
    Tensor,
    Tile,
    memory_element,
    padded,
    working,
)
from tilewright.core.build import arguments
from tilewright.core.expr import Call, Expr
from tilewright.core.types import TensorType, TileType
from tilewright.dtypes import BOOL
from tilewright.ops.load import padding

LEAST_ROW, MOST_ROWS = 32, 256
"""Bytes of a block's row at least, and how many elements it has along an axis at most."""


@recipe("tile.load")
def _load(k: Kernel, call: Call, bound: Bound) -> Tile:
    tensor, type_, offsets = bound["tensor"], tile_type(call), k.indices(bound["offsets"])
    source = arguments(call)["tensor"]
    assert isinstance(source, Expr) and isinstance(source.type, TensorType)
    if source.type.layout.is_permuted:
        raise refused("`tile.load` of permuted exponents", call.span)
    if bound["mask"] is not None:
        return _masked(k, call, bound, type_, offsets)
    wanted = k.indices(bound["valid_shape"]) if bound["valid_shape"] is not None else list(type_.shape)
    if bound["pad"] is not None:
        filling = k.number(padding(bound["pad"], type_.dtype), type_.dtype)
        mask = held(k, padded(type_.shape), offsets, wanted, tensor)
        return k.tile(_fetched(k, tensor, type_, offsets, mask, filling), type_, type_.shape)
    valid: list[Extent] = []
    for axis, known in enumerate(type_.valid):
        if not isinstance(known, int):
            known = _found(k, call, axis, offsets[axis], wanted[axis], tensor.valid[axis])
        valid.append(known)
    if call in k.facts.factors and is_one_plane(type_.shape):
        return _of_plane(k, tensor, type_, offsets, valid)
    block = _block(k, tensor, type_, offsets, valid) if call in k.facts.factors else ""
    mask = k.inside(padded(type_.shape), valid)
    return k.tile(_fetched(k, tensor, type_, offsets, mask, described=block), type_, valid, is_zero_outside=True)


def _of_plane(k: Kernel, tensor: Tensor, type_: TileType, offsets: Sequence[Extent], valid: Sequence[Extent]) -> Tile:
    """Return a factor out of one plane of a tensor, loaded as the matrix that it is; one that is not there is empty."""
    t, leading = k.t, len(type_.shape) - AXES
    live, starts = None, [*offsets[:leading]]
    for axis, count in enumerate(valid[:leading]):
        if count != 1:
            there = t.compare("cmpi ne", extents.held(t, count), t.integer(0))
            starts[axis] = t.select(there, extents.held(t, starts[axis]), t.integer(0))
            live = there if live is None else t.simple("arith.andi", live, there)
    plane, matrix = (
        plane_at(k, tensor, starts),
        replace(type_, shape=type_.shape[leading:], valid=type_.shape[leading:]),
    )
    block = _block(k, plane, matrix, offsets[leading:], valid[leading:])
    shape = padded(matrix.shape)
    mask = k.inside(shape, valid[leading:])
    if live is not None:
        mask = live_of(k, shape, valid[leading:], t.splat(live, shape))
    value = _fetched(k, plane, matrix, offsets[leading:], mask, described=block)
    return k.tile(t.shaped("tt.reshape", value, padded(type_.shape)), type_, valid, is_zero_outside=live is None)


def _block(k: Kernel, tensor: Tensor, type_: TileType, offsets: Sequence[Extent], valid: Sequence[Extent]) -> str:
    """Return the load of a factor by a descriptor, nothing where there is none: past the end, it finds zeros."""
    planes = tensor.planes
    if planes is None or not _is_block(type_):
        return ""
    spots: list[Value] = []
    for axis, (start, count, extent) in enumerate(zip(offsets, valid, type_.shape, strict=True)):
        window = None if isinstance(count, int) else k.windows.get(count)
        if count != extent and (window is None or window.want != extent):
            return ""
        if count != extent and axis == 0 and planes.before:
            k.facts.is_ragged = True
            return ""
        spot = extents.held(k.t, start)
        if window is not None:
            spot = k.t.select(window.bad, extents.held(k.t, window.have), spot)
        spots.append(spot)
    k.facts.described.add(tensor.root)
    k.facts.block_bytes += prod(type_.shape) * type_.dtype.get_byte()
    small, (rows, columns) = SMALL_FLOATS.get(tensor.dtype, ""), block_at(k.t, planes, spots)
    found = planes.descriptor((type_.shape[0], type_.shape[1]), small)
    loaded = type_of(small or memory_element(tensor.dtype), type_.shape)
    return f"tt.descriptor_load {found}[{rows}, {columns}] : {found.element} -> {loaded}"


def _is_block(type_: TileType) -> bool:
    """Return whether matrix units and the copy engine take a tile as it is."""
    size, least = type_.dtype.get_byte(), MATRIX_UNITS.get(type_.dtype)
    if least is None or padded(type_.shape) != type_.shape:
        return False
    return all(least <= extent <= MOST_ROWS for extent in type_.shape) and type_.shape[1] * size >= LEAST_ROW


def _masked(k: Kernel, call: Call, bound: Bound, type_: TileType, offsets: Sequence[Extent]) -> Tile:
    """Return what a tensor holds where a mask is True, which has to be there, and a number elsewhere."""
    shape, tensor = padded(type_.shape), bound["tensor"]
    live = live_of(k, shape, type_.shape, spread_to(k, bound["mask"].value, shape))
    live = admitted(k, call, live, held(k, shape, offsets, type_.shape, tensor))
    filling = k.number(padding(0 if bound["pad"] is None else bound["pad"], type_.dtype), type_.dtype)
    return k.tile(_fetched(k, tensor, type_, offsets, live, filling), type_, type_.shape)


def live_of(k: Kernel, shape: Sequence[int], valid: Sequence[Extent], mask: Value | None = None) -> Value:
    """Return which elements of a shape are valid and admitted."""
    found = k.inside(shape, valid)
    if found is None or mask is None:
        return found or mask or k.t.constant("true", "i1", shape)
    return k.t.simple("arith.andi", found, mask)


def admitted(k: Kernel, call: Call, live: Value, there: Value) -> Value:
    """Return which live elements are there; that some are not is noted as an error."""
    t = k.t
    bad = t.simple("arith.andi", live, t.simple("arith.xori", there, t.constant("true", "i1", there.shape)))
    if k.checked:
        k.fail(some(t, bad), "a mask is True for an element that lies outside its tensor", call.span)
    return t.simple("arith.andi", live, there)


def _found(k: Kernel, call: Call, axis: int, start: Extent, want: Extent, have: Extent) -> Extent:
    """Return how much a load finds along an axis; where it starts outside, that is an error and nothing."""
    t = k.t
    first, end, asked = (extents.held(t, extent) for extent in (start, have, want))
    bad = t.compare("cmpi slt", first, t.integer(0))
    if not call.kwargs["clamp"]:
        past = t.compare("cmpi sge", first, end)
        if not isinstance(want, int) or not want:  # of nothing, a load may start at the end
            some = t.compare("cmpi sgt", asked, t.integer(0))
            past = t.simple("arith.andi", past, t.simple("arith.ori", some, t.compare("cmpi ne", first, end)))
        past = t.simple("arith.andi", past, t.compare("cmpi sgt", first, t.integer(0)))
        bad = t.simple("arith.ori", bad, past)
    if not isinstance(want, int):
        beyond = t.compare("cmpi ugt", asked, t.integer(tile_type(call).shape[axis]))
        bad = t.simple("arith.ori", bad, beyond)
    k.fail(bad, f"axis {axis}: a load starts outside its tensor, or asks for more than its tile holds", call.span)
    found = extents.most(t, 0, extents.least(t, want, extents.minus(t, have, start)))
    valid = t.select(bad, t.integer(0), extents.held(t, found))
    k.windows[valid] = extents.Window(start, have, want, bad)
    return valid


def held(k: Kernel, shape: Sequence[int], offsets: Sequence[Extent], wanted: Sequence[Extent], tensor: Tensor) -> Value:
    """Return which elements from some offsets on, which may lie outside, a tensor holds and are asked for."""
    t, found = k.t, k.t.constant("true", "i1", shape)
    for axis, (start, want, have) in enumerate(zip(offsets, wanted, tensor.valid, strict=True)):
        numbers = extents.positions(t, shape, axis)
        spots = t.simple("arith.addi", numbers, t.splat(extents.held(t, start), numbers.shape))
        for test in (
            t.compare("cmpi sge", spots, t.integer(0, I64, numbers.shape)),
            t.compare("cmpi slt", spots, t.splat(extents.held(t, have), numbers.shape)),
            t.compare("cmpi slt", numbers, t.splat(extents.held(t, want), numbers.shape)),
        ):
            found = t.simple("arith.andi", found, extents.spread(t, test, shape))
    return found


def loaded(k: Kernel, tensor: Tensor, type_: TileType) -> Tile:
    """Return all of a tensor of static extents as a tile."""
    return windowed(k, tensor, type_, [0] * len(type_.shape), type_.shape)


def windowed(k: Kernel, tensor: Tensor, type_: TileType, offsets: Sequence[Extent], valid: Sequence[Extent]) -> Tile:
    """Return a window of a tensor, which is there, as a tile of which so much is valid."""
    mask = k.inside(padded(type_.shape), valid)
    return Tile(_fetched(k, tensor, type_, offsets, mask), type_, tuple(valid), is_zero_outside=True)


def _fetched(
    k: Kernel,
    tensor: Tensor,
    type_: TileType,
    offsets: Sequence[Extent],
    mask: Value | None,
    filling: Scalar | None = None,
    described: str = "",
) -> Value:
    """Write a load; what is masked is zero, or a number."""
    k.reads(tensor)
    shape, element = padded(type_.shape), memory_element(tensor.dtype)
    k.facts.load = max(k.facts.load, (prod(shape) * tensor.dtype.get_byte(), tensor.dtype.get_byte()))
    found, masked = places(k, tensor, shape, offsets), ""
    if mask is not None:
        other = zeros(k, Value("", element, shape))
        if filling is not None:
            other = in_memory(k, operand(k, filling, type_), tensor.dtype)
        masked = f", {mask}, {other}"
    plain = f"tt.load {found}{masked} : {found.type}"
    small = SMALL_FLOATS.get(tensor.dtype)
    if small and described:
        floats = k.t.described(described, small, shape)
        value = k.t.op(plain, element, shape, f"tt.bitcast {floats} : {floats.type} -> {type_of(element, shape)}")
        k.t.small[value] = floats
        return value
    value = k.t.op(plain, element, shape, described)
    return k.t.compare("cmpi ne", value, zeros(k, value)) if tensor.dtype == BOOL else value


@recipe("tensor.read")
def _read(k: Kernel, call: Call, bound: Bound) -> Scalar:
    tensor: Tensor = bound["x"]
    ones = (1,) * len(tensor.shape)
    fit = checked(k, call, offsets_of(call, "indices"), "an index lies outside its tensor", ones, tensor.shape)
    k.reads(tensor)
    found, element = place(k, tensor, k.indices(bound["indices"])), memory_element(tensor.dtype)
    masked = "" if fit is None else f", {fit}, {zeros(k, Value('', element))}"
    value = k.t.op(f"tt.load {found}{masked} : {found.type}", element)
    if tensor.dtype == BOOL:
        value = k.t.compare("cmpi ne", value, zeros(k, value))
    return Scalar(as_element(k.t, value, tensor.dtype, working(tensor.dtype)), tensor.dtype)
