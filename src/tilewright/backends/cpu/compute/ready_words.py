"""Words ahead of time: those of a transpose that products in a loop read, made where it stands."""

from __future__ import annotations

from tilewright.backends.cpu.compute.copies import copy_elements, whole_extents
from tilewright.backends.cpu.compute.words import PANEL, elements_of_word, room_of_words
from tilewright.backends.cpu.emit.function import FunctionEmitter
from tilewright.backends.cpu.emit.values import Place, Tile
from tilewright.dtypes import UINT32
from tilewright.native.llvm import I32, i64


def make_words(e: FunctionEmitter, view: Tile) -> bool:
    """Emit the words of a transpose, if products read it so: its neighbours are turned as one word."""
    type_, place = view.type, view.place
    assert place is not None
    rows, columns = type_.shape[-2:]
    is_plain = len(type_.shape) == 2 and place.strides == (1, rows) and view.valid == whole_extents(type_)
    if elements_of_word(e.program.target, type_.dtype, type_.dtype) != 2 or rows % 2 or not is_plain:
        return False
    part = e.arena.take(room_of_words(2, rows, columns))
    view.words = e.address(part[0])
    e.own(view, part)
    steps = rows // 2
    for first in range(0, columns, PANEL):
        source = Place(e.b.offset(place.pointer, i64(first * steps), I32), (1, steps))
        target = Place(e.b.offset(view.words, i64(first * steps), I32), (PANEL, 1))
        copy_elements(e, UINT32, source, target, (i64(steps), i64(min(PANEL, columns - first))))
    return True
