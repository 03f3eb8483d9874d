"""Indexed access: indices read from memory, held against what they point into, and loops over them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilewright.backends.cpu.compute.addresses import moved, product, times
from tilewright.backends.cpu.compute.copies import rows_of
from tilewright.backends.cpu.compute.storage import first_lanes, load, splat
from tilewright.backends.cpu.emit.function import FunctionEmitter
from tilewright.backends.cpu.emit.stops import Exact
from tilewright.backends.cpu.emit.values import Tensor, static
from tilewright.core.expr import Call
from tilewright.dtypes import DataType
from tilewright.native.llvm import I32, I64, Value, i64, lanes, vector
from tilewright.ops.indices import outside

Strip = Callable[[Value, int, "Value | None"], None]
"""Emits what is done with several columns from one on, all of them or those that a mask lets through."""


def strips(e: FunctionEmitter, count: Value, width: int, emit: Strip) -> None:
    """Emit something for columns, so many at a time, and for what is left of them with a mask."""
    known = static(count)
    whole = i64(known // width * width) if known is not None else e.b.op("and", count, i64(-width))
    if static(whole) != 0:
        with e.b.loop(i64(0), whole, i64(width)) as column:
            emit(column, width, None)
    if known is not None and known % width == 0:
        return
    left = e.b.op("sub", count, whole)
    with e.b.when(e.b.compare("icmp sgt", left, i64(0))):
        emit(whole, width, first_lanes(e.b, left, width))


def single(e: FunctionEmitter, count: Value, width: int, emit: Callable[[Value], None]) -> None:
    """Emit something for columns one by one, a few of them in each turn."""
    known = static(count)
    whole = i64(known // width * width) if known is not None else e.b.op("and", count, i64(-width))
    if static(whole) != 0:
        with e.b.loop(i64(0), whole, i64(width)) as column:
            for step in range(width):
                emit(column if step == 0 else e.b.op("add", column, i64(step)))
    if width > 1 and (known is None or known % width):
        with e.b.loop(whole, count, i64(1)) as column:
            emit(column)


def raw_type(dtype: DataType) -> str:
    """Return the type in which elements are carried as they are."""
    return f"i{8 * dtype.get_byte()}"


def numbers(e: FunctionEmitter, pointer: Value, dtype: DataType, width: int, mask: Value | None, wide: int) -> Value:
    """Return indices as numbers of so many bits at least; a mask's other lanes are zero."""
    raw = load(e.b, vector(raw_type(dtype), width), pointer, dtype.get_byte(), mask)
    if dtype.bits >= wide:
        return raw
    return e.b.convert("zext" if dtype.is_unsigned_int() else "sext", raw, vector(f"i{wide}", width))


def number(e: FunctionEmitter, pointer: Value, dtype: DataType, *, unsigned: bool = False) -> Value:
    """Return one index as a 64-bit number."""
    raw = e.b.load(raw_type(dtype), pointer, dtype.get_byte())
    return e.b.convert("zext" if unsigned or dtype.is_unsigned_int() else "sext", raw, I64)


