"""Stores: tiles and single elements into tensors; what does not fit is an error and writes nothing."""

from __future__ import annotations

from tilewright.backends.cuda.ttir.addresses import checked, offsets_of, place, places
from tilewright.backends.cuda.ttir.convert import as_element
from tilewright.backends.cuda.ttir.kernel import Kernel
from tilewright.backends.cuda.ttir.recipes import Bound, recipe, refused
from tilewright.backends.cuda.ttir.shape import reshaped
from tilewright.backends.cuda.ttir.text import Value
from tilewright.backends.cuda.ttir.tiles import in_memory, of_rank
from tilewright.backends.cuda.ttir.values import Tensor, Tile, working
from tilewright.core.enums import AtomicType
from tilewright.core.expr import Call
from tilewright.core.types import TileType
from tilewright.dtypes import BF16, FP16, FP32, INT32, DataType

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


def _put(k: Kernel, call: Call, tile: object, tensor: Tensor, named: str, bound: Bound) -> Tensor:
    """Write the valid part of a tile into a tensor, at the offsets of that name."""
    if not isinstance(tile, Tile):
        raise refused(f"`{call.op.name}` of a tensor, or of a comparison's bits", call.span)
    t, rank = k.t, len(tensor.shape)
    value = of_rank(k, as_element(t, tile.value, tile.type.dtype, tensor.dtype), rank)
    valid = (*(1,) * (rank - len(tile.valid)), *tile.valid)
    mask = k.inside(value.shape, valid)
    fit = checked(k, call, offsets_of(call, named), PAST, valid, tensor.shape)
    if fit is not None:
        whole = t.splat(fit, value.shape)
        mask = whole if mask is None else t.simple("arith.andi", mask, whole)
    k.writes(tensor)
    found, held = places(k, tensor, value.shape, k.indices(bound[named])), in_memory(k, value, tensor.dtype)
    if bound["atomic"] is AtomicType.Add:
        _add(k, call, found, held, mask, tensor.dtype)
    else:
        t.do(f"tt.store {found}, {held}{'' if mask is None else f', {mask}'} : {found.type}")
    return tensor


def _add(k: Kernel, call: Call, found: Value, value: Value, mask: Value | None, dtype: DataType) -> None:
    if dtype not in (FP32, FP16, BF16, INT32):
        raise refused(f"an atomic store of {dtype} elements", call.span)
    all_of_it = k.t.constant("true", "i1", value.shape) if mask is None else mask
    types = f"({found.type}, {value.type}, {all_of_it.type}) -> {value.type}"
    kind = "fadd" if dtype.is_float() else "add"
    text = f"tt.atomic_rmw {kind}, relaxed, gpu, {found}, {value}, {all_of_it} : {types}"
    k.t.op(text, value.element, value.shape)


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
