"""Multi-tiles: several tiles of one type behind each other, of which ops take one by its number."""

from __future__ import annotations

import re
from dataclasses import replace

from tilewright.core.expr import Expr
from tilewright.errors import OutOfBoundsError
from tilewright.pto.errors import PtoTypeMismatchError, PtoTypeTextError
from tilewright.pto.machine.machine import Machine
from tilewright.pto.machine.memory import capacity
from tilewright.pto.machine.tiles import check_range
from tilewright.pto.machine.values import Pointer, Tile
from tilewright.pto.module import Op
from tilewright.pto.op import Constants, declare, equal
from tilewright.pto.ops.buffers import OPTIONS, at_lines, check_address, told_extents, valid_of
from tilewright.pto.text.form import Form, Layout, Typing, Word
from tilewright.pto.text.typetext import read_type
from tilewright.pto.types import TileBuf, Type

_MOST = 16
_FAMILY = re.compile(r"!pto\.multi_tile_buf<(.*),\s*count\s*=\s*(\d{1,9})\s*>", re.DOTALL)
_EXAMPLE = """
(%x: t8x64xf32, %y: t8x64xf32, %n: index = 1, %out: t8x64xf32)
; %many = pto.alloc_multi_tile : !pto.multi_tile_buf<vec, 8x64xf32, count=2>
; %a = pto.multi_tile_get %many[%c0] : !pto.multi_tile_buf<vec, 8x64xf32, count=2> -> t8x64xf32
; %b = pto.multi_tile_get %many[%n] : !pto.multi_tile_buf<vec, 8x64xf32, count=2> -> t8x64xf32
; pto.tmov ins(%x) outs(%a); pto.tmov ins(%y) outs(%b); pto.tadd ins(%a, %b) outs(%out)
"""


def _slots(type_: Type) -> tuple[TileBuf, int]:
    """Return the type of each tile, and how many there are."""
    found = _FAMILY.fullmatch(str(type_))
    if found is None:
        help = "as in !pto.multi_tile_buf<vec, 16x64xf32, count=2>"
        raise PtoTypeTextError(f"`{type_}` does not say its tiles and their `count`", help=help)
    inner = found[1].strip()
    slot = read_type(inner if inner.startswith("!") else f"!pto.tile_buf<{inner}>")
    if not isinstance(slot, TileBuf) or not 2 <= int(found[2]) <= _MOST:
        raise PtoTypeTextError(f"`{type_}` holds 2 to {_MOST} tiles", help="use `pto.alloc_tile` for one")
    return slot, int(found[2])


def _is_told_extents(op: Op, constants: Constants) -> None:
    told_extents(op, _slots(op.results[0].type)[0], constants)


def _fit(op: Op, constants: Constants) -> None:
    at_lines(op, constants)
    _refuse_many(*_slots(op.results[0].type), constants.arch)


def _refuse_many(slot: TileBuf, count: int, arch: str) -> None:
    """Refuse tiles that their memory has no room for."""
    most = capacity(slot.space, arch)
    if count * slot.nbytes > most:
        message = f"{count} tiles of {slot.nbytes} bytes are more than the {most} of `{slot.space.loc}`"
        raise OutOfBoundsError(message, help="make them smaller, or take fewer")


@declare(
    "pto.alloc_multi_tile",
    Form("", "o", Typing.RESULT, words=OPTIONS, family="multi_tile_buf"),
    rule=_is_told_extents,
    law=_fit,
    is_by_bytes=True,
    example=_EXAMPLE,
    means="out = x + y",
)
def _alloc(m: Machine, op: Op) -> Tile:
    """Several tiles behind each other: from an address on, or where there is room."""
    slot, count = _slots(op.results[0].type)
    _refuse_many(slot, count, m.arch)
    addresses = m.clause(op, "addr")
    if addresses:
        check_address(m, addresses[0])
        place = _from(m, slot, addresses[0], count)
    else:
        place = m.memory.apart(slot.space, slot.element, count * slot.nbytes)
    return Tile(slot, valid_of(m, op, slot), pointer=place)


def _from(m: Machine, slot: TileBuf, address: Expr, count: int) -> Pointer:
    """Return where tiles begin at an address; which one is meant shows later, so all there see bytes."""
    m.knowledge.exposed.add(slot.space)
    return m.memory.place(replace(slot, rows=count * slot.rows, valid_rows=count * slot.rows), address)


def _is_one(op: Op, constants: Constants) -> None:
    slot, count = _slots(op.operands[0].type)
    equal(op, "result", op.results[0].type, slot)
    number = next((constants.get(value) for value in op.clause("slot") or ()), None)
    if number is not None and not 0 <= number < count:
        raise PtoTypeMismatchError(f"`{op.name}` takes tile {number} of {count}", help=f"0 to {count - 1}")


@declare(
    "pto.multi_tile_get",
    Form("o", "z", words={"slot": Word(Layout.INDEX, "i", required=True)}, index="slot", family="tile_buf"),
    rule=_is_one,
    is_by_bytes=True,
    example=_EXAMPLE,
    means="out = x + y",
)
def _get(m: Machine, op: Op, many: Tile) -> Tile:
    """One of several tiles, by its number."""
    _, count = _slots(op.operands[0].type)
    (number,) = m.clause(op, "slot") or (m.b.index(0),)
    at = m.b.index(number)
    check_range(m, at, count - 1, f"there are tiles 0 to {count - 1}")
    offset = m.b.add(many.place.offset, m.b.mul(at, many.type.nbytes))
    return Tile(op.results[0].of(TileBuf), many.valid, pointer=replace(many.place, offset=offset))
