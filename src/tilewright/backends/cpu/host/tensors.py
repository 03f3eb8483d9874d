"""Tensor ops: buffers, views and single elements."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from math import prod

from tilewright.backends.cpu.compute.convert import as_element, bits_of, number_of, to_elements
from tilewright.backends.cpu.compute.copies import STORE, clear_bytes, inside, misfit
from tilewright.backends.cpu.compute.nodes import MapNode
from tilewright.backends.cpu.compute.tiles import write
from tilewright.backends.cpu.compute.traced import Lanes
from tilewright.backends.cpu.emit.function import FunctionEmitter, lowers
from tilewright.backends.cpu.emit.groups import Group, StoreSink, operands_of
from tilewright.backends.cpu.emit.handlers import Bound
from tilewright.backends.cpu.emit.llvm_types import literal, memory_type
from tilewright.backends.cpu.emit.values import LoadNode, Scalar, Tensor, Tile, static
from tilewright.backends.cpu.host.heap import allocate, size_of
from tilewright.core.enums import AtomicType
from tilewright.core.expr import Call, constant
from tilewright.core.types import TensorType, TileType
from tilewright.dtypes import INDEX, DataType
from tilewright.errors import UnsupportedFeatureError
from tilewright.native.llvm import I1, Value, i64
from tilewright.ops.broadcast import REPEATED
from tilewright.ops.memory import EXTENTS, MOST
from tilewright.passes.overwritten import is_overwritten

LOCAL = 1 << 20
"""Bytes of a buffer that may lie in its function's arena."""

ANY = 1 << 20
"""Stands for an extent that only the running program knows, in the type of a tile that is never stored."""


def extents_of(type_: TensorType) -> list[int | None]:
    """Return the extents that are known before the program runs."""
    return [extent if isinstance(extent, int) else None for extent in type_.shape]


@lowers("tensor.dim")
def _dim(e: FunctionEmitter, call: Call, bound: Bound) -> Scalar:
    tensor: Tensor = bound["tensor"]
    extents, axis = tensor.valid if bound["valid"] else tensor.shape, int(bound["axis"])
    return Scalar(extents[axis], INDEX)


@lowers("tensor.create", "tensor.full")
def _create(e: FunctionEmitter, call: Call, bound: Bound) -> Tensor:
    shape, dtype = e.indices(bound["shape"]), bound["dtype"]
    value = bound.get("value")
    number = bound.get("init_value")
    clear = (
        value is None
        and number is None
        and not is_overwritten(call, e.last_use.body_of(call), e.program.program, e.defined)
    )
    tensor = buffer(e, call, shape, dtype, clear=clear)
    if number is not None:
        held = constant(number, dtype)
        value = Scalar(literal(held.dtype, held.value, 1), held.dtype)
    if value is not None:
        fill(e, tensor, value)
    return tensor


def buffer(
    e: FunctionEmitter,
    call: Call,
    shape: Sequence[Value],
    dtype: DataType,
    *,
    valid: Sequence[Value] | None = None,
    clear: bool = False,
) -> Tensor:
    """Emit the buffer that a call makes, in the arena where it is small and ends with its function."""
    made = _in_arena(e, call, shape, dtype, clear) or new_tensor(e, _possible(e, call, shape), dtype, clear=clear)
    return made if valid is None else replace(made, valid=tuple(valid))


@contextmanager
def made_for(
    e: FunctionEmitter, call: Call, shape: tuple[Value, ...], dtype: DataType, *, clear: bool = False
) -> Generator[Tensor, None, None]:
    """Give the memory that what is emitted inside fills: a new buffer, or where the store that follows goes."""
    if e.step.target is None:
        yield buffer(e, call, shape, dtype, clear=clear)
    else:
        from tilewright.backends.cpu.compute.store_targets import stored_at

        with stored_at(e, e.step.target, shape, shape) as window:
            yield window


def _in_arena(e: FunctionEmitter, call: Call, shape: Sequence[Value], dtype: DataType, clear: bool) -> Tensor | None:
    """Return a buffer that ends with its function, where it is small and nobody reads it later."""
    known = [extent for extent in map(static, shape) if extent is not None]
    nbytes = prod(known) * dtype.get_byte()
    is_local = e.program.footprints.aliases(e.function.name).is_local
    if len(known) < len(shape) or not 0 < nbytes <= LOCAL or not is_local(call):
        return None
    from tilewright.backends.cpu.compute.addresses import packed_strides

    pointer = e.address(e.arena.take(nbytes)[0])
    if clear:
        clear_bytes(e, pointer, nbytes)
    return Tensor(pointer, tuple(shape), packed_strides(e, shape)[0], tuple(shape), dtype, object())


