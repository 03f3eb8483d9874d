"""Pointers: addresses, and the elements they lead to. What stands in brackets after one is the clause `offset`."""

from __future__ import annotations

from dataclasses import replace

from tilewright.core.expr import Expr
from tilewright.errors import UnsupportedFeatureError
from tilewright.pto.errors import PtoTypeMismatchError
from tilewright.pto.machine.machine import Machine
from tilewright.pto.machine.tiles import cell_view, moved
from tilewright.pto.machine.values import Number, Pointer
from tilewright.pto.module import Op
from tilewright.pto.op import Constants, declare
from tilewright.pto.ops.rules import equal
from tilewright.pto.text.form import Form, Layout, Word
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


@declare("pto.castptr", Form("i|p", "p|i", family="ptr"), rule=_keeps_space, is_by_bytes=True)
def _castptr(m: Machine, op: Op) -> Pointer | Expr:
    value, type_ = m.values[op.operands[0]], op.results[0].type
    if isinstance(value, Pointer):
        if isinstance(type_, Ptr):
            return replace(value, element=type_.element)
        if value.arena is None:
            where = "global memory" if value.space is Space.GM else "a tile without `addr`"
            raise UnsupportedFeatureError(
                f"the address of {where} is not known here", help="offset the pointer with pto.addptr"
            )
        assert isinstance(type_, Scalar)
        return m.b.cast(value.offset, type_.dtype)
    assert isinstance(type_, Ptr) and isinstance(value, Number)
    if type_.space is Space.GM:
        raise UnsupportedFeatureError("a number is no address of global memory", help="pass a pointer to the kernel")
    m.knowledge.exposed.add(type_.space)
    return m.memory.pointer(type_.space, type_.element, m.b.index(value.expr))


def _same_type(op: Op, _: Constants) -> None:
    equal(op, "result", op.results[0].type, op.operands[0].type)


@declare("pto.addptr", Form("pi", "p", untyped=1), rule=_same_type, is_by_bytes=True)
def _addptr(m: Machine, op: Op) -> Pointer:
    pointer = m.get(op.operands[0], Pointer)
    return moved(m, pointer, m.index(op.operands[1]))


def _loads_element(op: Op, _: Constants) -> None:
    pointer = op.operands[0].of(Ptr)
    equal(op, "result", op.results[0].type, pointer.element)


@declare("pto.load load_scalar", Form("p", "s", words=_INDEX, index="offset"), rule=_loads_element)
def _load(m: Machine, op: Op) -> Expr:
    return m.b.get(_element(m, op, 0), 0)


def _stores_element(op: Op, _: Constants) -> None:
    value, pointer = op.operands[0].type, op.operands[1].type
    assert isinstance(pointer, Ptr)
    equal(op, "value", value, pointer.element)


@declare(
    "pto.store store_scalar",
    Form("sp", words=_INDEX, index="offset", indexed=1, order=(1, 0)),
    rule=_stores_element,
)
def _store(m: Machine, op: Op) -> None:
    m.b.set(_element(m, op, 1), m.expr(op.operands[0]), 0)


def _element(m: Machine, op: Op, index: int) -> Expr:
    """Return the element behind an operand, as far on as the brackets say."""
    offset = (m.clause(op, "offset") or (m.b.index(0),))[0]
    return cell_view(m, moved(m, m.get(op.operands[index], Pointer), offset))
