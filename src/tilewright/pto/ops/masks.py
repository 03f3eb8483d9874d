"""Masks: which lanes take part. A mask has one bit for each byte of a register, a lane's bit at its first byte.

What makes masks from lanes sets only those bits; what changes the width of lanes keeps all of them. In memory a mask is
its bits, one behind the other.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from tilewright.core.enums import CmpType
from tilewright.core.expr import Expr, constant
from tilewright.dtypes import INT32, UINT8
from tilewright.errors import AttributeValueError, UnsupportedFeatureError
from tilewright.ops.builder import element_of, known
from tilewright.pto.errors import PtoAttributeError, PtoTypeMismatchError
from tilewright.pto.machine.machine import Machine
from tilewright.pto.machine.places import NBYTES
from tilewright.pto.machine.registers import (
    active,
    chosen,
    compared,
    every,
    flags,
    full,
    grain,
    iota,
    lanes_of,
    lit_lanes_of,
    regrained,
)
from tilewright.pto.machine.tiles import bytes_view, moved
from tilewright.pto.machine.values import Lowered, Pointer, Predicate, Token
from tilewright.pto.module import Op
from tilewright.pto.op import Constants, Lowering, declare, equal
from tilewright.pto.ops.vector_memory import accessed, unsigned, updated
from tilewright.pto.text.form import Form, Slot, Typing, memory, register
from tilewright.pto.types import INDEX, SCALARS, Mask, Scalar

WIDTHS = ("b8", "b16", "b32")
"""The lanes that masks can have."""
_PATTERN = Form("", "n", Typing.RESULT, slots=(Slot("pattern", "string"),), family="mask")
COARSEST = 8
"""Bytes of the widest lanes there are."""


def by_width(
    name: str, form: Form, counts: Scalar = INDEX, example: str | None = None, means: str = ""
) -> Callable[[Lowering], Lowering]:
    """Declare an op for each width of lanes, as in `pto.pset_b8`; all its masks have that width."""
    names = " ".join(f"{name}_{width}" for width in WIDTHS)
    said = {f"{name}_{width}": means.replace("{lanes}", str(2048 // int(width[1:]))) for width in WIDTHS}
    return declare(f"pto.{names}", form, rule=_one_width, counts=counts, example=example, means=said)


def _one_width(op: Op, _: Constants) -> None:
    width = int(op.name.rpartition("b")[2])
    for value in (*op.operands, *op.results):
        if isinstance(value.type, Mask) and value.type.bits != width:
            raise PtoTypeMismatchError(f"`{op.name}` works on !pto.mask<b{width}>, got {value.type}")
    if op.name.startswith("pto.plt"):
        equal(op, "second result", op.results[1].type, op.operands[0].type)
    word = op.attributes.get("pattern")
    if word is not None and str(word) not in _PATTERNS:
        counted = f"`pto.plt_b{width}` counts any lanes, as `pto.make_mask` does with a number"
        help = f"one of {', '.join(_PATTERNS)}; {counted}"
        raise PtoAttributeError(f"`{op.name}` has no pattern {str(word)!r}", help=help)


_PATTERNS = (
    *("PAT_ALL", "PAT_ALLF", "PAT_H", "PAT_Q", "PAT_M3", "PAT_M4"),
    *(f"PAT_VL{count}" for count in (1, 2, 3, 4, 8, 16, 32, 64, 128)),
)


def _first(m: Machine, op: Op, count: Expr) -> Predicate:
    """Return a mask of the first lanes."""
    type_, number = op.results[0].of(Mask), known(count)
    if number is not None and number >= type_.lanes:
        return Predicate(full(m, type_.lanes, UINT8, 1), type_.bits, is_all=True)
    bits = compared(m, iota(m, type_.lanes), CmpType.LT, m.b.cast(count, INT32))
    return Predicate(flags(m, bits, type_.lanes), type_.bits)


@by_width("pset", _PATTERN, example='%r = {op} "PAT_H" : m{width}', means="np.arange({lanes}) < {lanes} / 2")
@by_width("pge", _PATTERN, example='%r = {op} "PAT_VL4" : m{width}', means="np.arange({lanes}) < 4")
def _pattern(m: Machine, op: Op) -> Expr | Predicate:
    """The mask of a pattern."""
    word, lanes = str(op.attributes["pattern"]), op.results[0].of(Mask).lanes
    if word == "PAT_ALLF":
        return full(m, lanes, UINT8, 0)
    shares = {"PAT_ALL": lanes, "PAT_H": lanes // 2, "PAT_Q": lanes // 4}
    counted = re.fullmatch(r"PAT_VL(\d+)", word)
    if counted or word in shares:
        return _first(m, op, constant(int(counted[1]) if counted else shares[word], INT32))
    rest = m.b.tile("fmod", iota(m, lanes), constant(int(word[-1]), INT32))
    return flags(m, compared(m, rest, CmpType.EQ, constant(0, INT32)), lanes)


@by_width(
    "plt",
    register("i", "ni"),
    counts=SCALARS["i32"],
    example="(%n: i32 = 5); %r, %s = {op} %n -> m{width}, i32",
    means="np.arange({lanes}) < n, max(n - {lanes}, 0)",
)
def _less_than(m: Machine, op: Op, count: Expr) -> tuple[Predicate, Expr]:
    """The first lanes, as many as are left, and how many are left behind them."""
    lanes, none = (constant(n, element_of(count)) for n in (op.results[0].of(Mask).lanes, 0))
    rest = m.b.scalar("max", m.b.scalar("sub", count, lanes), none)
    return _first(m, op, m.b.scalar("min", count, lanes)), rest


# logic


@declare(
    "pto.pand por pxor", register("nnn", "n"), means={"pand": "m & o & q", "por": "(m | o) & q", "pxor": "(m ^ o) & q"}
)
@declare("pto.pnot", register("nn", "n"), means="~m & o")
def _logic(m: Machine, op: Op, *masks: Predicate) -> Expr:
    """What is computed of flags where the mask has flags: no other bit gets through."""
    *sources, mask = masks
    lhs, *others = (regrained(m, source.expr, grain(mask.expr)) for source in sources)
    name = {"pto.pand": "and_", "pto.por": "or_"}.get(op.name, "xor")
    made = m.b.tile(name, lhs, others[0] if others else constant(1, UINT8))
    return made if mask.is_all else m.b.tile("and_", made, mask.expr)


@declare("pto.psel", register("nnn", "n"), means="np.where(q, m, o)")
def _select(m: Machine, op: Op, *masks: Predicate) -> Expr:
    """Bits of one mask where a third is set, of another elsewhere."""
    finest = min(grain(mask.expr) for mask in masks)
    then, other = (regrained(m, mask.expr, finest) for mask in masks[:2])
    return chosen(m, active(m, masks[2], finest), then, other)


# lanes that move or change their width


@declare("pto.pbitcast", register("n", "n"), is_by_bits=True, widens=0, means="m")
def _bitcast(m: Machine, op: Op, source: Predicate) -> Predicate:
    """The same image, seen in lanes of another width."""
    return Predicate(source.expr, op.results[0].of(Mask).bits, source.is_all)


@declare(
    "pto.ppack",
    register("n", "n", "part"),
    is_by_bits=True,
    example='(%m: m32); %r = {op} %m, "LOWER" -> m16',
    means="np.append(image(m)[::2], np.zeros(128))",
)
def _pack(m: Machine, op: Op, source: Predicate) -> Expr:
    """Every other bit of the image, in its lower or upper half; the other half is zero."""
    half = regrained(m, source.expr, max(2, grain(source.expr)))
    none = full(m, lanes_of(half), UINT8, 0)
    return m.b.tile("concat", none, half) if is_upper(op) else m.b.tile("concat", half, none)


@declare(
    "pto.punpack",
    register("n", "n", "part"),
    is_by_bits=True,
    example='(%m: m16); %r = {op} %m, "LOWER" -> m32',
    means="np.stack([image(m)[:128], np.zeros(128)], 1).ravel()",
)
def _unpack(m: Machine, op: Op, source: Predicate) -> Expr:
    """The lower or upper half of the image, each bit followed by a zero."""
    some = regrained(m, source.expr, min(COARSEST, grain(source.expr)))
    count = lanes_of(some) // 2
    return every(m, some, 1, count if is_upper(op) else 0, count)


def is_upper(op: Op) -> bool:
    """Return whether an op asks for the upper half."""
    word = str(op.attributes.get("part", "LOWER"))
    if word not in ("LOWER", "HIGHER", "UPPER"):
        raise AttributeValueError(f"there is no part {word!r}", help="LOWER or HIGHER")
    return word != "LOWER"


def _store_bits(m: Machine, image: Expr, at: Pointer) -> None:
    """Write flags as bits, eight a byte, the first one lowest."""
    packed = compared(m, image, CmpType.NE, constant(0, UINT8))
    m.b.store(_bit_view(m, at, lanes_of(image)), packed)


def _load_bits(m: Machine, at: Pointer, count: int) -> Expr:
    """Return bits in memory as flags."""
    return flags(m, m.b.load(_bit_view(m, at, count), (1, count // 8)), count)


def _bit_view(m: Machine, at: Pointer, count: int) -> Expr:
    return bytes_view(m, replace(at, element=unsigned(1)), (1, count // 8), (0, 1))


@declare(
    "pto.psts",
    memory("nl", "l?", "dist"),
    example='(%m: m32, %y: !pto.ptr<ui8, ub>); {op} %m, %y[%c0], "NORM" : m32, !pto.ptr<ui8, ub>, index',
    means='y[:32] = np.packbits(image(m), None, "little")',
)
@declare(
    "pto.psti",
    memory("nli?", "l?", "dist"),
    example='(%m: m32, %y: !pto.ptr<ui8, ub>); {op} %m, %y[%c0], "NORM" : m32, !pto.ptr<ui8, ub>, index',
    means='y[:32] = np.packbits(image(m), None, "little")',
)
def _store_mask(m: Machine, op: Op, mask: Predicate) -> tuple[Pointer, ...]:
    """A mask to local memory, a bit a lane or a bit a byte."""
    at, further = _place(m, op, 1)
    image = regrained(m, mask.expr, 1)
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
    return updated(op, at, moved(m, at, m.index(op.operands[index + 1])))


@declare(
    "pto.plds",
    memory("l", "nl?", "dist"),
    is_by_bits=True,
    example='(%x: !pto.ptr<ui8, ub>); %r = {op} %x[%c0], "NORM" : !pto.ptr<ui8, ub>, index -> m32',
    means='np.unpackbits(x[:32], None, None, "little")',
)
@declare(
    "pto.pldi",
    memory("li?", "nl?", "dist"),
    is_by_bits=True,
    example='(%x: !pto.ptr<ui8, ub>); %r = {op} %x[%c0], "NORM" : !pto.ptr<ui8, ub>, index -> m32',
    means='np.unpackbits(x[:32], None, None, "little")',
)
def _load_mask(m: Machine, op: Op) -> tuple[Expr | Pointer, ...]:
    """A mask from local memory."""
    at, further = _place(m, op, 0)
    word = op.attributes.get("dist", "NORM")
    if word == "NORM":
        image = _load_bits(m, at, NBYTES)
    elif word == "US":
        image = _doubled(m, _load_bits(m, at, NBYTES // 2))
    elif word == "DS":
        image = every(m, _load_bits(m, at, 2 * NBYTES), 2, 0, NBYTES)
    else:
        raise UnsupportedFeatureError(f"{op.name} has no distribution {word!r}", help="NORM, US or DS")
    return image, *further


def _doubled(m: Machine, row: Expr) -> Expr:
    """Return each lane twice."""
    lanes = lanes_of(row)
    column = m.b.tile("reshape", row, (lanes, 1))
    blank = m.b.tile("full", (lanes, 2), UINT8, constant(0, UINT8))
    return m.b.tile("reshape", m.b.tile("row_expand", blank, column), (1, 2 * lanes))


@declare(
    "pto.pstu",
    register("anli?", "al?"),
    example="(%m: m32, %y: !pto.ptr<ui32, ub>); %a = pto.init_align : !pto.align"
    "; %b, %p = {op} %a, %m, %y : !pto.align, m32, !pto.ptr<ui32, ub> -> !pto.align, !pto.ptr<ui32, ub>",
    means='y[:2] = np.packbits(m, None, "little").view("u4")',
)
def _store_mask_unaligned(m: Machine, op: Op, _: Token, mask: Predicate, base: Pointer) -> tuple[Lowered, ...]:
    """One bit a lane, however wide lanes are."""
    own = lit_lanes_of(m, mask)
    _store_bits(m, own, base)
    further = base.having((m.b.add(base.offset, lanes_of(own) // 8),))
    return (Token(), further) if len(op.results) > 1 else (Token(),)
