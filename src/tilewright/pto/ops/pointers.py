"""Pointers: addresses, and the elements they lead to. What stands in brackets after one is the clause `offset`."""

from __future__ import annotations

from dataclasses import replace

from tilewright.core.expr import Expr, constant
from tilewright.core.extents import bounds
from tilewright.dtypes import FP32
from tilewright.errors import OutOfBoundsError, PtoTypeMismatchError, UnsupportedFeatureError
from tilewright.pto.machine.build import known
from tilewright.pto.machine.machine import Machine
from tilewright.pto.machine.tiles import bytes_view, replaced
from tilewright.pto.machine.values import Lowered, Number, Pointer
from tilewright.pto.module import Op
from tilewright.pto.op import declare
from tilewright.pto.ops.rules import equal
from tilewright.pto.text.form import Form, Layout, Word
from tilewright.pto.types import Ptr, Scalar, Space

_INDEX = {"offset": Word(Layout.INDEX, "i", required=True)}


def _keeps_space(op: Op) -> None:
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
def _castptr(m: Machine, op: Op) -> Lowered:
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
        return Number(m.b.cast(value.offset, type_.dtype))
    assert isinstance(type_, Ptr) and isinstance(value, Number)
    if type_.space is Space.GM:
        raise UnsupportedFeatureError("a number is no address of global memory", help="pass a pointer to the kernel")
    m.knowledge.exposed.add(type_.space)
    return m.memory.pointer(type_.space, type_.element, m.b.index(value.expr))


def _same_type(op: Op) -> None:
    equal(op, "result", op.results[0].type, op.operands[0].type)


@declare("pto.addptr", Form("pi", "p", untyped=1), rule=_same_type, is_by_bytes=True)
def _addptr(m: Machine, op: Op) -> Pointer:
    pointer = m.get(op.operands[0], Pointer)
    return moved(m, pointer, m.index(op.operands[1]))


def moved(m: Machine, pointer: Pointer, elements: Expr) -> Pointer:
    """Return a pointer so many elements further on."""
    number = known(elements)
    if number is not None and abs(number) * pointer.element.nbytes >= 1 << 63:
        raise OutOfBoundsError(f"element {number} of {pointer.element} lies outside every memory")
    return replaced(pointer, m.b.add(pointer.offset, product(m, elements, m.b.index(pointer.element.nbytes))))


def product(m: Machine, lhs: Expr, rhs: Expr) -> Expr:
    """Return a product of offsets and strides; one that may be more than any memory has is checked before it is used.

    Floats tell: what they lose is nothing beside what they are held to.
    """
    made = m.b.scalar("mul", lhs, rhs)
    if known(made) is None and bounds(made) is None:
        size = m.b.scalar("mul", m.b.cast(lhs, FP32), m.b.cast(rhs, FP32))
        inside = (m.b.scalar("lt", size, constant(FARTHEST)), m.b.scalar("gt", size, constant(-FARTHEST)))
        m.b.do("system.device_assert", condition=m.b.scalar("and_", *inside), message="this lies outside every memory")
    return made


FARTHEST = float(1 << 60)
"""No offset into memory is more."""


def _loads_element(op: Op) -> None:
    pointer = op.operands[0].type
    assert isinstance(pointer, Ptr)
    equal(op, "result", op.results[0].type, pointer.element)


@declare("pto.load load_scalar", Form("p", "s", words=_INDEX, index="offset"), rule=_loads_element)
def _load(m: Machine, op: Op) -> Number:
    return Number(m.b.op("tensor.read", x=_element(m, op, 0), indices=(0,)))


def _stores_element(op: Op) -> None:
    value, pointer = op.operands[0].type, op.operands[1].type
    assert isinstance(pointer, Ptr)
    equal(op, "value", value, pointer.element)


@declare(
    "pto.store store_scalar",
    Form("sp", words=_INDEX, index="offset", indexed=1, order=(1, 0)),
    rule=_stores_element,
)
def _store(m: Machine, op: Op) -> None:
    m.b.do("tensor.write", x=_element(m, op, 1), indices=(0,), value=m.expr(op.operands[0]))


def _element(m: Machine, op: Op, index: int) -> Expr:
    """Return the element behind an operand, as far on as the brackets say."""
    pointer, one = m.get(op.operands[index], Pointer), m.b.index(1)
    return bytes_view(m, moved(m, pointer, (m.clause(op, "offset") or (m.b.index(0),))[0]), (one,), (one,))