class Largest:
    """The largest of some indices, negative ones being larger than others: one look tells whether all are inside."""

    def __init__(self, e: FunctionEmitter, dtype: DataType) -> None:
        self.e, self.dtype = e, dtype
        self.bits = max(dtype.bits, 32)
        self.type = vector(f"i{self.bits}", e.program.target.vector_bits // self.bits)
        self.cell = e.b.slot(self.type)
        e.b.store(Value(self.type, "zeroinitializer"), self.cell, 64)

    def see(self, pointer: Value, stride: Value, count: Value) -> None:
        """Emit a look at some indices."""
        b, width = self.e.b, lanes(self.type)

        def look(column: Value, width: int, mask: Value | None) -> None:
            at = b.offset(pointer, column, raw_type(self.dtype))
            self._note(numbers(self.e, at, self.dtype, width, mask, self.bits))

        if static(stride) == 1:
            strips(self.e, count, width, look)
            return
        with b.loop(i64(0), count, i64(1)) as column:
            at = b.offset(pointer, b.op("mul", column, stride), raw_type(self.dtype))
            self._note(b.splat(numbers(self.e, at, self.dtype, 1, None, self.bits), width))

    def _note(self, found: Value) -> None:
        b = self.e.b
        b.store(b.intrinsic("llvm.umax", b.load(self.type, self.cell, 64), found), self.cell, 64)

    def stop_outside(self, call: Call, limit: Value, name: str, some: Value, *, unsigned: bool = False) -> None:
        """Emit the end of the function where one of the indices, if there are some, is not below a limit."""
        b = self.e.b
        most = b.intrinsic("llvm.vector.reduce.umax", b.load(self.type, self.cell, 64), returns=f"i{self.bits}")
        found = b.convert("zext", most, I64)
        if not unsigned and self.bits == 32:
            limit = _least(self.e, limit, 1 << 31)
        bad = b.op("and", b.compare("icmp uge", found, limit), b.compare("icmp sgt", some, i64(0)))
        shown = found if unsigned or self.dtype.is_unsigned_int() else b.convert("sext", most, I64)
        self.e.stop(bad, outside(name), call, pointing_outside(name, shown, limit))


def pointing_outside(name: str, index: Value, limit: Value) -> Exact:
    """Return what is wrong with an index, which numbers from zero up to a limit."""
    return Exact(f"index {{0}} in `{name}` lies outside 0 to {{1}}", lambda: (index, limit))


def _least(e: FunctionEmitter, limit: Value, most: int) -> Value:
    known = static(limit)
    return i64(min(known, most)) if known is not None else e.b.intrinsic("llvm.umin", limit, i64(most))


def check(
    e: FunctionEmitter,
    call: Call,
    index: Tensor,
    extents: Sequence[Value],
    limit: Value,
    name: str,
    *,
    unsigned: bool = False,
) -> None:
    """Emit the end of the function where one of the indices within some extents is not below a limit."""
    if not e.checked:
        return
    largest = Largest(e, index.dtype)
    with rows_of(e, extents[:-1]) as rows:
        largest.see(moved(e, index, (*rows, i64(0))), index.strides[-1], extents[-1])
    largest.stop_outside(call, limit, name, product(e, extents), unsigned=unsigned)


def gathered(e: FunctionEmitter, base: Value, offsets: Value, type_: str, mask: Value | None) -> Value:
    """Emit a load of elements so many elements from a base; a mask's other lanes are zero and not touched."""
    b, width = e.b, lanes(offsets.type)
    whole = vector(type_, width)
    pointers = b.value(f"<{width} x ptr>", f"getelementptr {type_}, {base}, {offsets}")
    every = mask or Value(f"<{width} x i1>", f"<{', '.join(['i1 true'] * width)}>")
    name = f"llvm.masked.gather.v{width}{type_}.v{width}p0"
    b.module.intrinsic(name, whole, pointers.type, I32, every.type, whole)
    size = int(type_[1:]) // 8
    return b.value(whole, f"call {whole} @{name}({pointers}, i32 {size}, {every}, {whole} zeroinitializer)")


def one_by_one(e: FunctionEmitter, named: Callable[[int], Value], type_: str, width: int) -> Value:
    """Emit a load of so many elements, each where the number of its lane says.

    Indices that lie in memory are read so, each on its way to its element: sixteen floats of a vector that stays in the
    caches take 2.4 ns on a Zen 5, and 4.4 with an instruction that gathers them.
    """
    taken = Value(vector(type_, width), "poison")
    for lane in range(width):
        one = e.b.load(type_, named(lane), int(type_[1:]) // 8)
        taken = e.b.value(taken.type, f"insertelement {taken}, {one}, i32 {lane}")
    return taken


def counting(e: FunctionEmitter, start: Value, width: int) -> Value:
    """Return numbers one after the other from a start on."""
    first = Value(vector(I64, width), f"<{', '.join(f'i64 {lane}' for lane in range(width))}>")
    return e.b.op("add", e.b.splat(start, width), first)


def scaled(e: FunctionEmitter, values: Value, factor: Value) -> Value:
    """Return vector numbers times a factor."""
    known, type_ = static(factor), values.type
    if known == 1:
        return values
    return e.b.op("mul", values, splat(type_, known) if known is not None else e.b.splat(factor, lanes(type_)))


def at_column(e: FunctionEmitter, pointer: Value, column: Value, stride: Value, dtype: DataType) -> Value:
    """Return where an element of a row lies."""
    return e.b.offset(pointer, times(e, column, stride), raw_type(dtype))
