"""Vector gathers: elements and blocks of local memory by index, in and out."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tilewright import dtypes
from tilewright.core.expr import Expr
from tilewright.errors import UnsupportedFeatureError
from tilewright.pto.machine.build import known
from tilewright.pto.machine.lanes import at, blank_lanes, lane_view, lit_lanes, position, write
from tilewright.pto.machine.machine import Machine
from tilewright.pto.machine.registers import BLOCK, NBYTES, active, lanes_of, mask_of, take, vector, vector_type, window
from tilewright.pto.machine.tiles import bytes_view
from tilewright.pto.machine.values import Pointer, Vector
from tilewright.pto.module import Op
from tilewright.pto.op import declare
from tilewright.pto.ops.vector_memory import accessed, unsigned
from tilewright.pto.ops.views import moved
from tilewright.pto.text.form import memory
from tilewright.pto.types import Scalar


@dataclass(frozen=True)
class Elements:
    """The elements behind a pointer, read and written one by one, as far as its memory goes."""

    pointer: Pointer
    view: Expr | None

    def _at(self, m: Machine, index: Expr) -> tuple[Expr, Expr]:
        if self.view is not None:
            return self.view, index
        one = m.b.index(1)
        return bytes_view(m, moved(m, self.pointer, index), (one,), (one,)), m.b.index(0)

    def read(self, m: Machine, index: Expr) -> Expr:
        """Return one element."""
        return at(m, *self._at(m, index))

    def write(self, m: Machine, index: Expr, value: Expr) -> None:
        """Set one element."""
        write(m, *self._at(m, index), value)


def elements_of(m: Machine, pointer: Pointer, element: Scalar) -> Elements:
    """Return what lies from a pointer to the end of its memory; a tile's own bytes are looked up one by one."""
    pointer, size = replace(pointer, element=element), element.nbytes
    if pointer.arena is None:
        return Elements(pointer, None)
    start = known(pointer.offset)
    if start is not None:
        count = m.b.index(max(0, pointer.arena.limit - start) // size)
    else:
        left = m.b.scalar("sub", m.b.index(pointer.arena.limit), pointer.offset)
        count = m.b.scalar("floordiv", left, m.b.index(size))
    pointer.arena.touch(m.b.index(0), pointer.arena.limit)
    return Elements(pointer, bytes_view(m, pointer, (count,), (m.b.index(1),)))


def _of(m: Machine, op: Op) -> Expr:
    return next(v.expr for v in (m.values[o] for o in op.operands[1:]) if isinstance(v, Vector))


@declare("pto.vgather2 vgather2_bc", memory("lx?x?x?", "u"))
def _gather(m: Machine, op: Op) -> Vector:
    """Each lane is the element behind the pointer that an index names; bytes are made longer with zeros."""
    pointer, _ = accessed(m, op, 0)
    type_, mask, offsets = vector_type(op.results[0]), mask_of(m, op), _of(m, op)
    lanes = min(lanes_of(offsets), type_.lanes)
    element = unsigned(1) if pointer.element.nbytes < type_.element.nbytes else type_.element
    source, indices = elements_of(m, pointer, element), lane_view(m, offsets)
    made, buffer = blank_lanes(m, type_.element.dtype, type_.lanes)
    on = None if mask is None else active(m, mask, NBYTES // lanes)
    with lit_lanes(m, on, lanes) as lane:
        found = source.read(m, position(m, indices, lane))
        write(m, made, lane, m.b.cast(found, type_.element.dtype))
    return vector(op, take(m, window(m, buffer, type_.element.dtype, type_.lanes), type_.lanes))


@declare("pto.vgatherb", memory("lx?x?x?", "u"))
def _gather_blocks(m: Machine, op: Op) -> Vector:
    """Each block of 32 bytes comes from the byte offset that one of the first eight indices names."""
    pointer, _ = accessed(m, op, 0)
    type_, mask = vector_type(op.results[0]), mask_of(m, op)
    source, indices = elements_of(m, pointer, unsigned(1)), lane_view(m, _of(m, op))
    made, buffer = blank_lanes(m, dtypes.UINT8, NBYTES)
    on = None if mask is None else active(m, mask, 4)
    with lit_lanes(m, on, 8) as block:
        start, to = position(m, indices, block), m.b.mul(block, BLOCK)
        with m.b.loop(0, BLOCK, hint="byte") as byte:
            write(m, made, m.b.scalar("add", to, byte), source.read(m, m.b.scalar("add", start, byte)))
    return vector(op, take(m, window(m, buffer, type_.element.dtype, type_.lanes), type_.lanes))


@declare("pto.vscatter", memory("ulx?x?"))
def _scatter(m: Machine, op: Op) -> None:
    """Each lane goes where an index says; of bytes, every other one."""
    source, (pointer, _) = m.get(op.operands[0], Vector), accessed(m, op, 1)
    offsets = next(v.expr for v in (m.values[o] for o in op.operands[2:]) if isinstance(v, Vector))
    lanes, mask = lanes_of(offsets), mask_of(m, op)
    if lanes > source.lanes:
        raise UnsupportedFeatureError(f"{op.name} has {lanes} indices for {source.lanes} elements")
    step = source.lanes // lanes
    target = elements_of(m, pointer, source.element)
    values, indices = lane_view(m, source.expr), lane_view(m, offsets)
    on = None if mask is None else active(m, mask, NBYTES // lanes)
    with lit_lanes(m, on, lanes) as lane:
        target.write(m, position(m, indices, lane), at(m, values, m.b.mul(lane, step)))
