"""Streams: vectors loaded from and stored to places that no alignment fits.

Memory here has no alignment, so what a stream keeps back on the machine is written at once and its state is empty. Two
registers of the machine stay: how many bytes the last squeeze kept, and where the stores that follow it have got to.
"""

from __future__ import annotations

from dataclasses import replace

from tilewright.core.enums import CmpType
from tilewright.core.expr import Expr
from tilewright.dtypes import INT32
from tilewright.errors import UnsupportedFeatureError
from tilewright.pto.machine.machine import Machine
from tilewright.pto.machine.registers import compared, flags, iota
from tilewright.pto.machine.tiles import get_cell, moved, set_cell
from tilewright.pto.machine.values import Lowered, Pointer, Token, Vector
from tilewright.pto.module import Op
from tilewright.pto.op import declare
from tilewright.pto.ops.vector_memory import accessed, load, store
from tilewright.pto.text.form import Form, Typing, memory, register
from tilewright.pto.types import ALIGN, Ptr, VReg

_SQUEEZED, _REACHED = "squeezed bytes", "reached bytes"


def squeezed(m: Machine, nbytes: Expr) -> None:
    """Note how many bytes a squeeze has kept."""
    set_cell(m, _SQUEEZED, nbytes)


@declare("pto.sprclr", register("", "", "register"))
def _clear(m: Machine, op: Op) -> None:
    if op.attributes["register"] != "AR":
        raise UnsupportedFeatureError(f"there is no register {op.attributes['register']!r}", help='only "AR"')
    set_cell(m, _REACHED, m.b.index(0))


@declare("pto.init_align", Form("", "a", Typing.RESULT, implied=ALIGN))
@declare("pto.vldas", memory("l", "a"))
def _begin(m: Machine, op: Op, *_: object) -> Token:
    return Token()


@declare("pto.vstar", register("al", ""))
@declare("pto.vstas", memory("ali?", "l?"))
def _flush(m: Machine, op: Op, *_: object) -> tuple[Lowered, ...]:
    """Nothing is kept back, so there is nothing to write."""
    return accessed(m, op, 1)[1] if op.results else ()


@declare("pto.vldus", memory("lai?", "ual?"))
def _load(m: Machine, op: Op, base: Pointer, _: Token, step: Expr | None = None) -> tuple[Lowered | Expr, ...]:
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


@declare("pto.vstus", register("aiul|aul", "al?", "mode", False))
def _store(m: Machine, op: Op, *_: object) -> tuple[Lowered, ...]:
    """The first lanes, as many as the stream moves on."""
    source, base = m.get(op.operands[-2], Vector), m.get(op.operands[-1], Pointer)
    count = m.index(op.operands[1]) if len(op.operands) > 3 else m.b.index(source.lanes)
    _store_first(m, source, base, count)
    return Token(), *_further(m, op, base, count)


@declare("pto.vstur", register("aul", "a", "mode", False))
def _store_squeezed(m: Machine, op: Op, _: Token, source: Vector, base: Pointer) -> Token:
    """The lanes that the last squeeze kept, behind those of the stores before."""
    reached, nbytes = get_cell(m, _REACHED), get_cell(m, _SQUEEZED)
    place = base.having((m.b.scalar("add", base.offset, reached),))
    _store_first(m, source, place, m.b.scalar("floordiv", nbytes, m.b.index(source.element.nbytes)))
    if op.attributes.get("mode", "POST_UPDATE") == "POST_UPDATE":
        set_cell(m, _REACHED, m.b.scalar("add", reached, nbytes))
    return Token()
