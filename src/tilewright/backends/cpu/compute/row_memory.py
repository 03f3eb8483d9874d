"""Rows in memory: where the elements of a row lie, and how several columns of them are read and written together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field

from tilewright.backends.cpu.compute.lines import Lines
from tilewright.backends.cpu.compute.storage import fetch, load, store
from tilewright.backends.cpu.compute.traced import Lanes, from_memory, rounded, to_memory
from tilewright.backends.cpu.emit.groups import SaveSink, Sink, StoreSink
from tilewright.backends.cpu.emit.llvm_types import memory_type, repeated
from tilewright.backends.cpu.emit.signature import FEW
from tilewright.backends.cpu.emit.values import LoadNode, Place, Scalar, Tensor, Tile, static
from tilewright.dtypes import DataType
from tilewright.native.llvm import Builder, Value, element, i64, lanes, mangled, shuffled, vector
from tilewright.records import mutable

MASKED = 16
"""How many lanes those vectors have of which any are stored at no cost."""
AHEAD = 1024
"""Bytes between what is written of a line and the line that is asked for, to be written in part."""


@mutable
class Row:
    """One row being emitted: its indices, and what has been computed once for it."""

    indices: tuple[Value, ...]
    starts: dict[Tile | Sink, Value] = field(default_factory=dict["Tile | Sink", Value])
    """Where the row begins of what a tile is loaded from, and of what a sink writes to."""
    scalars: dict[Tile, Lanes] = field(default_factory=dict[Tile, Lanes])
    saved: dict[Tile, Place] = field(default_factory=dict[Tile, Place])
    there: Value | None = None
    """Of several rows at once, which there are; None: all."""


@mutable
class Spread:
    """What is the same in all columns of a row, in every lane: emitted at a mark ahead of the loop over columns."""

    mark: int
    doubts: list[Value] | None = None
    """Where the loop goes wrong, of which there is another then; None: nowhere."""
    is_exact: bool = False
    """Whether nothing is made of what is the same, but for the thing itself."""
    lanes: dict[Tile | Scalar, Lanes] = field(default_factory=dict["Tile | Scalar", Lanes])


@mutable
class Pass:
    """Several columns of a row being emitted together, or several rows of a column."""

    row: Row
    column: Value
    count: int = 1
    mask: Value | None = None
    spread: Spread | None = None
    known: dict[Tile, Lanes] = field(default_factory=dict[Tile, Lanes])
    admitted: dict[Tile, Value] = field(default_factory=dict[Tile, Value])
    """Which elements of a tile a mask lets through, where one does."""
    down: Callable[[Builder, Tile, Pass], Lanes] | None = None
    """What gives the elements of a tile where a vector holds those of several rows, in one column."""
    is_run: bool = False
    """Whether rows follow each other as the columns of one."""


def tile_address(b: Builder, tile: Tile, place: Place, here: Pass) -> Value:
    """Return where a tile's elements at the current row and column lie; axes of one element stay where they are."""
    shape = (*tile.type.shape[:-1], 0) if here.is_run else tile.type.shape
    indices = (*here.row.indices[len(here.row.indices) - len(shape) + 1 :], here.column)
    offset: Value = i64(0)
    for index, extent, stride in zip(indices, shape, place.strides, strict=True):
        if extent != 1:
            offset = _plus(b, offset, times(b, index, i64(stride)))
    return _moved(b, place.pointer, offset, tile.type.dtype)


def tensor_address(b: Builder, of: Tile | StoreSink, here: Pass) -> Value:
    """Return where what a tile is loaded from, or what a sink writes to, lies at the current row and column."""
    tensor = window(of)[0]
    start = here.row.starts.get(of) or row_start(b, of, here.row)
    return _moved(b, start, times(b, here.column, tensor.strides[-1]), tensor.dtype)


def window(of: Tile | StoreSink) -> tuple[Tensor, tuple[Value, ...]]:
    """Return the tensor that a tile is loaded from, or that a sink writes to, and from where on."""
    source = of.node if isinstance(of, Tile) else of
    assert isinstance(source, (LoadNode, StoreSink))
    return source.tensor, source.offsets


def row_start(b: Builder, of: Tile | StoreSink, row: Row) -> Value:
    """Return where a tile's elements at a row begin in its tensor; a tile of one row serves every row."""
    (tensor, offsets), tile = window(of), of if isinstance(of, Tile) else of.tile
    indices = own_indices(row, tile.type.shape, len(tensor.shape))
    offset: Value = i64(0)
    for index, start, stride in zip(indices, offsets, tensor.strides, strict=True):
        offset = _plus(b, offset, times(b, _plus(b, index, start), stride))
    return _moved(b, tensor.pointer, offset, tensor.dtype)


