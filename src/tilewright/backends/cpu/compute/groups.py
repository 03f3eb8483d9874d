"""Groups: runs of row-by-row ops as one loop over rows.

In each row there are as many passes over the columns as its reductions force, in each pass whole chains of ops in
registers. Only what is read later, or too dear to compute twice, is stored.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import reduce

from tilewright.backends.cpu.compute.narrow_rows import narrow_loop, rows_follow, without_gaps
from tilewright.backends.cpu.compute.row_loops import RowLoop, TurnedLoop
from tilewright.backends.cpu.compute.stepped_rows import SteppedLoop
from tilewright.backends.cpu.compute.streaming import emit_streaming
from tilewright.backends.cpu.emit.function import FunctionEmitter, emits
from tilewright.backends.cpu.emit.groups import Group
from tilewright.native.llvm import Builder, Value


@emits(Group)
def _group(e: FunctionEmitter, group: Group) -> None:
    """Emit a group; what outlives it has its place afterwards, and no node any more."""
    with _guarded(e.b, group):
        if group.turned:
            _emit(e, TurnedLoop(e, group))
        else:
            _emit_rows(e, group)
    for tile, place in group.places.items():
        tile.place, tile.node = place, None


def _guarded(b: Builder, group: Group) -> AbstractContextManager[None]:
    """Return what to emit the loop inside of: nothing is computed for a store that does not fit."""
    guards = list(dict.fromkeys(sink.fits for sink in group.stores if sink.fits is not None))
    return b.when(reduce(lambda x, y: b.op("and", x, y), guards)) if guards else nullcontext()


def _emit_rows(e: FunctionEmitter, group: Group) -> None:
    """Emit a group row by row; narrow rows together, where they follow each other."""
    if e.row is not None:
        _emit(e, RowLoop(e, group), (e.row,))
        return
    narrow = narrow_loop(e, group)
    if narrow is None:
        _emit(e, SteppedLoop(e, group))
        return
    follow = rows_follow(e.b, group)
    with without_gaps(group), nullcontext() if follow is None else e.b.when(follow):
        _emit(e, narrow(e, group))
    if follow is not None:
        with e.b.when(e.negated(follow)):
            _emit(e, SteppedLoop(e, group))


def _emit(e: FunctionEmitter, loop: RowLoop, indices: tuple[Value, ...] = ()) -> None:
    emit_streaming(e, loop.streams(), lambda streaming: loop.emit(streaming=streaming, indices=indices))
    for part in loop.parts:
        e.arena.give_back(part)
