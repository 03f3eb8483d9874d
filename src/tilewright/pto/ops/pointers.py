"""Pointers: addresses, and the elements they lead to. What stands in brackets after one is the clause `offset`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tilewright.core.expr import Expr
from tilewright.errors import UnsupportedFeatureError
from tilewright.pto.errors import PtoOperandError, PtoTypeMismatchError
from tilewright.pto.example import Example
from tilewright.pto.machine.machine import Machine
from tilewright.pto.machine.tiles import cell_view, moved
from tilewright.pto.machine.values import Pointer, Tile, View
from tilewright.pto.module import Op
from tilewright.pto.op import Constants, declare, element_type, equal, gives
from tilewright.pto.ops.buffers import start_of
from tilewright.pto.text.form import Form, Layout, Word
from tilewright.pto.text.typetext import brief_text
from tilewright.pto.types import Ptr, Scalar, Space

_INDEX = {"offset": Word(Layout.INDEX, "i", required=True)}


def _keeps_space(op: Op, _: Constants) -> None:
    source, target = op.operands[0].type, op.results[0].type
    if isinstance(source, Ptr) and isinstance(target, Ptr) and source.space is not target.space:
        raise PtoTypeMismatchError(
            f"`pto.castptr` keeps the memory space, got {source} to {target}", help="copy between spaces instead"
        )
    for type in (source, target):
        if isinstance(type, Scalar) and type.name not in ("i64", "ui64", "si64", "index"):
            raise PtoTypeMismatchError(f"an address is i64, not {type}", help="widen it with `arith.extui` first")
    if isinstance(source, Scalar) and isinstance(target, Scalar):
        raise PtoTypeMismatchError("`pto.castptr` needs a pointer on one side", help="use `arith.index_cast`")


@declare(
    "pto.castptr",
    Form("i|p|r", "p|i", family="ptr"),
    rule=_keeps_space,
    is_by_bytes=True,
    example="(%n: i64 = 0); %p = {op} %n -> !pto.ptr<f32, ub>; pto.store_scalar %x1.0, %p[%c0] : !pto.ptr<f32, ub>, f32"
    "; %r = pto.load_scalar %p[%c0] -> f32",
    means="r = 1",
)
def _castptr(m: Machine, op: Op, value: Pointer | Tile | View | Expr) -> Pointer | Expr:
    """An address, or that of a memref, as another pointer, or a number as an address."""
    type_ = op.results[0].type
    if isinstance(value, Tile):
        value = start_of(m, value)
    if isinstance(value, View):
        value = value.pointer
    if isinstance(value, Pointer):
        if isinstance(type_, Ptr) and type_.space is value.space:
            return replace(value, element=type_.element)
        if isinstance(type_, Scalar) and value.space is Space.GM:
            return value  # which may be passed on, until somebody makes it a pointer again
        if value.arena is None or isinstance(type_, Ptr):
            where = "global memory" if value.space is Space.GM else "a tile without `addr`"
            raise UnsupportedFeatureError(
                f"the address of {where} is not known here", help="offset the pointer with pto.addptr"
            )
        assert isinstance(type_, Scalar)
        return m.b.cast(value.offset, type_.dtype)
    assert isinstance(type_, Ptr)
    if type_.space is Space.GM:
        raise UnsupportedFeatureError("a number is no address of global memory", help="pass a pointer to the kernel")
    m.knowledge.exposed.add(type_.space)
    return m.memory.pointer(type_.space, type_.element, m.b.index(value))


@declare(
    "pto.addptr",
    Form("pi", "p", untyped=1),
    rule=gives(lambda op: op.operands[0].type),
    is_by_bytes=True,
    example="(%x: !pto.ptr<f32, ub>, %n: index); %p = {op} %x, %n : !pto.ptr<f32, ub> -> !pto.ptr<f32, ub>"
    "; %r = pto.load_scalar %p[%c0] -> f32",
    means="r = x[n]",
)
def _addptr(m: Machine, op: Op, pointer: Pointer, elements: Expr) -> Pointer:
    """An address so many elements on."""
    return moved(m, pointer, m.b.index(elements))


_LOAD = Form("p", "s", words=_INDEX, index="offset")
_STORE = Form("sp", words=_INDEX, index="offset", indexed=1, order=(1, 0))


def _past_caches(op: Op, _: Constants) -> None:
    """Refuse what is read and written past the caches of anything but whole numbers in global memory."""
    pointer = next(value for value in op.operands if isinstance(value.type, Ptr))
    type_ = pointer.of(Ptr)
    if type_.space is not Space.GM or not type_.element.is_integer:
        message = f"`{op.name}` takes integers of gm, `%{pointer.name}` is {brief_text(type_)}"
        raise PtoOperandError(message, help="use `pto.load` and `pto.store`")


def _copied(op: str, x: Any, out: Any) -> Any:
    out[1] = x[3]
    return out


_PAST_CACHES = Example(
    "x: i32 8 in -9..9, out: i32 8",
    """
    %v = pto.ld_dev %x[%c3] : !pto.ptr<i32, gm> -> i32
    pto.st_dev %v, %out[%c1] : !pto.ptr<i32, gm>, i32
    """,
    _copied,
)


@declare(
    "pto.load load_scalar",
    _LOAD,
    rule=gives(lambda op: element_type(op.operands[0].type)),
    knows_packed=True,
    example="(%x: !pto.ptr<f32, ub>, %n: index); %r = {op} %x[%n] -> f32",
    means="x[n]",
)
@declare(
    "pto.ld_dev",
    _LOAD,
    rule=gives(lambda op: element_type(op.operands[0].type)),
    law=_past_caches,
    example=_PAST_CACHES,
)
def _load(m: Machine, op: Op, pointer: Pointer) -> Expr:
    """An element of memory."""
    return m.b.get(_element(m, op, pointer), 0)


def _stores_element(op: Op, _: Constants) -> None:
    value, pointer = op.operands
    equal(op, "value", value.type, element_type(pointer.type))


@declare(
    "pto.store store_scalar",
    _STORE,
    rule=_stores_element,
    knows_packed=True,
    example="(%n: f32, %y: !pto.ptr<f32, ub>); {op} %n, %y[%c3] : !pto.ptr<f32, ub>, f32",
    means="y[3] = n",
)
@declare("pto.st_dev", _STORE, rule=_stores_element, law=_past_caches, example=_PAST_CACHES)
def _store(m: Machine, op: Op, value: Expr, pointer: Pointer) -> None:
    """Write an element of memory."""
    m.b.set(_element(m, op, pointer), value, 0)


def _element(m: Machine, op: Op, pointer: Pointer) -> Expr:
    """Return the element behind a pointer, as far on as the brackets say."""
    offset = (m.clause(op, "offset") or (m.b.index(0),))[0]
    return cell_view(m, moved(m, pointer, offset))