def _possible(e: FunctionEmitter, call: Call, shape: Sequence[Value]) -> tuple[Value, ...]:
    """Return extents; negative ones and far too many elements are an error and mean none."""
    if not e.checked or all(static(extent) is not None for extent in shape):
        return tuple(shape)
    bad, count = Value(I1, "false"), i64(1)
    for extent in shape:
        bad = e.b.op("or", bad, e.b.compare("icmp ugt", extent, i64(MOST)))
        count = e.b.op("mul", count, e.b.intrinsic("llvm.umin", extent, i64(MOST)))
        bad = e.b.op("or", bad, e.b.compare("icmp ugt", count, i64(MOST)))
        count = e.b.intrinsic("llvm.umin", count, i64(1 << 22))
    e.fail(bad, f"no tensor can have these extents\n{EXTENTS}", call)
    return tuple(extent if static(extent) is not None else e.b.select(bad, i64(0), extent) for extent in shape)


def new_tensor(e: FunctionEmitter, shape: Sequence[Value], dtype: DataType, *, clear: bool = False) -> Tensor:
    """Emit a new buffer that lives until the program's caller has read its results.

    One that is not written at once is cleared: nobody ever sees what memory held before.
    """
    known = [max(extent, 1) for extent in map(static, shape) if extent is not None]
    if prod(known) > MOST:
        raise UnsupportedFeatureError(f"no tensor can have extents {known}", spans=[e.at.span])
    from tilewright.backends.cpu.compute.addresses import packed_strides

    strides, _ = packed_strides(e, shape)
    pointer = allocate(e, size_of(e, shape, dtype.get_byte()), clear)
    return Tensor(pointer, tuple(shape), strides, tuple(shape), dtype, object())


def fill(e: FunctionEmitter, tensor: Tensor, value: Scalar) -> None:
    """Emit the writing of one number to every element."""
    node = MapNode((value,), function=to_elements(tensor.dtype))
    put(e, Tile(stand_in(tensor.shape, tensor.dtype), tensor.shape, node=node), tensor)


def stand_in(shape: Sequence[Value], dtype: DataType) -> TileType:
    """Return the type of a tile that is computed row by row and never stored, whatever its extents."""
    extents = tuple(ANY if (known := static(v)) is None else known for v in shape)
    return TileType(extents, dtype, extents)


def put(
    e: FunctionEmitter,
    tile: Tile,
    tensor: Tensor,
    offsets: Sequence[Value] | None = None,
    *,
    fits: Value | None = None,
    add: bool = False,
) -> None:
    """Emit the computation of a tile, and of the tiles it is made of, straight into a tensor or added to it.

    What does not fit writes nothing.
    """
    starts = tuple(offsets or (i64(0),) * len(tensor.shape))
    sink = StoreSink(tile, tensor=tensor, offsets=starts, add=add, atomic=e.is_concurrent, fits=fits)
    e.run(Group(tile.rows, _recorded(tile), [sink]))


def _recorded(tile: Tile) -> list[Tile]:
    return [*(t for o in operands_of(tile) for t in _recorded(o)), tile]


def loaded(tensor: Tensor, valid: Sequence[Value]) -> Tile:
    """Return a tile that reads a tensor from its start as it is computed."""
    node = LoadNode(tensor=tensor, offsets=(i64(0),) * len(tensor.shape))
    return Tile(stand_in(valid, tensor.dtype), tuple(valid), node=node)


@lowers("tensor.assemble")
def _assemble(e: FunctionEmitter, call: Call, bound: Bound) -> Tensor:
    source, target = bound["source"], bound["target"]
    if isinstance(source, Tile):
        write(e, call, source, target, bound["offset"], bound["atomic"])
        return target
    copy_tensor(e, call, source, target, e.indices(bound["offset"]), add=bound["atomic"] is AtomicType.Add)
    return target


