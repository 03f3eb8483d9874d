"""Temporaries: tensors made inside a kernel, in memory that the block has for itself."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.backends.cuda.ttir import extents
from tilewright.backends.cuda.ttir.kernel import Kernel
from tilewright.backends.cuda.ttir.places import product
from tilewright.backends.cuda.ttir.recipes import Bound, recipe, refused
from tilewright.backends.cuda.ttir.text import I64, pointer_to
from tilewright.backends.cuda.ttir.tiles import in_memory, operand
from tilewright.backends.cuda.ttir.values import Extent, Scalar, Tensor, memory_element, padded
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
    """Return a new tensor; UnsupportedFeatureError where only the kernel knows how large it is."""
    if k.lent_now is not None:
        return k.lent_now
    wanted = k.indices(shape)
    if not all(map(k.is_given, wanted)):
        help = "make it outside of the kernel, or as large as what the kernel is given says"
        raise refused("tensors made inside a kernel whose extents are computed there", call.span, help)
    return temporary(k, wanted, dtype)


def temporary(k: Kernel, shape: Sequence[Extent], dtype: DataType) -> Tensor:
    """Return a tensor of the block's own, of extents that are known or that the kernel is given."""
    pointer = k.t.bits(k.reserve(k, [*shape, dtype.get_byte()]), pointer_to(memory_element(dtype)))
    strides: list[Extent] = [1]
    for extent in reversed(shape[1:]):
        strides.append(extents.times(k.t, strides[-1], extent))
    return Tensor(pointer, tuple(shape), tuple(strides[::-1]) if shape else (), tuple(shape), dtype, object())


def fill(k: Kernel, tensor: Tensor, number: Scalar) -> None:
    """Write a number to every element of a tensor that was made here."""
    t, count = k.t, product(k, tensor.shape)
    some = TOGETHER if not isinstance(count, int) else min(padded((count,))[0], TOGETHER) if count else 1
    k.barrier()  # around a loop, what was there before may still be read
    value = in_memory(k, operand(k, number, TileType((some,), tensor.dtype, (some,))), tensor.dtype)
    low, high, by, turn = t.integer(0), extents.held(t, count), t.integer(some), t.fresh(I64)
    with t.block(f"scf.for {turn} = {low} to {high} step {by} : i64 {{"):
        numbers = t.simple("arith.addi", extents.positions(t, (some,), 0), t.splat(turn, (some,)))
        first = t.splat(tensor.pointer, (some,))
        found = t.op(f"tt.addptr {first}, {numbers} : {first.type}, {numbers.type}", first.element, (some,))
        inside = t.compare("cmpi slt", numbers, t.splat(high, (some,)))
        t.do(f"tt.store {found}, {value}, {inside} : {found.type}")
    k.written.add(tensor.root)
