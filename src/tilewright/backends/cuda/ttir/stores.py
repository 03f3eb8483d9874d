"""Stores: tiles and single elements into tensors; what does not fit is an error and writes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tilewright.backends.cuda.ttir import extents
from tilewright.backends.cuda.ttir.addresses import checked, offsets_of, place, places
from tilewright.backends.cuda.ttir.changes import Change
from tilewright.backends.cuda.ttir.convert import as_element
from tilewright.backends.cuda.ttir.facts import ONE_PRODUCT
from tilewright.backends.cuda.ttir.kernel import Kernel
from tilewright.backends.cuda.ttir.loads import LEAST_ROW, MOST_ROWS, admitted, held, live_of
from tilewright.backends.cuda.ttir.planes import places as block_at
from tilewright.backends.cuda.ttir.recipes import Bound, recipe
from tilewright.backends.cuda.ttir.shape import reshaped
from tilewright.backends.cuda.ttir.text import Value
from tilewright.backends.cuda.ttir.tiles import arithmetic, in_memory, of_rank, spread_to
from tilewright.backends.cuda.ttir.values import Extent, Scalar, Tensor, Tile, working
from tilewright.core.enums import AtomicType
from tilewright.core.expr import Call
from tilewright.core.types import TileType

PAST = "a store does not fit its tensor"
LEAST_BLOCK, MOST_BLOCK = 1 << 14, 1 << 16
"""Bytes that are stored by a descriptor: fewer are not worth it, and more have no place in shared memory."""


@recipe("tile.store")
def _store(k: Kernel, call: Call, bound: Bound) -> Tensor:
    given: Tile = bound["tile"]
    if bound["shapes"] is not None:
        shape = tuple(int(extent.known or 0) for extent in bound["shapes"])
        given = reshaped(k, given, TileType(shape, given.type.dtype, shape), shape)
    return put(k, call, given, bound["output_tensor"], "offsets", bound)


def put(k: Kernel, call: Call, tile: Tile, tensor: Tensor, named: str, bound: Bound) -> Tensor:
    """Write the valid part of a tile into a tensor, at the offsets of that name."""
    t, rank = k.t, len(tensor.shape)
    value = of_rank(k, as_element(t, tile.value, tile.type.dtype, tensor.dtype), rank)
    valid = (*(1,) * (rank - len(tile.valid)), *tile.valid)
    offsets, mask = k.indices(bound[named]), k.inside(value.shape, valid)
    if bound.get("mask") is not None:
        live = live_of(k, value.shape, valid, spread_to(k, bound["mask"].value, value.shape))
        mask = admitted(k, call, live, held(k, value.shape, offsets, value.shape, replace(tensor, valid=tensor.shape)))
    elif (fit := checked(k, call, offsets_of(call, named), PAST, valid, tensor.shape)) is not None:
        whole = t.splat(fit, value.shape)
        mask = whole if mask is None else t.simple("arith.andi", mask, whole)
    k.writes(tensor)
    found = places(k, tensor, value.shape, offsets)
    if bound["atomic"] is AtomicType.Add:
        add_to_memory(k, found, value, mask, tensor)
    else:
        lying = in_memory(k, value, tensor.dtype)
        block = _block(k, tensor, lying, offsets) if mask is None else ""
        t.do(f"tt.store {found}, {lying}{'' if mask is None else f', {mask}'} : {found.type}", block)
    return tensor


def add_to_memory(k: Kernel, found: Value, value: Value, mask: Value | None, tensor: Tensor) -> None:
    """Write that elements are added to those at some addresses of a tensor, where a mask says so."""
    arithmetic(k, tensor.dtype)
    live = k.t.constant("true", "i1", value.shape) if mask is None else mask
    Change("add", tensor, value).applied(k, found, live)


def _block(k: Kernel, tensor: Tensor, value: Value, offsets: Sequence[Extent]) -> str:
    """Return the store of a whole result of products by a descriptor, nothing where there is none."""
    planes = tensor.planes
    if len(k.facts.factors) != ONE_PRODUCT or planes is None or tensor.valid != tensor.shape or planes.apart:
        return ""
    (rows, columns), size = value.shape, tensor.dtype.get_byte()
    if not LEAST_BLOCK <= rows * columns * size <= MOST_BLOCK or max(rows, columns) > MOST_ROWS:
        return ""
    if columns * size < LEAST_ROW:
        return ""
    row, column = block_at(k.t, planes, [extents.held(k.t, offset) for offset in offsets])
    found = planes.descriptor((rows, columns), "")
    k.facts.put.add(tensor.root)
    return f"tt.descriptor_store {found}[{row}, {column}], {value} : {found.element}, {value.type}"


@recipe("tensor.write")
def _write(k: Kernel, call: Call, bound: Bound) -> Tensor:
    tensor = bound["x"]
    ones, indices = (1,) * len(tensor.shape), offsets_of(call, "indices")
    fit = checked(k, call, indices, "an index lies outside its tensor", ones, tensor.shape)
    put_number(k, tensor, k.indices(bound["indices"]), bound["value"], fit)
    return tensor


def put_number(k: Kernel, tensor: Tensor, indices: Sequence[Extent], given: Scalar, fit: Value | None = None) -> None:
    """Write the storing of a number as an element of a tensor, if it fits."""
    k.writes(tensor)
    found = place(k, tensor, indices)
    value = in_memory(k, as_element(k.t, given.value, working(given.dtype), tensor.dtype), tensor.dtype)
    k.t.do(f"tt.store {found}, {value}{'' if fit is None else f', {fit}'} : {found.type}")