def own_indices(row: Row, shape: Sequence[int], rank: int) -> list[Value]:
    """Return where a row of a tile is along each axis of a tensor; axes of one element stay where they are."""
    indices = (*row.indices, i64(0))[-len(shape) :]
    own = [i64(0) if extent == 1 else index for index, extent in zip(indices, shape, strict=True)]
    return [*[i64(0)] * rank, *own][len(own) :]


def _moved(b: Builder, pointer: Value, offset: Value, dtype: DataType) -> Value:
    return pointer if static(offset) == 0 else b.offset(pointer, offset, memory_type(dtype))


def _plus(b: Builder, x: Value, y: Value) -> Value:
    if static(x) == 0:
        return y
    return x if static(y) == 0 else b.op("add", x, y)


def times(b: Builder, x: Value, y: Value) -> Value:
    """Return a product, without an instruction where that is possible."""
    if static(y) == 0:
        return y
    if static(y) == 1 or static(x) == 0:
        return x
    return b.op("mul", x, y)


def read(b: Builder, pointer: Value, dtype: DataType, here: Pass, stride: Value) -> Lanes:
    """Emit a load of neighbours, or of elements `stride` apart."""
    type_ = memory_type(dtype)
    whole = vector(type_, here.count)
    step = static(stride)
    if step is not None and 1 < step <= min(FEW, here.count - 1) and here.mask is None:
        return from_memory(b, _every(b, pointer, whole, dtype.get_byte(), step), dtype)
    if step == -1 and here.count > 1:
        return from_memory(b, _backwards(b, pointer, whole, dtype.get_byte(), here.mask), dtype)
    if step != 1 and here.count > 1:
        return from_memory(b, _gathered(b, pointer, type_, here, stride), dtype)
    return from_memory(b, load(b, whole, pointer, dtype.get_byte(), here.mask), dtype)


def read_admitted(b: Builder, pointer: Value, dtype: DataType, here: Pass, stride: Value, other: int) -> Lanes:
    """Emit a load of the elements that the mask admits; the others are a number, given by its bits."""
    word, mask = f"i{8 * dtype.get_byte()}", here.mask
    assert mask is not None
    if here.count == 1:
        raw = b.load(word, b.select(mask, pointer, b.slot(word)), 1)
    elif static(stride) != 1:
        raw = _gathered(b, pointer, word, here, stride)
    else:
        raw = load(b, vector(word, here.count), pointer, dtype.get_byte(), mask)
    raw = b.select(mask, raw, repeated(word, str(other), here.count))
    return from_memory(b, b.convert("bitcast", raw, vector(memory_type(dtype), here.count)), dtype)


def _every(b: Builder, pointer: Value, type_: str, size: int, step: int) -> Value:
    """Emit loads of all elements that lie between the first and the last of some, and take those that are `step` apart.

    The last load begins earlier than where the one before ends: behind the last element there may be nothing.
    """
    count = lanes(type_)
    starts = [*range(0, count * (step - 1), count), (count - 1) * step + 1 - count]
    loaded = [b.load(type_, b.offset(pointer, i64(start), element(type_)), size) for start in starts]
    taken, order = loaded[0], [lane * step if lane * step < count else 0 for lane in range(count)]
    taken = shuffled(b, taken, taken, order)
    for number, (start, value) in enumerate(zip(starts[1:], loaded[1:], strict=True), start=1):
        own = [number * count <= lane * step < (number + 1) * count for lane in range(count)]
        order = [count + lane * step - start if is_own else lane for lane, is_own in enumerate(own)]
        taken = shuffled(b, taken, value, order)
    return taken


def _backwards(b: Builder, pointer: Value, type_: str, size: int, mask: Value | None) -> Value:
    """Emit a load of neighbours of which the first one is the last in memory."""
    order = range(lanes(type_) - 1, -1, -1)
    first = b.offset(pointer, i64(-order[0]), element(type_))
    taken = load(b, type_, first, size, None if mask is None else shuffled(b, mask, mask, order))
    return shuffled(b, taken, taken, order)


