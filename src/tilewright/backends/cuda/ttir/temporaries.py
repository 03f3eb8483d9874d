"""Temporaries: tensors made inside a kernel, in memory that the block has for itself."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.backends.cuda.ttir import extents
from tilewright.backends.cuda.ttir.kernel import Kernel
from tilewright.backends.cuda.ttir.picks import steps
from tilewright.backends.cuda.ttir.recipes import Bound, recipe, refused
from tilewright.backends.cuda.ttir.text import I64, pointer_to
from tilewright.backends.cuda.ttir.tiles import in_memory, operand
from tilewright.backends.cuda.ttir.values import Scalar, Tensor, memory_element, padded
from tilewright.core.expr import Call
from tilewright.core.types import TileType
from tilewright.dtypes import DataType

TOGETHER = 4096
"""How many elements are filled at once."""


@recipe("tensor.create", "tensor.create_l1")
def _create(k: Kernel, call: Call, bound: Bound) -> Tensor:
    made, filling = made_here(k, call, bound["shape"], bound["dtype"]), bound.get("init_value")
    if filling is not None:
        fill(k, made, k.number(filling, made.dtype))
    return made


@recipe("tensor.full")
def _full(k: Kernel, call: Call, bound: Bound) -> Tensor:
    made = made_here(k, call, bound["shape"], bound["dtype"])
    fill(k, made, bound["value"])
    return made


def made_here(k: Kernel, call: Call, shape: Sequence[Scalar], dtype: DataType) -> Tensor:
    """Return a new tensor; UnsupportedFeatureError where only the running program knows how large it is."""
    known = tuple(extent for extent in k.indices(shape) if isinstance(extent, int))
    if len(known) != len(shape):
        help = "make it outside of the kernel, or of extents that are known when it is compiled"
        raise refused("tensors made inside a kernel whose extents only the running program knows", call.span, help)
    return temporary(k, known, dtype)


def temporary(k: Kernel, shape: Sequence[int], dtype: DataType) -> Tensor:
    """Return a tensor of the block's own."""
    count = 1
    for extent in shape:
        count *= extent
    pointer = k.t.bits(k.reserve(k, max(count, 1) * dtype.get_byte()), pointer_to(memory_element(dtype)))
    return Tensor(pointer, tuple(shape), tuple(steps(shape)) if shape else (), tuple(shape), dtype, object())


def fill(k: Kernel, tensor: Tensor, number: Scalar) -> None:
    """Write a number to every element of a tensor that was made here."""
    t, count = k.t, 1
    for extent in tensor.shape:
        assert isinstance(extent, int)
        count *= extent
    some = min(padded((count,))[0], TOGETHER) if count else 1
    k.barrier()  # around a loop, what was there before may still be read
    value = in_memory(k, operand(k, number, TileType((some,), tensor.dtype, (some,))), tensor.dtype)
    low, high, by, turn = t.integer(0), t.integer(count), t.integer(some), t.fresh(I64)
    with t.block(f"scf.for {turn} = {low} to {high} step {by} : i64 {{"):
        numbers = t.simple("arith.addi", extents.positions(t, (some,), 0), t.splat(turn, (some,)))
        first = t.splat(tensor.pointer, (some,))
        found = t.op(f"tt.addptr {first}, {numbers} : {first.type}, {numbers.type}", first.element, (some,))
        inside = t.compare("cmpi slt", numbers, t.integer(count, I64, (some,)))
        t.do(f"tt.store {found}, {value}, {inside} : {found.type}")
    k.written.add(tensor.root)
