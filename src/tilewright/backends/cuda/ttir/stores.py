"""Stores: tiles and single elements into tensors; what does not fit is an error and writes nothing."""

from __future__ import annotations

from dataclasses import replace

from tilewright.backends.cuda.ttir.addresses import checked, offsets_of, place, places
from tilewright.backends.cuda.ttir.changes import Change
from tilewright.backends.cuda.ttir.convert import as_element
from tilewright.backends.cuda.ttir.kernel import Kernel
from tilewright.backends.cuda.ttir.loads import admitted, held, live_of, loaded
from tilewright.backends.cuda.ttir.recipes import Bound, recipe, refused
from tilewright.backends.cuda.ttir.shape import reshaped
from tilewright.backends.cuda.ttir.tiles import arithmetic, in_memory, of_rank, spread_to
from tilewright.backends.cuda.ttir.values import Tensor, Tile, working
from tilewright.core.enums import AtomicType
from tilewright.core.expr import Call
from tilewright.core.types import TileType

PAST = "a store does not fit its tensor"


@recipe("tile.store")
def _store(k: Kernel, call: Call, bound: Bound) -> Tensor:
    given = bound["tile"]
    if bound["shapes"] is not None and isinstance(given, Tile):
        shape = tuple(int(extent.known or 0) for extent in bound["shapes"])
        given = reshaped(k, given, TileType(shape, given.type.dtype, shape), shape)
    return _put(k, call, given, bound["output_tensor"], "offsets", bound)


@recipe("tensor.assemble")
def _assemble(k: Kernel, call: Call, bound: Bound) -> Tensor:
    return _put(k, call, bound["source"], bound["target"], "offset", bound)


def _put(k: Kernel, call: Call, given: object, tensor: Tensor, named: str, bound: Bound) -> Tensor:
    """Write the valid part of a tile into a tensor, at the offsets of that name."""
    t, rank, tile = k.t, len(tensor.shape), _as_tile(k, call, given)
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
        live = t.constant("true", "i1", value.shape) if mask is None else mask
        arithmetic(k, tensor.dtype)
        Change("add", tensor, value).applied(k, found, live)
    else:
        lying = in_memory(k, value, tensor.dtype)
        t.do(f"tt.store {found}, {lying}{'' if mask is None else f', {mask}'} : {found.type}")
    return tensor


def _as_tile(k: Kernel, call: Call, given: object) -> Tile:
    """Return what is stored as a tile: all of a tensor of static extents is one."""
    if isinstance(given, Tensor):
        shape = tuple(extent for extent in given.shape if isinstance(extent, int))
        if given.valid == shape:
            return loaded(k, given, TileType(shape, given.dtype, shape))
    if not isinstance(given, Tile):
        raise refused(f"`{call.op.name}` of a tensor of unknown extents, or of a comparison's bits", call.span)
    return given


@recipe("tensor.write")
def _write(k: Kernel, call: Call, bound: Bound) -> Tensor:
    tensor, given = bound["x"], bound["value"]
    ones, indices = (1,) * len(tensor.shape), offsets_of(call, "indices")
    fit = checked(k, call, indices, "an index lies outside its tensor", ones, tensor.shape)
    k.writes(tensor)
    found = place(k, tensor, k.indices(bound["indices"]))
    value = in_memory(k, as_element(k.t, given.value, working(given.dtype), tensor.dtype), tensor.dtype)
    k.t.do(f"tt.store {found}, {value}{'' if fit is None else f', {fit}'} : {found.type}")
    return tensor
