"""Durations: roughly how many nanoseconds statements take on one thread, which decides whether others get a share.

Measured on a Zen 5 at 128 x 768, what is read in the second cache: rows that stay below `WORTH` by this estimate take
2.2 to 3.4 microseconds on one thread and 3.9 to 4.8 on two, rows above it 5.3 to 29 on one and 5.2 to 17 on two.
"""

from __future__ import annotations

import math

from tilewright.backends.cpu.emit.work import Estimate, is_light, is_product, products
from tilewright.core.expr import Call
from tilewright.core.stmt import ForStmt
from tilewright.core.types import Extent, TensorType, TileType
from tilewright.core.visitor import expressions, statements
from tilewright.forks import computed_once

WORTH = 7_500
"""Nanoseconds of work that other threads have a share in: telling two of them and waiting takes half as long."""

PIECE = 20_000
"""Nanoseconds that a piece takes at least where there are more of them than threads; so long takes what nobody knows.

What one call leaves in a core's caches the next finds there, if threads run the same pieces again, as they mostly do
with one each: 512 x 512 floats are added in 15 microseconds on two threads, and in 19 in 32 pieces.
"""

BYTES, SIMPLE, STEEP = 160, 128, 8
"""What one nanosecond is enough for: bytes read or written, elements of an addition, elements of an exponential."""

_MOVING = frozenset({"load", "store"})
_FREE = frozenset({"create", "full", "move", "reshape", "transpose", "transpose_view"})
"""Ops that leave little to do beside what moves their tiles, or what two threads do no faster: 128 x 768 floats are
transposed in 8 microseconds on one, and in 15 on two, which take each other's lines."""


class Durations(Estimate):
    """How long the functions of a program take."""

    def each_turn(self, loop: ForStmt) -> int:
        """Return how long one turn of a loop takes, at least."""
        work = self.body(loop.body)
        return PIECE if work.looks else 1 + work.units

    def tile_work(self, call: Call) -> int:
        """Return how long an op on tiles takes."""
        tiles = [x.type for x in (call, *call.args) if isinstance(x.type, TileType)]
        count = max((self._elements(tile) for tile in tiles), default=0)
        if is_product(call):
            return 1 + products(call) // SIMPLE
        if call.op.spec.name in _FREE:
            return 1
        if call.op.spec.name in _MOVING:
            return 1 + count * min(tile.dtype.get_byte() for tile in tiles) // BYTES
        return 1 + count // (SIMPLE if is_light(call.op.spec) else STEEP)

    def _elements(self, tile: TileType) -> int:
        """Return how many elements of a tile there are at most."""
        extents = zip(tile.shape, tile.valid, strict=True)
        return math.prod(self._clipped.get(extent, extent) if live is None else extent for extent, live in extents)

    @computed_once
    def _clipped(self) -> dict[int, int]:
        """By the extent of tiles that end where their tensors do, how much of it there is at most."""
        found: dict[int, int] = {}
        bodies = [function.body for function in self.program.function_list]
        every = (x for body in bodies for stmt in statements(body) for x in expressions(stmt))
        for call in every:
            if isinstance(call, Call) and call.op.spec.name == "load" and isinstance(call.type, TileType):
                for extent, most in _reaches(call.type, call.args[0].type):
                    found[extent] = max(found.get(extent, 0), most)
        return found


def _reaches(tile: TileType, tensor: object) -> list[tuple[int, int]]:
    """Return the extents of a loaded tile that the tensor may end within, and how much of each there is at most."""
    shape: tuple[Extent, ...] = tensor.shape if isinstance(tensor, TensorType) else ()
    ends = shape if len(shape) == len(tile.shape) else tile.shape
    axes = zip(tile.shape, tile.valid, ends, strict=True)
    return [(own, min(own, end) if isinstance(end, int) else own) for own, live, end in axes if live is None]
