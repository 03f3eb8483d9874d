"""Local arrays: a few scalars, or numbers of events, that a function keeps by index."""

from __future__ import annotations

import re
from dataclasses import replace
from math import prod

from tilewright.core.expr import Expr
from tilewright.errors import UnsupportedFeatureError
from tilewright.ops.builder import known
from tilewright.pto.machine.machine import Machine
from tilewright.pto.machine.memory import capacity
from tilewright.pto.machine.threads import MOST_THREADS
from tilewright.pto.machine.tiles import bytes_view
from tilewright.pto.machine.values import Pointer, View
from tilewright.pto.module import Op
from tilewright.pto.op import declare
from tilewright.pto.text.form import Form, Layout, Typing, Word
from tilewright.pto.types import INDEX, SCALARS, Scalar, Space

_INDICES = {"indices": Word(Layout.INDEX, "ii*", required=True)}
_ARRAY = Form("", "o", Typing.RESULT)
_NUMBERS = """
(%n: i32); %a = pto.declare_local_array -> !pto.local_array<4xi32>
; pto.local_array_set %a[%c1], %n; %r = pto.local_array_get %a[%c1] -> i32
"""
_NUMBERS_OF_EVENTS = """
(%n: index); %a = pto.declare_eventid_array -> !pto.eventid_array<4>
; pto.eventid_array_set %a[%c1], %n : !pto.eventid_array<4>
; %r = pto.eventid_array_get %a[%c1] : !pto.eventid_array<4> -> index
"""
EVENTS = r"eventid_array<(\d+)>"
"""How many numbers an array of events has."""


@declare("pto.declare_local_array", _ARRAY, widens=0, example=_NUMBERS, means="r = n")
@declare("pto.declare_eventid_array", _ARRAY, widens=0, example=_NUMBERS_OF_EVENTS, means="r = n")
def _declare(m: Machine, op: Op) -> View:
    """A small array of numbers that a function keeps."""
    text = str(op.results[0].type)
    found = re.fullmatch(r"!pto\.local_array<((?:\d+x)+)(\w+)>", re.sub(EVENTS, r"local_array<\1xi64>", text))
    if found is None or found[2] not in SCALARS:
        raise UnsupportedFeatureError(f"`{text}` is no array of scalars", help="as in !pto.local_array<4x8xi32>")
    shape = [int(n) for n in found[1].split("x")[:-1]]
    if prod(shape) * SCALARS[found[2]].nbytes > capacity(Space.VEC, m.arch):
        message = f"`{text}` is more than the {capacity(Space.VEC, m.arch)} bytes there are"
        raise UnsupportedFeatureError(message, help="keep it in global memory")
    strides = [prod(shape[axis + 1 :]) for axis in range(len(shape))]
    pointer = _own(m, op, SCALARS[found[2]], prod(shape))
    return View(pointer, tuple(map(m.b.index, shape)), tuple(map(m.b.index, strides)))


def _own(m: Machine, op: Op, element: Scalar, count: int) -> Pointer:
    """Return where an array lies; each work item of a launch has one."""
    threads = m.simt.threads
    if threads is None:
        return m.memory.cell(m.here(op), element, count)
    items = prod(known(extent) or MOST_THREADS for extent in threads.extents)
    first = m.memory.cell(m.here(op), element, count * min(items, MOST_THREADS))
    return replace(first, offset=m.b.add(first.offset, m.b.mul(threads.number, count * element.nbytes)))


@declare("pto.local_array_get", Form("o", "s", words=_INDICES, index="indices"), example=_NUMBERS, means="r = n")
@declare(
    "pto.eventid_array_get",
    Form("o", "i", words=_INDICES, index="indices"),
    left_out=lambda op, _: INDEX,
    example=_NUMBERS_OF_EVENTS,
    means="r = n",
)
def _get(m: Machine, op: Op, array: View) -> Expr:
    """A number of an array."""
    view = bytes_view(m, array.pointer, array.shape, array.strides)
    return m.b.cast(m.b.get(view, *(m.clause(op, "indices") or ())), op.results[0].of(Scalar).dtype)


@declare("pto.local_array_set", Form("os", words=_INDICES, index="indices"), example=_NUMBERS, means="r = n")
@declare(
    "pto.eventid_array_set",
    Form("oi", words=_INDICES, index="indices", untyped=1),
    example=_NUMBERS_OF_EVENTS,
    means="r = n",
)
def _set(m: Machine, op: Op, array: View, value: Expr) -> None:
    """Write a number of an array."""
    view = bytes_view(m, array.pointer, array.shape, array.strides)
    number = m.b.cast(value, array.pointer.element.dtype)
    m.b.set(view, number, *(m.clause(op, "indices") or ()))
