"""Factors: floats rounded to bfloat16 by the processor, for matrix tiles alone: neither knows subnormal numbers."""

from __future__ import annotations

from tilewright.backends.cpu.compute.matrix_tiles import depth_of_tile
from tilewright.backends.cpu.compute.narrow import from_f32, to_f32
from tilewright.backends.cpu.compute.traced import Lanes
from tilewright.core.types import TileType
from tilewright.dtypes import BF16
from tilewright.native.llvm import vector
from tilewright.native.target import Target
from tilewright.passes.few_rows import FEW_ROWS, rows_there

LANES = 16
"""How many floats are rounded by one instruction."""


def are_for_tiles(target: Target, type_: TileType) -> bool:
    """Return whether matrix tiles multiply a tile, of so many rows and columns, by whatever they multiply."""
    depth = depth_of_tile(target, type_.dtype, type_.dtype)
    is_enough = len(type_.shape) == 2 and rows_there(type_) > FEW_ROWS and depth <= type_.shape[-1]
    return target.has_avx512bf16 and depth > 0 and is_enough


def as_factors(lane: Lanes) -> Lanes:
    """Return floats rounded to the nearest factors; a subnormal one may become zero."""
    b, name = lane.b, "llvm.x86.avx512bf16.cvtneps2bf16.512"
    if lane.count != LANES:
        bits = from_f32(b, lane.value, "bfloat")
    else:
        made = vector("bfloat", LANES)
        b.module.intrinsic(name, made, lane.value.type)
        bits = b.convert("bitcast", b.call(made, name, lane.value), vector("i16", LANES))
    return Lanes(b, to_f32(b, bits), BF16, stored=bits)
