"""Predicate memory: masks in and out of local memory, one bit for each byte of a register."""

from __future__ import annotations

from tilewright.core.enums import CmpType
from tilewright.core.expr import Expr, constant
from tilewright.dtypes import UINT8
from tilewright.errors import UnsupportedFeatureError
from tilewright.pto.machine.machine import Machine
from tilewright.pto.machine.registers import (
    NBYTES,
    compared,
    every,
    full,
    lanes_of,
    lit_lanes_of,
    predicate,
    regrained,
    take,
)
from tilewright.pto.machine.values import Lowered, Pointer, Predicate, Token
from tilewright.pto.module import Op
from tilewright.pto.op import declare
from tilewright.pto.ops.vector_memory import accessed, elements, unsigned, view
from tilewright.pto.ops.views import moved
from tilewright.pto.text.form import memory, register
from tilewright.pto.types import Ptr


def _store_bits(m: Machine, image: Expr, at: Pointer) -> None:
    """Write flags as bits, eight a byte, the first one lowest."""
    count = lanes_of(image) // 8
    packed = compared(m, image, CmpType.NE, constant(0, UINT8))
    target = view(m, elements(at, unsigned(1)), (1, count), (0, 1))
    m.b.do("tile.store", tile=packed, offsets=(0, 0), output_tensor=target)


def _load_bits(m: Machine, at: Pointer, count: int) -> Expr:
    """Return bits in memory as flags."""
    packed = take(m, view(m, elements(at, unsigned(1)), (1, count // 8), (0, 1)), count // 8)
    return m.b.op("tile.sel", mask=packed, lhs=full(m, count, UINT8, 1), rhs=full(m, count, UINT8, 0))


@declare("pto.psts", memory("nl", "l?", "dist"))
@declare("pto.psti", memory("nli?", "l?", "dist"))
def _store_mask(m: Machine, op: Op) -> tuple[Pointer, ...]:
    at, further = _place(m, op, 1)
    image = regrained(m, m.get(op.operands[0], Predicate).expr, 1)
    word = op.attributes.get("dist", "NORM")
    if word not in ("NORM", "PK"):
        raise UnsupportedFeatureError(f"{op.name} has no distribution {word!r}", help="NORM or PK")
    _store_bits(m, image if word == "NORM" else every(m, image, 2, 0, NBYTES // 2), at)
    return further


def _place(m: Machine, op: Op, index: int) -> tuple[Pointer, tuple[Pointer, ...]]:
    """Return where a mask lies: its offset stands in brackets or is an operand."""
    at, further = accessed(m, op, index)
    if len(op.operands) == index + 1:
        return at, further
    moved_on = moved(m, at, m.index(op.operands[index + 1]))
    is_updating = bool(op.results) and isinstance(op.results[-1].type, Ptr)
    return (at, (moved_on,)) if is_updating else (moved_on, ())


@declare("pto.plds", memory("l", "nl?", "dist"), is_by_bits=True)
@declare("pto.pldi", memory("li?", "nl?", "dist"), is_by_bits=True)
def _load_mask(m: Machine, op: Op) -> tuple[Predicate | Pointer, ...]:
    at, further = _place(m, op, 0)
    word = op.attributes.get("dist", "NORM")
    if word == "NORM":
        image = _load_bits(m, at, NBYTES)
    elif word == "US":
        half = _load_bits(m, at, NBYTES // 2)
        image = _doubled(m, half)
    elif word == "DS":
        image = every(m, _load_bits(m, at, 2 * NBYTES), 2, 0, NBYTES)
    else:
        raise UnsupportedFeatureError(f"{op.name} has no distribution {word!r}", help="NORM, US or DS")
    return predicate(op, image), *further


def _doubled(m: Machine, row: Expr) -> Expr:
    """Return each lane twice."""
    lanes = lanes_of(row)
    column = m.b.op("tile.reshape", x=row, shape=(lanes, 1))
    blank = m.b.op("tile.full", shape=(lanes, 2), dtype=UINT8, value=constant(0, UINT8))
    return m.b.op("tile.reshape", x=m.b.op("tile.row_expand", x=blank, vec=column), shape=(1, 2 * lanes))


@declare("pto.pstu", register("anli?", "al?"))
def _store_mask_unaligned(m: Machine, op: Op) -> tuple[Lowered, ...]:
    """One bit a lane, however wide lanes are."""
    mask, base = m.get(op.operands[1], Predicate), m.get(op.operands[2], Pointer)
    lit = lit_lanes_of(m, mask)
    _store_bits(m, lit, base)
    nbytes = lanes_of(lit) // 8
    further = base.having((m.b.add(base.offset, nbytes),))
    return (Token(), further) if len(op.results) > 1 else (Token(),)
