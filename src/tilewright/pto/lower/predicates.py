"""Predicates: masks from patterns, counts and comparisons, and what is computed of masks.

A mask is the machine's image of it: one bit for each byte of a register, a lane's bit at its first byte. What makes
masks from lanes sets only those bits; what changes the width of lanes keeps all of them.
"""

from __future__ import annotations

import re

from tilewright.core.enums import CmpType
from tilewright.core.expr import Expr, constant
from tilewright.core.types import ScalarType
from tilewright.dtypes import INT32, UINT8
from tilewright.errors import AttributeValueError
from tilewright.pto.lower.build import element_of, known
from tilewright.pto.lower.machine import Machine, lowers
from tilewright.pto.lower.registers import (
    active,
    compared,
    every,
    flags,
    full,
    grain,
    iota,
    joined,
    lanes_of,
    mask_of,
    mask_type,
    predicate,
    regrained,
    where,
)
from tilewright.pto.lower.values import Number, Predicate
from tilewright.pto.module import Op

COMPARISONS = {
    "eq": CmpType.EQ, "ne": CmpType.NE, "lt": CmpType.LT, "le": CmpType.LE, "gt": CmpType.GT, "ge": CmpType.GE,
}  # fmt: skip
WIDTHS = ("b8", "b16", "b32")
"""The lanes that masks can have."""
COARSEST = 8
"""Bytes of the widest lanes there are."""


def comparison(m: Machine, op: Op, lhs: Expr, word: str, rhs: Expr) -> Predicate:
    """Return where a comparison holds among the lanes of the op's mask."""
    if word not in COMPARISONS:
        raise AttributeValueError(f"there is no comparison {word!r}", help=f"one of {', '.join(COMPARISONS)}")
    lanes, nbytes = lanes_of(lhs), element_of(lhs).get_byte()
    on = flags(m, compared(m, lhs, COMPARISONS[word], rhs), lanes)
    mask = mask_of(m, op)
    lit = None if mask is None else active(m, mask, nbytes)
    on = on if lit is None else m.b.op("tile.and_", lhs=on, rhs=lit)
    return predicate(op, regrained(m, on, mask_type(op.results[0]).bits // 8))


def everywhere(m: Machine, op: Op, result: int = 0) -> Predicate:
    """Return a mask with every lane set."""
    lanes = mask_type(op.results[result]).lanes
    return predicate(op, full(m, lanes, UINT8, 1), result, is_all=True)


def _first(m: Machine, op: Op, count: Expr) -> Predicate:
    """Return a mask of the first lanes."""
    lanes, number = mask_type(op.results[0]).lanes, known(count)
    if number is not None and number >= lanes:
        return everywhere(m, op)
    bits = compared(m, iota(m, lanes), CmpType.LT, m.b.cast(count, INT32))
    return predicate(op, flags(m, bits, lanes))


@lowers(*(f"pto.{name}_{width}" for name in ("pset", "pge") for width in WIDTHS))
def _pattern(m: Machine, op: Op) -> Predicate:
    word, lanes = str(op.attributes["pattern"]), mask_type(op.results[0]).lanes
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


@lowers(*(f"pto.plt_{width}" for width in WIDTHS))
def _less_than(m: Machine, op: Op) -> tuple[Predicate, Number]:
    """The first lanes, as many as are left, and how many are left behind them."""
    count = m.expr(op.operands[0])
    assert isinstance(count.type, ScalarType)
    lanes, none = constant(mask_type(op.results[0]).lanes, count.type.dtype), constant(0, count.type.dtype)
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


@lowers(*_LOGIC)
def _logic(m: Machine, op: Op) -> Predicate:
    (lhs, rhs), mask = _gated(m, op)
    return _only_where(m, op, m.b.op(f"tile.{_LOGIC[op.name]}", lhs=lhs, rhs=rhs), mask)


@lowers("pto.pnot")
def _not(m: Machine, op: Op) -> Predicate:
    (source,), mask = _gated(m, op)
    return _only_where(m, op, m.b.op("tile.xor", lhs=source, rhs=constant(1, UINT8)), mask)


@lowers("pto.psel")
def _select(m: Machine, op: Op) -> Predicate:
    masks = [m.get(v, Predicate) for v in op.operands]
    finest = min(grain(mask.expr) for mask in masks)
    then, other = (regrained(m, mask.expr, finest) for mask in masks[:2])
    return predicate(op, where(m, active(m, masks[2], finest), then, other))


# lanes that move or change their width


@lowers("pto.pbitcast")
def _bitcast(m: Machine, op: Op) -> Predicate:
    """The same image, seen in lanes of another width."""
    source = m.get(op.operands[0], Predicate)
    return predicate(op, source.expr, is_all=source.is_all)


@lowers("pto.ppack")
def _pack(m: Machine, op: Op) -> Predicate:
    """Every other bit of the image, in its lower or upper half; the other half is zero."""
    flags = m.get(op.operands[0], Predicate).expr
    half = regrained(m, flags, max(2, grain(flags)))
    none = full(m, lanes_of(half), UINT8, 0)
    return predicate(op, joined(m, none, half) if is_upper(op) else joined(m, half, none))


@lowers("pto.punpack")
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
