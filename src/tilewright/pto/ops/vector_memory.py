"""Vector memory: registers in and out of local memory, in the distributions that the machine has.

Offsets in brackets count elements of the pointer. A form that also results in a pointer accesses the base itself and
gives back the base moved by the offset.

Streams load and store where no alignment fits. Memory here has no alignment, so what a stream keeps back on the machine
is written at once and its state is empty. Two registers of the machine stay: how many bytes the last squeeze kept, and
where the stores that follow it have got to.
"""

from __future__ import annotations

import re
from dataclasses import replace

from tilewright.core.enums import CmpType
from tilewright.core.expr import Expr, constant
from tilewright.dtypes import INT32, UINT8, UNSIGNED
from tilewright.errors import UnsupportedFeatureError
from tilewright.ops.builder import known
from tilewright.pto.laws import keeps_pointer
from tilewright.pto.machine.elements import cast
from tilewright.pto.machine.machine import Machine
from tilewright.pto.machine.places import NBYTES
from tilewright.pto.machine.registers import (
    BLOCK,
    bitcast,
    chosen,
    compared,
    every,
    flags,
    full,
    iota,
    kept,
    lanes_of,
    lit,
    reshaped,
)
from tilewright.pto.machine.tiles import bytes_view, cell_view, get_cell, moved, set_cell
from tilewright.pto.machine.values import Lowered, Pointer, Token, Vector
from tilewright.pto.module import Op
from tilewright.pto.op import declare
from tilewright.pto.text.form import Form, Typing, memory, register
from tilewright.pto.types import ALIGN, SCALARS, Ptr, Scalar, VReg


def unsigned(nbytes: int) -> Scalar:
    """Return the unsigned integer of a size."""
    return SCALARS[f"ui{8 * nbytes}"]


def load(m: Machine, pointer: Pointer, shape: tuple[int, ...], strides: tuple[int | Expr, ...]) -> Expr:
    """Return the elements behind a pointer in one row."""
    source = bytes_view(m, pointer, shape, strides)
    loaded = m.b.load(source, shape)
    return reshaped(m, loaded, 1, shape[0] * shape[1])


