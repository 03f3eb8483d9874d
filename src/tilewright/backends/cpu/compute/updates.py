"""Updates: tiles changed where they lie, if nobody else will read what they were."""

from __future__ import annotations

from tilewright.backends.cpu.compute.copies import copy_whole
from tilewright.backends.cpu.emit.function import FunctionEmitter
from tilewright.backends.cpu.emit.values import Tile, contiguous
from tilewright.core.build import arguments
from tilewright.core.expr import Call, Var


def changing(e: FunctionEmitter, call: Call, tile: Tile, operand: str = "") -> Tile:
    """Return a packed tile to write to that holds what another does: its own memory, or a copy where it is read later.

    Whatever else the op reads has to be in memory already.
    """
    name = arguments(call)[operand or call.op.spec.writes or ""]
    place = e.stored(tile)
    e.flush()  # what is recorded may read it as it is
    is_last = isinstance(name, Var) and e.readers(tile) == 1 and e.last_use.ends_at(call, (name, *tile.owners))
    if is_last and place.strides == contiguous(tile.type.shape):
        return Tile(tile.type, tile.valid, place, None, tile.owners)
    result = e.fresh(tile.type, tile.valid)
    copy_whole(e, tile, result)
    return result
