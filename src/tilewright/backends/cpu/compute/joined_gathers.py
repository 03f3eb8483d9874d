"""Joined gathers: single elements that indices name, fetched where a group of row-by-row ops wants them.

A vector of indices is looked at with one comparison; where one of them points outside, the function is left. Indices
that lie in memory are read one by one, and an instruction that gathers takes those that are computed, which would have
to be stored for that.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.backends.cpu.compute.copies import tile_type, with_adjacent_rows
from tilewright.backends.cpu.compute.indexed import gathered, number, one_by_one, pointing_outside, raw_type, scaled
from tilewright.backends.cpu.compute.nodes import CheckedNode, MaskedNode
from tilewright.backends.cpu.compute.row_memory import Pass, tensor_address, tile_address, times, window
from tilewright.backends.cpu.compute.storage import splat
from tilewright.backends.cpu.compute.traced import Lanes, from_memory
from tilewright.backends.cpu.emit.function import FunctionEmitter
from tilewright.backends.cpu.emit.llvm_types import memory_type, repeated
from tilewright.backends.cpu.emit.stops import Exact
from tilewright.backends.cpu.emit.values import LoadNode, Scalar, Tensor, Tile, static
from tilewright.core.expr import Call
from tilewright.dtypes import INT64
from tilewright.native.llvm import I1, I32, I64, Value, element, i64, lanes, vector
from tilewright.ops.indices import outside
from tilewright.records import mutable, record

SMALL = 1 << 31
"""How many elements a number of 32 bits names."""


@record
class Axis:
    """An index along one axis: what it is called, where it was written, and what it stays below."""

    call: Call
    name: str
    index: Tile | Scalar
    limit: Value

    def found(self, e: FunctionEmitter, index: Lanes, here: Pass) -> Value:
        """Emit a look at some indices, and return them as numbers; where one that counts lies outside, leave."""
        found = _widened(index)
        if not e.checked:
            return found
        b, count, is_short = e.b, lanes(found.type), element(found.type) == I32
        known = static(self.limit)
        least = i64(min(known, SMALL)) if known is not None else b.intrinsic("llvm.umin", self.limit, i64(SMALL))
        most = b.convert("trunc", least, I32) if is_short else self.limit
        bad = b.compare("icmp uge", found, b.splat(most, count))
        bad = bad if here.mask is None else b.op("and", bad, here.mask)

        def shown() -> Value:
            largest = b.select(bad, found, splat(found.type, 0))
            if count > 1:
                largest = b.intrinsic("llvm.vector.reduce.umax", largest, returns=element(found.type))
            return b.convert("sext", largest, I64) if is_short else largest

        text, _ = pointing_outside(self.name, self.limit, self.limit)
        e.stop(_any(e, bad), outside(self.name), self.call, Exact(text, lambda: (shown(), self.limit)))
        return found


@mutable
class RavelNode(CheckedNode):
    """The numbers of elements that an index along each of two axes names."""

    axes: tuple[Axis, ...] = ()


def can_join(e: FunctionEmitter, tensor: Tensor, indices: Tile) -> bool:
    """Return whether the plan lets a gather join a group, and an index for each axis of what it takes from is known."""
    if not e.step.joins:
        return False
    if len(tensor.shape) == 1:
        return static(tensor.strides[-1]) == 1
    waits = e.waits(indices) and not (e.step.ends or e.step.begins)
    return waits and len(_axes_of(indices)) == len(tensor.shape)


def joined(e: FunctionEmitter, call: Call, tensor: Tensor, indices: Tile) -> Tile:
    """Record the elements of a tensor that indices name."""
    axes = _axes_of(indices)
    if len(tensor.shape) == 1:
        e.look(call, "indices", indices, indices.valid)
        axes = (Axis(call, "indices", with_adjacent_rows(e, indices), tensor.shape[0]),)
    node = CheckedNode(tuple(axis.index for axis in axes), function=Fetch(e, tensor, axes).emit)
    return e.record(Tile(tile_type(call), indices.valid, node=node))


def raveled(
    e: FunctionEmitter, call: Call, given: Sequence[Tile | Scalar], limits: Sequence[Value], valid: tuple[Value, ...]
) -> Tile:
    """Record the numbers that indices along two axes stand for."""
    operands = tuple(with_adjacent_rows(e, each) if isinstance(each, Tile) else each for each in given)
    named = zip(("outer", "inner"), operands, limits, strict=True)
    axes = tuple(Axis(call, *each) for each in named)

    def counted(here: Pass, *indices: Lanes) -> Lanes:
        outer, inner = (_wide(e, axis.found(e, index, here), index) for axis, index in zip(axes, indices, strict=True))
        return Lanes(e.b, e.b.op("add", scaled(e, outer, limits[1]), inner), INT64)

    node = RavelNode(operands, function=counted, axes=axes)
    return e.record(Tile(tile_type(call), valid, node=node))


def _axes_of(indices: Tile | Scalar) -> tuple[Axis, ...]:
    """Return the index along each axis that numbers were made of; nothing for other numbers."""
    if not isinstance(indices, Tile) or not isinstance(indices.node, RavelNode):
        return ()
    outer, inner = indices.node.axes
    return (*(_axes_of(outer.index) or (outer,)), inner)


@record
class Fetch:
    """Elements of a tensor, one for each lane, at an index along each axis."""

    e: FunctionEmitter
    tensor: Tensor
    axes: tuple[Axis, ...]

    def emit(self, here: Pass, *indices: Lanes) -> Lanes:
        """Emit their loads, after a look at the indices."""
        found = [axis.found(self.e, index, here) for axis, index in zip(self.axes, indices, strict=True)]
        b, dtype = self.e.b, self.tensor.dtype
        apart = [axis for axis, index in enumerate(indices) if index.shared is None or here.count == 1]
        base = self._base(indices, apart)
        offsets = self._offsets(indices, found, apart)
        if here.mask is not None:  # whoever is not wanted is the first, which there is
            offsets = b.select(here.mask, offsets, splat(offsets.type, 0))
        fetched = self._fetched(here, base, offsets, self.axes[apart[0]].index if len(apart) == 1 else None)
        return from_memory(b, b.convert("bitcast", fetched, vector(memory_type(dtype), here.count)), dtype)

    def _base(self, indices: Sequence[Lanes], apart: Sequence[int]) -> Value:
        """Return where counting begins: at those indices that all the elements of a row have."""
        b, base = self.e.b, self.tensor.pointer
        for axis, (index, stride) in enumerate(zip(indices, self.tensor.strides, strict=True)):
            if axis not in apart and index.shared is not None:
                with b.earlier(index.shared.mark):
                    place = b.convert(_extension(index), index.shared.number.value, I64)
                    base = b.offset(base, times(b, place, stride), raw_type(self.tensor.dtype))
        return base

    def _offsets(self, indices: Sequence[Lanes], found: Sequence[Value], apart: Sequence[int]) -> Value:
        """Return how far from there the elements lie."""
        e, strides = self.e, self.tensor.strides
        total: Value | None = None
        if len(apart) == 1 and static(strides[apart[0]]) == 1:
            only, narrow = found[apart[0]], vector(I32, lanes(found[0].type))
            is_small = (static(self.axes[apart[0]].limit) or SMALL) < SMALL and only.type != narrow
            return e.b.convert("trunc", only, narrow) if is_small else only
        for axis in apart:
            step = scaled(e, _wide(e, found[axis], indices[axis]), strides[axis])
            total = step if total is None else e.b.op("add", total, step)
        return total or splat(vector(I32, lanes(found[0].type)), 0)

    def _fetched(self, here: Pass, base: Value, offsets: Value, index: Tile | Scalar | None) -> Value:
        e, b, type_ = self.e, self.e.b, raw_type(self.tensor.dtype)
        if here.count == 1:
            at = b.offset(base, b.convert("sext", offsets, I64) if offsets.type != I64 else offsets, type_)
            return b.load(type_, at, self.tensor.dtype.get_byte())
        lying = _lying(e, index, here) if isinstance(index, Tile) and static(self.tensor.strides[-1]) == 1 else None
        if lying is None or (e.program.target.gathers_quickly and self.tensor.dtype.get_byte() >= 4):
            return gathered(e, base, offsets, type_, None)
        pointer, all_there = lying

        def read() -> Value:
            assert isinstance(index, Tile)
            dtype = index.type.dtype

            def named(lane: int) -> Value:
                return b.offset(base, number(e, b.offset(pointer, i64(lane), raw_type(dtype)), dtype), type_)

            return one_by_one(e, named, type_, here.count)

        return (
            read() if all_there is None else b.either(all_there, read, lambda: gathered(e, base, offsets, type_, None))
        )


def _lying(e: FunctionEmitter, index: Tile, here: Pass) -> tuple[Value, Value | None] | None:
    """Return where indices lie one after the other, and whether all of them do; None for those that lie nowhere."""
    if here.mask is not None or index.is_column:
        return None
    node, place = index.node, index.place
    if place is not None:
        return (tile_address(e.b, index, place, here), None) if place.strides[-1] == 1 else None
    if isinstance(node, LoadNode) and node.apart is None and static(node.tensor.strides[-1]) == 1:
        return tensor_address(e.b, index, here), None
    if isinstance(node, MaskedNode) and static(window(node.source)[0].strides[-1]) == 1 and index in here.admitted:
        missing = e.b.op("xor", here.admitted[index], repeated(I1, "true", here.count))
        return tensor_address(e.b, node.source, here), e.negated(_any(e, missing))
    return None


def _extension(index: Lanes) -> str:
    return "zext" if index.element.is_unsigned_int() else "sext"


def _widened(index: Lanes) -> Value:
    """Return indices as numbers of 32 bits, or of 64 where they may need those."""
    bits = 32 if index.element.bits < 32 or (index.element.bits == 32 and _extension(index) == "sext") else 64
    type_ = vector(f"i{bits}", index.count)
    return index.value if index.value.type == type_ else index.b.convert(_extension(index), index.value, type_)


def _wide(e: FunctionEmitter, found: Value, index: Lanes) -> Value:
    """Return numbers as numbers of 64 bits."""
    wide = vector(I64, lanes(found.type))
    return found if found.type == wide else e.b.convert(_extension(index), found, wide)


def _any(e: FunctionEmitter, bad: Value) -> Value:
    count = lanes(bad.type)
    word = f"i{count}"
    return bad if count == 1 else e.b.compare("icmp ne", e.b.convert("bitcast", bad, word), Value(word, "0"))