def store(
    m: Machine, row: Expr, pointer: Pointer, strides: tuple[int | Expr, ...], on: Expr | None, rows: int = 1
) -> None:
    """Write a row behind a pointer, only where flags are set; what lies elsewhere stays."""
    shape = (rows, lanes_of(row) // rows)
    target, value = bytes_view(m, pointer, shape, strides), reshaped(m, row, *shape)
    if on is not None:
        old = m.b.load(target, shape)
        value = chosen(m, reshaped(m, on, *shape), value, old)
    m.b.store(target, value)


def accessed(m: Machine, op: Op, index: int) -> tuple[Pointer, tuple[Pointer, ...]]:
    """Return where an op reads or writes, and the moved base that it also results in, if it does."""
    base = m.get(op.operands[index], Pointer)
    offsets = m.clause(op, "offset")
    return updated(op, base, moved(m, base, offsets[0]) if offsets else base)


def updated(op: Op, base: Pointer, further: Pointer) -> tuple[Pointer, tuple[Pointer, ...]]:
    """Return where an op reads or writes: further on, or at its base where what lies further on is a result."""
    is_updating = bool(op.results) and isinstance(op.results[-1].type, Ptr)
    return (base, (further,)) if is_updating else (further, ())


def _distribution(op: Op, default: str, element: Scalar) -> tuple[str, Scalar]:
    """Return an op's distribution: its word, and what it moves, an element or the integers of a size that it names."""
    found = re.fullmatch(r"(\w+?)(?:_B(8|16|32|64))?", str(op.attributes.get("dist", default)))
    if found is None:
        raise _unknown(op)
    return found[1], element if found[2] in (None, str(element.bits)) else unsigned(int(found[2]) // 8)


def _unknown(op: Op) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(f"{op.name} has no distribution {op.attributes.get('dist')!r} here")


# loads


_ANYWHERE = """
(%x: !pto.ptr<f32, ub>); %p = pto.addptr %x, %c5 : !pto.ptr<f32, ub> -> !pto.ptr<f32, ub>
; %a = pto.vldas %p -> !pto.align; %r, %b = pto.vldus %p, %a -> v64xf32, !pto.align
"""
_TO_ANYWHERE = """
(%x: v64xf32, %y: !pto.ptr<f32, ub>); %a = pto.init_align : !pto.align
; %b = pto.vstus %a, %i20, %x, %y -> !pto.align; pto.vstas %b, %y, %i20
"""
_ONE_AFTER_ANOTHER = """
(%x: v64xf32, %m: m32, %y: !pto.ptr<f32, ub>); pto.sprclr "AR"; %a = pto.init_align : !pto.align
; %s = pto.vsqz %x, %m -> v64xf32; %b = pto.vstur %a, %s, %y, "POST_UPDATE" -> !pto.align; pto.vstar %b, %y
"""
_SQUEEZED_LANES = "y[:m.sum()] = x[m]"


@declare(
    "pto.vlds",
    memory("l", "ul?"),
    law=keeps_pointer,
    example="(%x: !pto.ptr<f32, ub>, %n: index); %r = {op} %x[%n] : !pto.ptr<f32, ub> -> v64xf32",
    means="x[n : n + 64]",
)
def _load(m: Machine, op: Op) -> tuple[Expr | Pointer, ...]:
    """A register from local memory, spread as `dist` says."""
    at, further = accessed(m, op, 0)
    type_ = op.results[0].of(VReg)
    word, element = _distribution(op, "NORM", type_.element)
    row = _distributed(m, op, replace(at, element=element), word)
    return bitcast(m, row, type_.element.dtype), *further


def _distributed(m: Machine, op: Op, at: Pointer, word: str) -> Expr:
    """Return 256 bytes laid out as a distribution says, as elements of the pointer or wider ones."""
    size = at.element.nbytes
    lanes, block = NBYTES // size, BLOCK // size
    if word == "BRC":
        return full(m, lanes, at.element.dtype, m.b.get(cell_view(m, at), 0))
    if word in ("UNPK", "UNPK4"):
        times = 4 if word == "UNPK4" else 2
        narrow = load(m, replace(at, element=unsigned(size)), (1, lanes // times), (0, 1))
        return cast(m, narrow, UNSIGNED[size * times])
    layouts = {
        "NORM": ((1, lanes), (0, 1)),
        "BRC_BLK": ((8, block), (0, 1)),
        "US": ((lanes // 2, 2), (1, 0)),
        "DS": ((1, lanes), (0, 2)),
        "E2B": ((8, block), (1, 0)),
    }
    if word not in layouts:
        raise _unknown(op)
    return load(m, at, *layouts[word])


@declare(
    "pto.vldsx2",
    memory("l", "uul?", "dist"),
    example="(%x: !pto.ptr<f32, ub>)"
    '; %r, %s = {op} %x[%c0], "DINTLV_B32" : !pto.ptr<f32, ub>, index -> v64xf32, v64xf32',
    means="x[:128:2], x[1:128:2]",
)
def _load_two(m: Machine, op: Op) -> tuple[Expr | Pointer, ...]:
    """Two registers from 512 bytes: every other element, or every other block."""
    at, further = accessed(m, op, 0)
    type_ = op.results[0].of(VReg)
    word, element = _distribution(op, "DINTLV", type_.element)
    held, lanes, block = replace(at, element=element), NBYTES // element.nbytes, BLOCK // element.nbytes
    layouts = {"DINTLV": ((1, lanes), (0, 2), 1), "BDINTLV": ((8, block), (2 * block, 1), block)}
    if word not in layouts:
        raise _unknown(op)
    shape, strides, step = layouts[word]
    places = held, moved(m, held, m.b.index(step))
    rows = [bitcast(m, load(m, place, shape, strides), type_.element.dtype) for place in places]
    return rows[0], rows[1], *further


# stores


@declare(
    "pto.vsts",
    memory("uln?", "l?"),
    law=keeps_pointer,
    example="(%x: v64xf32, %y: !pto.ptr<f32, ub>, %m: m32); {op} %x, %y[%c0], %m",
    means="y[:64][m] = x[m]",
)
def _store(m: Machine, op: Op, source: Vector) -> tuple[Pointer, ...]:
    """A register to local memory, packed as `dist` says."""
    at, further = accessed(m, op, 1)
    word, element = _distribution(op, "NORM", source.element)
    if word == "NORM":
        store(m, source.expr, replace(at, element=source.element), (0, 1), lit(m, op, source.element.nbytes))
    elif word == "1PT":
        row = bitcast(m, source.expr, element.dtype)
        store(m, every(m, row, 1, 0, 1), replace(at, element=element), (0, 1), None)
    elif word in ("PK", "PK4"):  # the low part of each element
        size, times = element.nbytes, 4 if word == "PK4" else 2
        low = cast(m, bitcast(m, source.expr, UNSIGNED[size]), UNSIGNED[size // times])
        store(m, low, replace(at, element=unsigned(size // times)), (0, 1), lit(m, op, size))
    else:
        raise _unknown(op)
    return further


@declare(
    "pto.vstsx2",
    memory("uuln?", "l?", "dist"),
    example="(%x: v64xf32, %z: v64xf32, %y: !pto.ptr<f32, ub>, %m: m32)"
    '; {op} %x, %z, %y[%c0], "INTLV_B32", %m : v64xf32, v64xf32, !pto.ptr<f32, ub>, index, m32',
    means="y[:128:2], y[1:128:2] = x, z",
)
def _store_two(m: Machine, op: Op, low: Vector, high: Vector) -> tuple[Pointer, ...]:
    """Elements of two registers in turn; the mask counts for nothing."""
    at, further = accessed(m, op, 2)
    word, element = _distribution(op, "INTLV", low.element)
    if word != "INTLV":
        raise _unknown(op)
    for first, source in enumerate((low, high)):
        place = moved(m, replace(at, element=element), m.b.index(first))
        store(m, bitcast(m, source.expr, element.dtype), place, (0, 2), None)
    return further


# blocks


def _block_flags(m: Machine, op: Op, each: int) -> Expr | None:
    """Return the flags of eight blocks of elements: block `i` has that of lane `i` of 32 bits."""
    on = lit(m, op, 4)
    if on is None:
        return None
    blank = m.b.tile("full", (8, each), UINT8, constant(0, UINT8))
    return m.b.tile("row_expand", blank, reshaped(m, every(m, on, 1, 0, 8), 8, 1))


def _blocks(m: Machine, op: Op, index: int, element: Scalar) -> tuple[Expr, Pointer, tuple[Pointer, ...]]:
    """Return how many elements lie between blocks, where they begin, and the moved base that is also a result."""
    base = replace(m.get(op.operands[index], Pointer), element=element)
    each = BLOCK // element.nbytes
    stride = m.b.mul(m.index(op.operands[index + 1]), each)
    return stride, *updated(op, base, moved(m, base, m.b.mul(m.index(op.operands[index + 2]), each)))


@declare(
    "pto.vsldb",
    register("liin", "ul?"),
    counts=SCALARS["i16"],
    example="(%x: !pto.ptr<f32, ub>, %m: m32); %r = {op} %x, %h2, %h1, %m -> v64xf32",
    means="np.where(m[:8, None], x.reshape(32, 8)[1:17:2], 0).ravel()",
)
def _load_blocks(m: Machine, op: Op) -> tuple[Expr | Pointer, ...]:
    """A register from blocks of 32 bytes that lie apart."""
    type_ = op.results[0].of(VReg)
    stride, at, further = _blocks(m, op, 0, type_.element)
    each = type_.lanes // 8
    row = load(m, at, (8, each), (stride, 1))
    on = _block_flags(m, op, each)
    if on is not None:
        row = reshaped(m, kept(m, reshaped(m, row, 8, each), on), 1, type_.lanes)
    return row, *further


@declare(
    "pto.vsstb",
    register("uliin", "l?"),
    law=keeps_pointer,
    counts=SCALARS["i16"],
    example="(%x: v64xf32, %y: !pto.ptr<f32, ub>, %m: m32); {op} %x, %y, %h2, %h1, %m",
    means="y.reshape(32, 8)[1:17:2][m[:8]] = x.reshape(8, 8)[m[:8]]",
)
def _store_blocks(m: Machine, op: Op, source: Vector) -> tuple[Pointer, ...]:
    """A register to blocks of 32 bytes that lie apart."""
    stride, at, further = _blocks(m, op, 1, source.element)
    each = source.lanes // 8
    on = _block_flags(m, op, each)
    if (known(stride) or 0) >= each:
        store(m, source.expr, at, (stride, 1), on, rows=8)
        return further
    flat = None if on is None else reshaped(m, on, 1, source.lanes)
    for block in range(8):  # they may meet: the last one counts
        lit = None if flat is None else every(m, flat, 1, block * each, each)
        row = every(m, source.expr, 1, block * each, each)
        store(m, row, moved(m, at, m.b.mul(stride, block)), (0, 1), lit)
    return further


# streams


_SQUEEZED, _REACHED = "squeezed bytes", "reached bytes"


def squeezed(m: Machine, nbytes: Expr) -> None:
    """Note how many bytes a squeeze has kept."""
    set_cell(m, _SQUEEZED, nbytes)


@declare("pto.sprclr", register("", "", "register"), example=_ONE_AFTER_ANOTHER, means=_SQUEEZED_LANES)
def _clear(m: Machine, op: Op) -> None:
    """Let what is stored without alignment begin anew."""
    if op.attributes["register"] != "AR":
        raise UnsupportedFeatureError(f"there is no register {op.attributes['register']!r}", help='only "AR"')
    set_cell(m, _REACHED, m.b.index(0))


@declare("pto.init_align", Form("", "a", Typing.RESULT, implied=ALIGN), example=_TO_ANYWHERE, means="y[:20] = x[:20]")
@declare("pto.vldas", memory("l", "a"), example=_ANYWHERE, means="r = x[5:69]")
def _begin(m: Machine, op: Op) -> Token:
    """The state that loads or stores without alignment begin with."""
    return Token()


@declare("pto.vstar", register("al", ""), example=_ONE_AFTER_ANOTHER, means=_SQUEEZED_LANES)
@declare("pto.vstas", memory("ali?", "l?"), example=_TO_ANYWHERE, means="y[:20] = x[:20]")
def _flush(m: Machine, op: Op) -> tuple[Lowered, ...]:
    """Nothing is kept back, so there is nothing to write."""
    return accessed(m, op, 1)[1] if op.results else ()


@declare("pto.vldus", memory("lai?", "ual?"), example=_ANYWHERE, means="r = x[5:69]")
def _load_unaligned(
    m: Machine, op: Op, base: Pointer, _: Token, step: Expr | None = None
) -> tuple[Lowered | Expr, ...]:
    """A register from an address of any alignment, and the state for the next."""
    at = accessed(m, op, 0)[0]
    type_ = op.results[0].of(VReg)
    row = load(m, replace(at, element=type_.element), (1, type_.lanes), (0, 1))
    return row, Token(), *_further(m, op, at, m.b.index(step or type_.lanes))


def _further(m: Machine, op: Op, base: Pointer, step: Expr) -> tuple[Pointer, ...]:
    """Return the pointer that comes out of an op, if one does."""
    return (moved(m, base, step),) if isinstance(op.results[-1].type, Ptr) else ()


def _store_first(m: Machine, source: Vector, at: Pointer, count: Expr) -> None:
    """Write the first lanes of a vector."""
    on = flags(m, compared(m, iota(m, source.lanes), CmpType.LT, m.b.cast(count, INT32)), source.lanes)
    store(m, source.expr, replace(at, element=source.element), (0, 1), on)


@declare("pto.vstus", register("aiul|aul", "al?", "mode", False), example=_TO_ANYWHERE, means="y[:20] = x[:20]")
def _store_unaligned(m: Machine, op: Op) -> tuple[Lowered, ...]:
    """The first lanes, as many as the stream moves on."""
    source, base = m.get(op.operands[-2], Vector), m.get(op.operands[-1], Pointer)
    count = m.index(op.operands[1]) if len(op.operands) > 3 else m.b.index(source.lanes)
    _store_first(m, source, base, count)
    return Token(), *_further(m, op, base, count)


@declare("pto.vstur", register("aul", "a", "mode", False), example=_ONE_AFTER_ANOTHER, means=_SQUEEZED_LANES)
def _store_squeezed(m: Machine, op: Op, _: Token, source: Vector, base: Pointer) -> Token:
    """The lanes that the last squeeze kept, behind those of the stores before."""
    reached, nbytes = get_cell(m, _REACHED), get_cell(m, _SQUEEZED)
    place = base.having((m.b.scalar("add", base.offset, reached),))
    _store_first(m, source, place, m.b.scalar("floordiv", nbytes, m.b.index(source.element.nbytes)))
    if op.attributes.get("mode", "POST_UPDATE") == "POST_UPDATE":
        set_cell(m, _REACHED, m.b.scalar("add", reached, nbytes))
    return Token()
