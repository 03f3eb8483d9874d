"""Streams: unaligned loads and stores, and the mask loads and stores beside them.

Memory here has no alignment, so what a stream keeps back on the machine is written at once and its state is empty. Two
registers of the machine stay: how many bytes the last squeeze kept, and where the stores that follow it have got to.
"""

from __future__ import annotations

from tilewright.core.enums import CmpType
from tilewright.core.expr import Expr, constant
from tilewright.dtypes import INT32, UINT8
from tilewright.errors import UnsupportedFeatureError
from tilewright.pto.lower.machine import Machine, lowers
from tilewright.pto.lower.registers import (
    NBYTES,
    compared,
    every,
    flags,
    full,
    iota,
    lanes_of,
    mask_type,
    predicate,
    regrained,
    take,
    vector,
    vector_type,
)
from tilewright.pto.lower.tiles import bytes_view
from tilewright.pto.lower.values import Lowered, Number, Pointer, Predicate, Token, Vector
from tilewright.pto.lower.vector_memory import accessed, elements, load, store, unsigned, view
from tilewright.pto.lower.views import moved
from tilewright.pto.module import Op
from tilewright.pto.types import I64, Ptr

_SQUEEZED, _REACHED = "squeezed bytes", "reached bytes"


def _register(m: Machine, name: str) -> Expr:
    one = m.b.index(1)
    return bytes_view(m, m.memory.cell(name, I64), (one,), (one,))


def _get(m: Machine, name: str) -> Expr:
    return m.b.index(m.b.op("tensor.read", x=_register(m, name), indices=(0,)))


def _set(m: Machine, name: str, value: Expr) -> None:
    m.b.do("tensor.write", x=_register(m, name), indices=(0,), value=m.b.cast(value, I64.dtype))


def squeezed(m: Machine, nbytes: Expr) -> None:
    """Note how many bytes a squeeze has kept."""
    _set(m, _SQUEEZED, nbytes)


@lowers("pto.sprclr")
def _clear(m: Machine, op: Op) -> None:
    if op.attributes["register"] != "AR":
        raise UnsupportedFeatureError(f"there is no register {op.attributes['register']!r}", help='only "AR"')
    _set(m, _REACHED, m.b.index(0))


@lowers("pto.init_align", "pto.vldas")
def _begin(m: Machine, op: Op) -> Token:
    return Token()


@lowers("pto.vstar", "pto.vstas")
def _flush(m: Machine, op: Op) -> tuple[Lowered, ...]:
    """Nothing is kept back, so there is nothing to write."""
    if not op.results:
        return ()
    return accessed(m, op, 1)[1]


@lowers("pto.vldus")
def _load(m: Machine, op: Op) -> tuple[Lowered, ...]:
    at, _ = accessed(m, op, 0)
    type_ = vector_type(op.results[0])
    row = load(m, elements(at, type_.element), (1, type_.lanes), (0, 1))
    numbers = [v for v in op.operands if isinstance(m.values[v], Number)]
    step = m.index(numbers[0]) if numbers else m.b.index(type_.lanes)
    further = (moved(m, at, step),) if isinstance(op.results[-1].type, Ptr) else ()
    return vector(op, row), Token(), *further


def _store_first(m: Machine, source: Vector, at: Pointer, count: Expr) -> None:
    """Write the first lanes of a vector."""
    on = flags(m, compared(m, iota(m, source.lanes), CmpType.LT, m.b.cast(count, INT32)), source.lanes)
    store(m, source.expr, elements(at, source.element), (0, 1), on)


@lowers("pto.vstus")
def _store(m: Machine, op: Op) -> tuple[Lowered, ...]:
    """The first lanes, as many as the stream moves on."""
    source = next(v for v in (m.values[o] for o in op.operands) if isinstance(v, Vector))
    base = m.get(op.operands[-1], Pointer)
    numbers = [v for v in op.operands if isinstance(m.values[v], Number)]
    count = m.index(numbers[0]) if numbers else m.b.index(source.lanes)
    _store_first(m, source, base, count)
    further = (moved(m, base, count),) if isinstance(op.results[-1].type, Ptr) else ()
    return Token(), *further


@lowers("pto.vstur")
def _store_squeezed(m: Machine, op: Op) -> Token:
    """The lanes that the last squeeze kept, behind those of the stores before."""
    source, base = m.get(op.operands[1], Vector), m.get(op.operands[2], Pointer)
    reached, nbytes = _get(m, _REACHED), _get(m, _SQUEEZED)
    place = base.having((m.b.scalar("add", base.offset, reached),))
    _store_first(m, source, place, m.b.scalar("floordiv", nbytes, m.b.index(source.element.nbytes)))
    if op.attributes.get("mode", "POST_UPDATE") == "POST_UPDATE":
        _set(m, _REACHED, m.b.scalar("add", reached, nbytes))
    return Token()


# masks in memory: one bit for each byte of a register


def _image(m: Machine, mask: Predicate) -> Expr:
    return regrained(m, mask.expr, mask.bits // 8, 1)


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


@lowers("pto.psts", "pto.psti")
def _store_mask(m: Machine, op: Op) -> tuple[Pointer, ...]:
    at, further = _place(m, op, 1)
    image, word = _image(m, m.get(op.operands[0], Predicate)), op.attributes.get("dist", "NORM")
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


@lowers("pto.plds", "pto.pldi")
def _load_mask(m: Machine, op: Op) -> tuple[Predicate | Pointer, ...]:
    at, further = _place(m, op, 0)
    word, want = op.attributes.get("dist", "NORM"), mask_type(op.results[0]).bits // 8
    if word == "NORM":
        image = _load_bits(m, at, NBYTES)
    elif word == "US":
        half = _load_bits(m, at, NBYTES // 2)
        image = _doubled(m, half)
    elif word == "DS":
        image = every(m, _load_bits(m, at, 2 * NBYTES), 2, 0, NBYTES)
    else:
        raise UnsupportedFeatureError(f"{op.name} has no distribution {word!r}", help="NORM, US or DS")
    return predicate(op, regrained(m, image, 1, want)), *further


def _doubled(m: Machine, row: Expr) -> Expr:
    """Return each lane twice."""
    lanes = lanes_of(row)
    column = m.b.op("tile.reshape", x=row, shape=(lanes, 1))
    blank = m.b.op("tile.full", shape=(lanes, 2), dtype=UINT8, value=constant(0, UINT8))
    return m.b.op("tile.reshape", x=m.b.op("tile.row_expand", x=blank, vec=column), shape=(1, 2 * lanes))


@lowers("pto.pstu")
def _store_mask_unaligned(m: Machine, op: Op) -> tuple[Lowered, ...]:
    """One bit a lane, however wide lanes are."""
    mask, base = m.get(op.operands[1], Predicate), m.get(op.operands[2], Pointer)
    _store_bits(m, mask.expr, base)
    nbytes = lanes_of(mask.expr) // 8
    further = base.having((m.b.add(base.offset, nbytes),))
    return (Token(), further) if len(op.results) > 1 else (Token(),)
