"""Tile ops: recorded row by row where they can be, emitted on their own where they cannot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilewright.backends.cpu.emit import FunctionEmitter, lowers
from tilewright.backends.cpu.gemm import GemmSpec, emit_gemm
from tilewright.backends.cpu.groups import Group, LoadNode, ReduceNode, StoreSink, level_of
from tilewright.backends.cpu.llvm import I1, Value, i64
from tilewright.backends.cpu.pack import PackSpec, emit_pack
from tilewright.backends.cpu.traced import Lanes, combine, converted, rounded
from tilewright.backends.cpu.values import Place, Scalar, Tensor, Tile, contiguous, static
from tilewright.core.enums import AtomicType
from tilewright.core.expr import Call
from tilewright.core.types import TileType
from tilewright.dtypes import INDEX, DataType
from tilewright.errors import UnsupportedFeatureError

Bound = dict[str, Any]


def tile_type(call: Call) -> TileType:
    """Return the type of a call that gives a tile."""
    assert isinstance(call.type, TileType)
    return call.type


def broadcast_valid(type_: TileType, operands: Sequence[Any]) -> tuple[Value, ...]:
    """Return the valid part of a broadcast, which the first operand that spans an axis decides."""
    rank = len(type_.shape)
    valid: list[Value] = [i64(1)] * rank
    for axis in range(rank):
        for operand in operands:
            own = axis - (rank - len(operand.type.shape)) if isinstance(operand, Tile) else -1
            if isinstance(operand, Tile) and own >= 0 and operand.type.shape[own] != 1:
                valid[axis] = operand.valid[own]
                break
    return tuple(valid)


@lowers("tile:elementwise", "tile:expansion")
def _elementwise(e: FunctionEmitter, call: Call, bound: Bound) -> Tile:
    """Record an op by its own NumPy meaning."""
    spec, type_ = call.op.spec, tile_type(call)
    names = ("x", "vec") if spec.family == "expansion" else ("x", "lhs", "rhs")
    operands = [bound[name] for name in names if isinstance(bound.get(name), (Tile, Scalar))]
    reference = spec.reference
    assert reference is not None

    def function(*lanes: Lanes) -> Lanes:
        return reference(*(converted(lane, type_.dtype) for lane in lanes))

    dear = spec.ulp > 0
    return e.map(type_, broadcast_valid(type_, operands), function, operands, dear)


@lowers("tile:reduction")
def _reduction(e: FunctionEmitter, call: Call, bound: Bound) -> Tile:
    source: Tile = bound["x"]
    spec = call.op.spec
    assert spec.start is not None
    type_ = tile_type(call)
    if type_.shape[-1] != 1 or source.type.shape[-1] == 1:
        raise UnsupportedFeatureError(f"`{call.op.name}` has no native code yet", spans=[call.span])
    valid = (*source.valid[:-1], i64(1))
    if e.group is not None and e.group.rows != valid[:-1]:
        e.flush()
    node = ReduceNode(level_of(source), operand=source, combine=combine(spec.combine), start=spec.start(type_.dtype))
    return e.record(Tile(type_, valid, node=node))


@lowers("tile.load")
def _load(e: FunctionEmitter, call: Call, bound: Bound) -> Tile:
    """Record a load, cut to what the tensor holds."""
    tensor: Tensor = bound["tensor"]
    type_ = tile_type(call)
    wanted = bound["valid_shape"] or tuple(Scalar(i64(extent), INDEX) for extent in type_.shape)
    starts: list[Value] = []
    valid: list[Value] = []
    for axis, (offset, want, known) in enumerate(zip(bound["offsets"], wanted, type_.valid, strict=True)):
        start, extent = e.index(offset), e.index(want)
        if isinstance(known, int):
            starts.append(start)
            valid.append(i64(known))
            continue
        have = tensor.valid[axis]
        outside = e.b.op("or", e.b.compare("icmp slt", start, i64(0)), e.b.compare("icmp sgt", start, have))
        if not bound["clamp"]:
            e.fail(outside, f"axis {axis}: a load starts outside the tensor", call)
        start = e.b.select(outside, i64(0), start)
        left = e.b.select(outside, i64(0), e.b.op("sub", have, start))
        extent = e.b.intrinsic("llvm.smax", e.b.intrinsic("llvm.smin", extent, left), i64(0))
        starts.append(start)
        valid.append(e.b.intrinsic("llvm.smin", extent, i64(type_.shape[axis])))
    if e.group is not None and any(s.tensor.root is tensor.root for s in e.group.stores):
        e.flush()
    tile = Tile(type_, tuple(valid), node=LoadNode(0, tensor=tensor, offsets=tuple(starts)))
    return e.record(tile)


@lowers("tile.store")
def _store(e: FunctionEmitter, call: Call, bound: Bound) -> Tensor:
    """Record a store; one that does not fit is refused and writes nothing."""
    write(e, call, bound["tile"], bound["output_tensor"], bound["offsets"], bound["atomic"])
    return bound["output_tensor"]


def write(
    e: FunctionEmitter, call: Call, tile: Tile, tensor: Tensor, offsets: Sequence[Scalar], atomic: AtomicType
) -> None:
    """Record the valid part of a tile being written to a tensor."""
    starts = e.indices(offsets)
    pad = len(tensor.shape) - len(tile.valid)
    fits: Value | None = None
    for start, size, extent in zip(starts, (*(i64(1),) * pad, *tile.valid), tensor.shape, strict=True):
        if _surely_fits(start, size, extent):
            continue
        end = e.b.op("add", start, size)
        inside = e.b.op("and", e.b.compare("icmp sge", start, i64(0)), e.b.compare("icmp sle", end, extent))
        fits = inside if fits is None else e.b.op("and", fits, inside)
    if fits is not None:
        e.fail(e.b.op("xor", fits, Value(I1, "true")), "a store does not fit its tensor", call)
        rows = (e.b.select(fits, tile.valid[0], i64(0)), *tile.valid[1:])
        e.stored(tile)
        tile = Tile(tile.type, rows, place=tile.place)
    group = e.group
    if group is not None and (group.rows != tile.rows or _overlaps(e, tile, tensor)):
        e.flush()
    if e.group is None:
        e.group = Group(tile.rows)
    e.group.stores.append(StoreSink(tile, tensor=tensor, offsets=starts, add=atomic is AtomicType.Add))


def _surely_fits(start: Value, size: Value, extent: Value) -> bool:
    a, b, c = static(start), static(size), static(extent)
    if a == 0 and size == extent:
        return True
    return a is not None and b is not None and c is not None and 0 <= a and a + b <= c


def _overlaps(e: FunctionEmitter, tile: Tile, tensor: Tensor) -> bool:
    """Return whether a recorded load may read what a store changes before that load has run."""
    assert e.group is not None
    loads = [t.node for t in e.group.tiles if isinstance(t.node, LoadNode)]
    return any(node.tensor.root is tensor.root for node in loads)


@lowers("tile.move")
def _move(e: FunctionEmitter, call: Call, bound: Bound) -> Tile:
    return bound["tile"]


@lowers("tile.create")
def _create(e: FunctionEmitter, call: Call, bound: Bound) -> Tile:
    type_ = tile_type(call)
    return e.fresh(type_, tuple(i64(extent) for extent in type_.shape))


@lowers("tile.full", "tile.expands")
def _full(e: FunctionEmitter, call: Call, bound: Bound) -> Tile:
    type_ = tile_type(call)
    value: Scalar = bound.get("value") or bound["scalar"]
    valid = bound["target"].valid if "target" in bound else tuple(i64(extent) for extent in type_.shape)
    return e.map(type_, valid, lambda lane: converted(lane, type_.dtype), [value], False)


@lowers("tile.cast")
def _cast(e: FunctionEmitter, call: Call, bound: Bound) -> Tile:
    type_, source = tile_type(call), bound["x"]
    return e.map(type_, source.valid, conversion(type_.dtype, bound["mode"]), [source], False)


def conversion(dtype: DataType, mode: str | int) -> Callable[[Lanes], Lanes]:
    """Return the instructions that convert lanes as `cast` does."""

    def function(lane: Lanes) -> Lanes:
        if lane.element.is_float() and not dtype.is_float():
            raise UnsupportedFeatureError("casting floats to integers has no native code yet")
        return rounded(converted(lane, dtype), dtype)

    return function


@lowers("tile.transpose_view")
def _transpose_view(e: FunctionEmitter, call: Call, bound: Bound) -> Tile:
    source: Tile = bound["tile"]
    place = e.stored(source)
    *rest, rows, columns = place.strides
    return Tile(
        tile_type(call),
        (*source.valid[:-2], source.valid[-1], source.valid[-2]),
        place=Place(place.pointer, (*rest, columns, rows)),
        owners=source.owners,
    )


@lowers("tile.reshape")
def _reshape(e: FunctionEmitter, call: Call, bound: Bound) -> Tile:
    source: Tile = bound["x"]
    place = packed(e, source)
    type_ = tile_type(call)
    valid = tuple(i64(extent) for extent in type_.shape)
    return Tile(type_, valid, place=Place(place.pointer, contiguous(type_.shape)), owners=source.owners)


def packed(e: FunctionEmitter, tile: Tile) -> Place:
    """Return where a tile lies with its elements one after the other."""
    place = e.stored(tile)
    if place.strides != contiguous(tile.type.shape):
        raise UnsupportedFeatureError("this tile is a turned view and cannot be reshaped")
    return place


@lowers("tile.matmul", "tile.matmul_acc")
def _matmul(e: FunctionEmitter, call: Call, bound: Bound) -> Tile:
    lhs, rhs, acc = bound["lhs"], bound["rhs"], bound.get("acc")
    type_ = tile_type(call)
    target = e.program.target
    a = _matrix(e, lhs)
    b_place = e.stored(rhs)
    result = e.fresh(type_, (lhs.valid[0], rhs.valid[1]))
    assert result.place is not None
    if acc is not None:
        copy(e, acc, result)
    k = lhs.valid[1]
    b_pointer, ldb, rhs_dtype = b_place.pointer, b_place.strides[0], rhs.type.dtype
    if b_place.strides[1] != 1:
        part = e.arena.take(rhs.type.nbytes)
        b_pointer, ldb = e.address(part[0]), rhs.type.shape[1]
        name = emit_pack(e.b.module, PackSpec(target, rhs_dtype, raw=True))
        e.b.invoke(
            name,
            b_place.pointer,
            i64(b_place.strides[0]),
            i64(b_place.strides[1]),
            b_pointer,
            i64(ldb),
            k,
            rhs.valid[1],
        )
        e.arena.give_back(part)
    spec = GemmSpec(target, lhs.type.dtype, rhs_dtype)
    name = emit_gemm(e.b.module, spec)
    accumulate = Value(I1, "true" if acc is not None else "false")
    pointer, row, step = a
    e.b.invoke(
        name,
        pointer,
        row,
        step,
        b_pointer,
        i64(ldb),
        result.place.pointer,
        i64(type_.shape[1]),
        result.valid[0],
        result.valid[1],
        k,
        accumulate,
    )
    return result


def _matrix(e: FunctionEmitter, tile: Tile) -> tuple[Value, Value, Value]:
    """Return where a left operand lies and its strides: a load that only feeds products is read in place."""
    place = e.stored(tile)
    return place.pointer, i64(place.strides[0]), i64(place.strides[1])


def copy(e: FunctionEmitter, source: Tile, target: Tile) -> None:
    """Emit a copy of a tile's valid part into another's place."""
    e.stored(source)
    assert source.place is not None and target.place is not None
    name = emit_pack(e.b.module, PackSpec(e.program.target, source.type.dtype, raw=True))
    rows, columns = source.valid[-2:] if len(source.valid) > 1 else (i64(1), source.valid[-1])
    strides = (i64(0), *(i64(s) for s in source.place.strides))[-2:]
    ld = target.place.strides[-2] if len(target.place.strides) > 1 else target.type.shape[-1]
    e.b.invoke(name, source.place.pointer, *strides, target.place.pointer, i64(ld), rows, columns)