def copy_tensor(
    e: FunctionEmitter, call: Call, source: Tensor, target: Tensor, starts: Sequence[Value], *, add: bool = False
) -> None:
    """Emit a copy of a tensor's valid part, or its sum with what is there; one that does not fit writes nothing."""
    pad = len(target.shape) - len(source.shape)
    sizes = (*(i64(1),) * pad, *source.valid)
    fits = inside(e, starts, sizes, target.shape)
    if fits is not None:
        exact = misfit(e, STORE, starts, sizes, target.shape)
        e.fail(e.negated(fits), "a store does not fit its tensor", call, exact)
    strides = (*(i64(0),) * pad, *source.strides)
    whole = Tensor(source.pointer, sizes, strides, sizes, source.dtype, source.root)
    if source.root is target.root:
        apart = new_tensor(e, sizes, source.dtype)
        put(e, loaded(whole, sizes), apart)
        whole = apart
    put(e, loaded(whole, sizes), target, starts, fits=fits, add=add)


@lowers("tensor.expand_clone")
def _expand_clone(e: FunctionEmitter, call: Call, bound: Bound) -> Tensor:
    """Emit a copy of a tensor into another, what there is one of repeated; one that does not fit writes nothing."""
    source, target = bound["src"], bound["target"]
    if source.root is target.root:
        apart = new_tensor(e, source.valid, source.dtype)
        put(e, loaded(source, source.valid), apart)
        source = replace(source, pointer=apart.pointer, strides=apart.strides)
    fits, sizes, strides = Value(I1, "true"), list(source.valid), list(source.strides)
    for axis, (have, want) in enumerate(zip(source.shape, target.shape, strict=True)):
        if have == want:
            continue
        single = e.b.compare("icmp eq", have, i64(1))
        if static(have) is None:
            strides[axis] = e.b.select(single, i64(0), strides[axis])
        sizes[axis] = want if static(have) == 1 else e.b.select(single, want, sizes[axis])
        fits = e.b.op("and", fits, e.b.op("or", single, e.b.compare("icmp eq", have, want)))
    if e.checked and fits.ref != "true":
        e.fail(e.negated(fits), f"a tensor cannot be repeated to fill another\n{REPEATED}", call)
        sizes = [e.b.select(fits, size, i64(0)) for size in sizes]
    read = tuple(i64(1) if static(have) == 1 else size for have, size in zip(source.shape, sizes, strict=True))
    node = MapNode((loaded(replace(source, strides=tuple(strides)), read),), function=to_elements(target.dtype))
    put(e, Tile(stand_in(sizes, target.dtype), tuple(sizes), node=node), target)
    return target


@lowers("tensor.read")
def _read(e: FunctionEmitter, call: Call, bound: Bound) -> Scalar:
    e.follow()
    tensor: Tensor = bound["x"]
    pointer = element_address(e, call, tensor, bound["indices"])
    raw = e.b.load(memory_type(tensor.dtype), pointer, tensor.dtype.get_byte())
    return Scalar(number_of(e.b, raw, tensor.dtype).value, tensor.dtype)


@lowers("tensor.write")
def _write(e: FunctionEmitter, call: Call, bound: Bound) -> Tensor:
    e.flush()
    tensor: Tensor = bound["x"]
    pointer = element_address(e, call, tensor, bound["indices"])
    given: Scalar = bound["value"]
    lane = as_element(Lanes(e.b, given.value, given.dtype), tensor.dtype)
    e.b.store(bits_of(lane), pointer, tensor.dtype.get_byte())
    return tensor


def element_address(e: FunctionEmitter, call: Call, tensor: Tensor, indices: Sequence[Scalar]) -> Value:
    """Return the address of one element; an index outside the tensor is an error and means a word nobody reads."""
    numbers = e.indices(indices)
    fits = inside(e, numbers, (i64(1),) * len(numbers), tensor.shape)
    from tilewright.backends.cpu.compute.addresses import moved

    pointer = moved(e, tensor, numbers)
    if fits is None:
        return pointer
    exact = misfit(e, "index {2} lies outside", numbers, (i64(1),) * len(numbers), tensor.shape)
    e.fail(e.negated(fits), "an index lies outside its tensor", call, exact)
    part = e.arena.take(8)
    spare = e.address(part[0])
    e.arena.give_back(part)
    return e.b.select(fits, pointer, spare)
