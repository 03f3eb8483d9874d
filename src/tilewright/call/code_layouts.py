"""Layouts: how the elements of a tensor lie, as far as code that takes them as they lie has to know."""

from __future__ import annotations

from tilewright.backends.abi import MOST_STEP
from tilewright.call.code import NO, YES, Code
from tilewright.call.words import DEVICE_KIND
from tilewright.native.llvm import I1, I64, PTR, Module, Value, i64


def _flatten(module: Module) -> None:
    """Write `@flatten(rank, shape, strides, shift, line)`: a tensor without gaps as one axis and its stride of one."""
    rank, shape, strides, shift, line = (
        Value(t, f"%{n}") for t, n in ((I64, "rank"), (PTR, "shape"), (PTR, "strides"), (I64, "shift"), (PTR, "line"))
    )
    c = Code(module, "flatten", [rank, shape, strides, shift, line], I1, NO)
    count = c.slot(I64)
    c.store(i64(1), count, 8)
    with c.loop(i64(0), rank, i64(1)) as index:
        axis = c.op("sub", c.op("sub", rank, i64(1)), index)
        extent, before = c.word(shape, axis), c.load(I64, count, 8)
        gaps = c.is_not(c.word(strides, axis), c.op("shl", before, shift))
        c.refuse(c.op("and", gaps, c.is_not(extent, i64(1))))
        c.store(c.op("mul", before, extent), count, 8)
    c.put(line, 0, c.load(I64, count, 8))
    c.put(line, 1, i64(1))
    c.done(Value(I1, YES))


def _turned(module: Module) -> None:
    """Write `@turned(rank, shape, strides, shift)`: whether only with its last two axes swapped code can read a tensor.

    That is so where neighbours along the last axis but one are neighbours in memory, as `Argument.is_turned` has it.
    """
    rank, shape, strides, shift = (
        Value(t, f"%{n}") for t, n in ((I64, "rank"), (PTR, "shape"), (PTR, "strides"), (I64, "shift"))
    )
    c = Code(module, "turned", [rank, shape, strides, shift], I1, NO)
    c.refuse(c.compare("icmp slt", rank, i64(2)))
    one = c.op("shl", i64(1), shift)
    for back in (1, 2):
        axis = c.op("sub", rank, i64(back))
        c.refuse(c.compare("icmp sle", c.word(shape, axis), i64(1)))
        c.refuse(c.compare("icmp eq" if back == 1 else "icmp ne", c.word(strides, axis), one))
    c.done(Value(I1, YES))


def _stepped(module: Module) -> None:
    """Write `@stepped(dtype, rank, shape, strides, shift)`: how far apart neighbours of a row are, as `Argument.step`.

    0 is for rows of neighbours, and for what code is not made for.
    """
    dtype, rank, shape, strides, shift = (
        Value(t, f"%{n}") for t, n in ((I64, "dtype"), (I64, "rank"), (PTR, "shape"), (PTR, "strides"), (I64, "shift"))
    )
    c = Code(module, "stepped", [dtype, rank, shape, strides, shift], I64, "0")
    c.refuse(c.compare("icmp uge", dtype, i64(1 << DEVICE_KIND)))
    c.refuse(c.compare("icmp slt", rank, i64(1)))
    last = c.op("sub", rank, i64(1))
    raw = c.word(strides, last)
    step = c.op("ashr", raw, shift)
    c.refuse(c.compare("icmp sle", c.word(shape, last), i64(1)))
    c.refuse(c.is_not(c.op("shl", step, shift), raw))
    c.refuse(c.compare("icmp slt", step, i64(2)))
    c.refuse(c.compare("icmp sgt", step, i64(MOST_STEP)))
    c.done(step)


def _spread(module: Module) -> None:
    """Write `@spread(rank, shape, steps)`: whether surely no two elements of a tensor share memory.

    That is so where a step along any axis goes further than all the axes with smaller steps together.
    """
    rank, shape, steps = Value(I64, "%rank"), Value(PTR, "%shape"), Value(PTR, "%steps")
    c = Code(module, "spread", [rank, shape, steps], I1, NO)
    within = c.slot(I64)
    with c.loop(i64(0), rank, i64(1)) as axis:
        step = c.word(steps, axis)
        c.store(i64(0), within, 8)
        with c.loop(i64(0), rank, i64(1)) as other:
            smaller, extent = c.word(steps, other), c.word(shape, other)
            before = c.op("and", c.compare("icmp eq", smaller, step), c.compare("icmp slt", other, axis))
            counts = c.op("or", c.compare("icmp slt", smaller, step), before)
            along = c.op("mul", c.op("sub", extent, i64(1)), smaller)
            along = c.select(c.op("and", counts, c.compare("icmp sgt", extent, i64(1))), along, i64(0))
            c.store(c.op("add", c.load(I64, within, 8), along), within, 8)
        long = c.compare("icmp sgt", c.word(shape, axis), i64(1))
        c.refuse(c.op("and", long, c.compare("icmp sge", c.load(I64, within, 8), step)))
    c.done(Value(I1, YES))


LAYOUTS = _flatten, _turned, _stepped, _spread
"""What writes the functions into the dispatcher's module."""