def _gathered(b: Builder, pointer: Value, type_: str, here: Pass, stride: Value) -> Value:
    addresses, mask, whole = _apart(b, pointer, type_, here, stride), _all(here), vector(type_, here.count)
    name = f"llvm.masked.gather.{mangled(whole)}.v{here.count}p0"
    b.module.intrinsic(name, whole, addresses.type, "i32", mask.type, whole)
    return b.value(whole, f"call {whole} @{name}({addresses}, i32 1, {mask}, {whole} zeroinitializer)")


def _apart(b: Builder, pointer: Value, type_: str, here: Pass, stride: Value) -> Value:
    """Return the addresses of elements `stride` apart."""
    numbers = Value(f"<{here.count} x i64>", f"<{', '.join(f'i64 {i}' for i in range(here.count))}>")
    offsets = b.op("mul", numbers, b.splat(stride, here.count))
    return b.value(f"<{here.count} x ptr>", f"getelementptr {type_}, {pointer}, {offsets}")


def _all(here: Pass) -> Value:
    every = ", ".join(["i1 true"] * here.count)
    return here.mask or Value(f"<{here.count} x i1>", f"<{every}>")


def write(b: Builder, pointer: Value, lane: Lanes, here: Pass, stride: Value) -> None:
    """Emit a store of neighbours, or of elements `stride` apart."""
    stored, step = to_memory(lane), static(stride)
    if step is not None and 1 < step <= FEW and here.mask is None and _is_masked_quickly(lane, here):
        _write_every(b, pointer, stored, lane.element.get_byte(), step)
        return
    if step != 1 and here.count > 1:
        addresses, mask = _apart(b, pointer, memory_type(lane.element), here, stride), _all(here)
        name = f"llvm.masked.scatter.{mangled(stored.type)}.v{here.count}p0"
        b.module.declare(f"declare void @{name}({stored.type}, {addresses.type}, i32, {mask.type})")
        b.do(f"call void @{name}({stored}, {addresses}, i32 1, {mask})")
        return
    store(b, stored, pointer, lane.element.get_byte(), here.mask)


def _is_masked_quickly(lane: Lanes, here: Pass) -> bool:
    """Return whether a store of some lanes of a vector takes one instruction that is quick everywhere."""
    return here.count == MASKED and lane.element.get_byte() >= 4


def _write_every(b: Builder, pointer: Value, value: Value, size: int, step: int) -> None:
    """Emit stores of a vector's elements `step` apart, that leave what lies between them alone.

    A line of which some is written has to come first, which is asked for in time. 2048 x 1024 floats go to every other
    column in 0.54 ms on a Zen 5 so, in 0.77 where nobody asks, and in 1.64 where they are scattered.
    """
    count = lanes(value.type)
    for start in range(0, count * step, count):
        places = range(start, start + count)
        spread = shuffled(b, value, value, [place // step for place in places])
        chosen = ", ".join(f"i1 {str(place % step == 0).lower()}" for place in places)
        mask = Value(vector("i1", count), f"<{chosen}>")
        line = b.offset(pointer, i64(start), element(value.type))
        store(b, spread, line, size, mask)
        fetch(b, b.offset(line, i64(AHEAD), "i8"), is_written=True)


def drain(b: Builder, sink: Sink, lane: Lanes, here: Pass, lines: Lines | None) -> None:
    """Emit what is done with elements at the end: they are kept, stored, or added to what is there."""
    if isinstance(sink, SaveSink):
        stride = 1 if here.down is None else sink.place.strides[-2] or 1
        write(b, tile_address(b, sink.tile, sink.place, here), lane, here, i64(stride))
        return
    assert isinstance(sink, StoreSink)
    tensor, pointer = sink.tensor, tensor_address(b, sink, here)
    stride = tensor.strides[-1 if here.down is None else -2]
    lane = lane if lane.element == tensor.dtype else Lanes(b, lane.value, tensor.dtype)
    may_meet = static(stride) in (None, 0)  # lanes of a view that overlaps itself
    if sink.add and (sink.atomic or may_meet):
        from tilewright.backends.cpu.compute.atomics import add_each  # which few kernels need

        add_each(b, pointer, lane, stride, here.mask)
        return
    if sink.add:
        lane = rounded(read(b, pointer, tensor.dtype, here, stride) + lane, tensor.dtype)
    if lines is not None and here.mask is None and here.count > 1:
        lines.put(sink, to_memory(lane), pointer, tensor.dtype.get_byte())
        return
    write(b, pointer, lane, here, stride)
