"""Masks: which lanes take part. A mask has one bit for each byte of a register, a lane's bit at its first byte.

What makes masks from lanes sets only those bits; what changes the width of lanes keeps all of them. In memory a mask is
its bits, one behind the other.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from tilewright.core.enums import CmpType
from tilewright.core.expr import Expr, constant
from tilewright.core.types import ScalarType
from tilewright.dtypes import INT32, UINT8
from tilewright.errors import AttributeValueError, PtoTypeMismatchError, UnsupportedFeatureError
from tilewright.pto.machine.build import element_of, known
from tilewright.pto.machine.machine import Lowering, Machine
from tilewright.pto.machine.registers import (
    NBYTES,
    active,
    compared,
    every,
    flags,
    full,
    grain,
    iota,
    joined,
    lanes_of,
    lit_lanes_of,
    mask_of,
    predicate,
    regrained,
    take,
    where,
)
from tilewright.pto.machine.tiles import moved
from tilewright.pto.machine.values import Lowered, Number, Pointer, Predicate, Token
from tilewright.pto.module import Op
from tilewright.pto.op import Constants, declare
from tilewright.pto.ops.rules import equal
from tilewright.pto.ops.vector_memory import accessed, elements, unsigned, view
from tilewright.pto.text.form import Form, Slot, Typing, memory, register
from tilewright.pto.types import Mask, Ptr

COMPARISONS = {
    "eq": CmpType.EQ, "ne": CmpType.NE, "lt": CmpType.LT, "le": CmpType.LE, "gt": CmpType.GT, "ge": CmpType.GE,
}  # fmt: skip
WIDTHS = ("b8", "b16", "b32")
"""The lanes that masks can have."""
_PATTERN = Form("", "n", Typing.RESULT, slots=(Slot("pattern", "string"),), family="mask")
COARSEST = 8
"""Bytes of the widest lanes there are."""


def by_width(name: str, form: Form) -> Callable[[Lowering], Lowering]:
    """Declare an op for each width of lanes, as in `pto.pset_b8`; all its masks have that width."""

    def signed_in(lowering: Lowering) -> Lowering:
        for width in WIDTHS:
            declare(f"pto.{name}_{width}", form, rule=_one_width)(lowering)
        return lowering

    return signed_in


def _one_width(op: Op, _: Constants) -> None:
    width = int(op.name.rpartition("b")[2])
    for value in (*op.operands, *op.results):
        if isinstance(value.type, Mask) and value.type.bits != width:
            raise PtoTypeMismatchError(f"`{op.name}` works on !pto.mask<b{width}>, got {value.type}")
    if op.name.startswith("pto.plt"):
        equal(op, "second result", op.results[1].type, op.operands[0].type)


def comparison(m: Machine, op: Op, lhs: Expr, word: str, rhs: Expr) -> Predicate:
    """Return where a comparison holds among the lanes of the op's mask."""
    lanes, nbytes = lanes_of(lhs), element_of(lhs).get_byte()
    on = flags(m, compared(m, lhs, COMPARISONS[word], rhs), lanes)
    mask = mask_of(m, op)
    lit = None if mask is None else active(m, mask, nbytes)
    on = on if lit is None else m.b.op("tile.and_", lhs=on, rhs=lit)
    return predicate(op, regrained(m, on, op.results[0].of(Mask).bits // 8))


def everywhere(m: Machine, op: Op, result: int = 0) -> Predicate:
    """Return a mask with every lane set."""
    lanes = op.results[result].of(Mask).lanes
    return predicate(op, full(m, lanes, UINT8, 1), result, is_all=True)


def _first(m: Machine, op: Op, count: Expr) -> Predicate:
    """Return a mask of the first lanes."""
    lanes, number = op.results[0].of(Mask).lanes, known(count)
    if number is not None and number >= lanes:
        return everywhere(m, op)
    bits = compared(m, iota(m, lanes), CmpType.LT, m.b.cast(count, INT32))
    return predicate(op, flags(m, bits, lanes))


@by_width("pset", _PATTERN)
@by_width("pge", _PATTERN)
def _pattern(m: Machine, op: Op) -> Predicate:
    word, lanes = str(op.attributes["pattern"]), op.results[0].of(Mask).lanes
    if word == "PAT_ALL":
        return everywhere(m, op)
    if word == "PAT_ALLF":
        return predicate(op, full(m, lanes, UINT8, 0))
    shares = {"PAT_H": lanes // 2, "PAT_Q": lanes // 4}
    counted = re.fullmatch(r"PAT_VL(\d+)", word)
    if counted or word in shares:
        return _first(m, op, constant(int(counted[1]) if counted else shares[word], INT32))
    if word not in ("PAT_M3", "PAT_M4"):
        raise AttributeValueError(
            f"there is no pattern {word!r}", help="as PAT_ALL, PAT_ALLF, PAT_VL8, PAT_H, PAT_Q, PAT_M3"
        )
    rest = m.b.op("tile.fmod", lhs=iota(m, lanes), rhs=constant(int(word[-1]), INT32))
    return predicate(op, flags(m, compared(m, rest, CmpType.EQ, constant(0, INT32)), lanes))


@by_width("plt", register("i", "ni"))
def _less_than(m: Machine, op: Op) -> tuple[Predicate, Number]:
    """The first lanes, as many as are left, and how many are left behind them."""
    count = m.expr(op.operands[0])
    assert isinstance(count.type, ScalarType)
    lanes, none = constant(op.results[0].of(Mask).lanes, count.type.dtype), constant(0, count.type.dtype)
    rest = m.b.scalar("max", m.b.scalar("sub", count, lanes), none)
    return _first(m, op, m.b.scalar("min", count, lanes)), Number(rest)


# logic


_LOGIC = {"pto.pand": "and_", "pto.por": "or_", "pto.pxor": "xor"}


def _only_where(m: Machine, op: Op, on: Expr, mask: Predicate) -> Predicate:
    return predicate(op, on if mask.is_all else m.b.op("tile.and_", lhs=on, rhs=mask.expr))


def _gated(m: Machine, op: Op) -> tuple[list[Expr], Predicate]:
    """Return the flags that an op combines, where its mask has flags, and that mask: no other bit gets through."""
    *sources, mask = (m.get(v, Predicate) for v in op.operands)
    return [regrained(m, source.expr, grain(mask.expr)) for source in sources], mask


@declare("pto.pand por pxor", register("nnn", "n"))
def _logic(m: Machine, op: Op) -> Predicate:
    (lhs, rhs), mask = _gated(m, op)
    return _only_where(m, op, m.b.op(f"tile.{_LOGIC[op.name]}", lhs=lhs, rhs=rhs), mask)


@declare("pto.pnot", register("nn", "n"))
def _not(m: Machine, op: Op) -> Predicate:
    (source,), mask = _gated(m, op)
    return _only_where(m, op, m.b.op("tile.xor", lhs=source, rhs=constant(1, UINT8)), mask)


@declare("pto.psel", register("nnn", "n"))
def _select(m: Machine, op: Op) -> Predicate:
    masks = [m.get(v, Predicate) for v in op.operands]
    finest = min(grain(mask.expr) for mask in masks)
    then, other = (regrained(m, mask.expr, finest) for mask in masks[:2])
    return predicate(op, where(m, active(m, masks[2], finest), then, other))


# lanes that move or change their width


@declare("pto.pbitcast", register("n", "n"), is_by_bits=True)
def _bitcast(m: Machine, op: Op) -> Predicate:
    """The same image, seen in lanes of another width."""
    source = m.get(op.operands[0], Predicate)
    return predicate(op, source.expr, is_all=source.is_all)


@declare("pto.ppack", register("n", "n", "part"), is_by_bits=True)
def _pack(m: Machine, op: Op) -> Predicate:
    """Every other bit of the image, in its lower or upper half; the other half is zero."""
    flags = m.get(op.operands[0], Predicate).expr
    half = regrained(m, flags, max(2, grain(flags)))
    none = full(m, lanes_of(half), UINT8, 0)
    return predicate(op, joined(m, none, half) if is_upper(op) else joined(m, half, none))


@declare("pto.punpack", register("n", "n", "part"), is_by_bits=True)
def _unpack(m: Machine, op: Op) -> Predicate:
    """The lower or upper half of the image, each bit followed by a zero."""
    flags = m.get(op.operands[0], Predicate).expr
    some = regrained(m, flags, min(COARSEST, grain(flags)))
    count = lanes_of(some) // 2
    return predicate(op, every(m, some, 1, count if is_upper(op) else 0, count))


def is_upper(op: Op) -> bool:
    """Return whether an op asks for the upper half."""
    word = str(op.attributes.get("part", "LOWER"))
    if word not in ("LOWER", "HIGHER", "UPPER"):
        raise AttributeValueError(f"there is no part {word!r}", help="LOWER or HIGHER")
    return word != "LOWER"


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
