"""The blocks of a gemm: which register blocks, of how many rows and vectors, cover the C that it is made for."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Sequence
from dataclasses import replace

from tilewright.backends.cpu.compute.storage import can_mask, computed_type, first_lanes, stored_type
from tilewright.dtypes import FP32, DataType
from tilewright.native.llvm import F64, I32, I64, PTR, Builder, Value, i64
from tilewright.native.target import Target
from tilewright.records import record

DISTANCES, COLUMNS = Value(PTR, "%distances"), Value(I64, "%columns")
"""Parameters: where the terms of a sum lie, and how many columns are left."""

HEIGHTS = (6, 4, 2, 1)
"""Rows of the register blocks."""

TALLER = (16, 12, 8, *HEIGHTS[1:])
"""Rows of those that are narrower, and leave registers for more; 12 where A holds what is computed with."""


@record
class GemmSpec:
    """What one gemm function is made for.

    It takes any `m` and `n` unless they are given here, and does best for an `n` up to `n_bound`. C is f32 or i32 as A
    is of floats or integers, f64 as both are; an A of floats may meet a B of small integers. One of `words` is told K
    in words of so many elements. A `streamed` one is given a few rows of B at a time, which come from memory. One of
    several `terms` is told how many bytes from the first A and B those of each term lie. A `polled` one takes a
    context, and returns early where its program is over. One that knows how many elements rows of B are `apart` takes
    an A whose rows lie as they are read.
    """

    target: Target
    lhs: DataType = FP32
    rhs: DataType = FP32
    m: int | None = None
    n: int | None = None
    n_bound: int | None = None
    words: int = 1
    streamed: bool = False
    terms: int = 1
    polled: bool = False
    apart: int | None = None

    @property
    def name(self) -> str:
        """The name of the function."""
        m, n = ("any" if extent is None else extent for extent in (self.m, self.n))
        bound = f".{self.n_bound}" if self.n is None and self.n_bound else ""
        return f"{self.family}.{m}x{n}{bound}{'.polled' * self.polled}"

    @property
    def family(self) -> str:
        """What the names of the function and of its micro-kernels start with."""
        terms = f".{self.terms}terms" if self.terms > 1 else ""
        words = f".words{self.words}" if self.words > 1 else ""
        apart = f".apart{self.apart}" if self.apart else ""
        kind = f"{words}{'.streamed' * self.streamed}{apart}{terms}"
        return f"gemm{self.target.vector_bits}.{self.lhs}.{self.rhs}{kind}"

    @property
    def right(self) -> str:
        """The LLVM type of an element of B."""
        return I32 if self.words > 1 else stored_type(self.rhs, self.target)

    @property
    def total(self) -> str:
        """The LLVM type of an element of C."""
        return computed_type(self.lhs)

    @property
    def lanes(self) -> int:
        """How many elements of C a vector holds."""
        return self.target.vector_bits // (64 if self.total in (F64, I64) else 32)

    @property
    def may_unroll(self) -> bool:
        """Whether several steps are written one after the other where it is known how far they are apart.

        What counts steps and finds rows takes slots of Intel's processors that could multiply: 2048³ floats take an
        Emerald Rapids 83 ms in fours, and 88 one by one.
        """
        return self.words == 1 and not self.streamed and self.target.fetches_along_rows

    @property
    def distances(self) -> list[Value]:
        """The parameter that says where the terms lie, where there are several."""
        return [DISTANCES] * (self.terms > 1)


@record
class Block:
    """A register block: rows by vectors; a masked one is given how many columns exist, which end in its last vector."""

    rows: int
    vectors: int
    lanes: int
    masked: bool = False

    @property
    def columns(self) -> int:
        """How many columns of C the block covers."""
        return self.vectors * self.lanes

    def masks(self, b: Builder) -> list[Value | None]:
        """Return which columns of each vector exist; None: all of them."""
        if not self.masked:
            return [None] * self.vectors
        before = (self.vectors - 1) * self.lanes
        left = b.op("sub", COLUMNS, i64(before)) if before else COLUMNS
        return [*[None] * (self.vectors - 1), first_lanes(b, left, self.lanes)]


def row_counts(spec: GemmSpec, vectors: int) -> list[int]:
    """Return the heights of the blocks that cover the rows of C, tallest first; the widest has so many vectors."""
    if spec.m is None:
        return [HEIGHTS[0], *HEIGHTS[2:]]  # each height takes milliseconds to compile, and two pairs do for four
    most = HEIGHTS[0] * _most_vectors(spec.target) // vectors
    if spec.n is None or most == HEIGHTS[0]:
        return [HEIGHTS[at] for at in _used(HEIGHTS, spec.m)]
    is_plain = spec.words == 1 and spec.lhs == FP32
    heights = [rows for rows in TALLER if rows <= most and (rows != 12 or is_plain)]
    return [heights[at] for at in _used(heights, spec.m)]


def column_blocks(spec: GemmSpec) -> list[Block]:
    """Return one-row blocks as wide as those that cover the columns of C, widest first."""
    cover = _even_cover(spec)
    if cover is not None:
        return [*dict.fromkeys(cover)]
    lanes = spec.lanes
    last = Block(1, 1, lanes, masked=True) if can_mask(spec.target, spec.rhs.bits) else Block(1, 1, 1)
    least = 0 if spec.n is not None and spec.n % lanes == 0 else last.columns  # a mask that admits all is none
    counts = [count for count in (4, 2, 1) if least < count * lanes and count <= _most_vectors(spec.target)]
    whole = [Block(1, count, lanes) for count in counts]
    if spec.n is not None:
        return [[*whole, last][at] for at in _used([*(shape.columns for shape in whole), 1], spec.n)]
    return [*[shape for shape in whole if shape.columns <= (spec.n_bound or shape.columns)][:1], last]


def _even_cover(spec: GemmSpec) -> list[Block] | None:
    """Return one-row blocks that cover a known number of columns in vectors, the last block as wide as it must be.

    Blocks of one vector read an element of A for each product, so two take what would leave one over. None where the
    last vector would be masked and cannot be, and for words, which lie in panels. The products of 64 x 64 by 64 x 56
    of a convolution take a Zen 5 1.10 ms in one block of four vectors, and 1.91 in blocks of two, one and a half one.
    """
    lanes, most = spec.lanes, _most_vectors(spec.target)
    if spec.n is None or spec.n == 0 or spec.words > 1 or spec.streamed:
        return None
    if spec.n % lanes and not can_mask(spec.target, spec.rhs.bits):
        return None
    vectors = -(-spec.n // lanes)
    counts = [most] * (vectors // most) + [vectors % most] * (vectors % most > 0)
    if counts[-1] == 1 and counts[:-1] == [most] and most > 2:
        counts = [most - 1, 2]
    blocks = [Block(1, count, lanes) for count in counts]
    return [*blocks[:-1], replace(blocks[-1], masked=spec.n % lanes > 0)]


def columns_left(spec: GemmSpec, shapes: Sequence[Block]) -> list[int]:
    """Return for how many columns at least each block is taken."""
    cover = _even_cover(spec)
    if cover is None or spec.n is None:
        return [shape.columns for shape in shapes]
    ends = [*itertools.accumulate((block.columns for block in cover), initial=0)]
    left = {block: spec.n - begin for block, begin in zip(cover, ends, strict=False)}
    return [left[shape] for shape in shapes]


def _most_vectors(target: Target) -> int:
    """Return how many vectors six rows of a block can have: their sums, a row of B and one element fit in registers."""
    return 4 if target.vector_registers == 32 else 2


def _used(sizes: Sequence[int], extent: int) -> list[int]:
    """Return which of these sizes, the largest first, a greedy cover of an extent uses."""
    left = itertools.accumulate(sizes, operator.mod, initial=extent)
    return [at for at, (size, rest) in enumerate(zip(sizes, left, strict=False)) if rest >= size]
