"""Vector carries: sums, differences and products wider than a lane, in parts."""

from __future__ import annotations

from tilewright import dtypes
from tilewright.core.enums import CmpType
from tilewright.core.expr import Expr, constant
from tilewright.dtypes import UNSIGNED
from tilewright.ops.builder import element_of
from tilewright.pto.machine.elements import cast
from tilewright.pto.machine.machine import Machine
from tilewright.pto.machine.operands import rows_of
from tilewright.pto.machine.registers import active, compared, flags, lanes_of, masked, regrained
from tilewright.pto.machine.values import Predicate, Vector
from tilewright.pto.module import Op
from tilewright.pto.op import declare
from tilewright.pto.text.form import register
from tilewright.pto.types import VReg


def _in_unsigned(m: Machine, op: Op) -> list[Expr]:
    rows = rows_of(m, op)
    dtype = UNSIGNED[element_of(rows[0]).get_byte()]
    return [cast(m, row, dtype) for row in rows]


def _both(m: Machine, op: Op, total: Expr, on: Expr) -> tuple[Expr, Expr]:
    """Return a sum and the flags beside it, both only where the mask is set."""
    mask, element = m.get(op.operands[-1], Predicate), op.results[0].of(VReg).element
    among = active(m, mask, element.nbytes)
    carry = on if among is None else m.b.tile("and_", on, among)
    return masked(m, cast(m, total, element.dtype), mask), carry


def _less(m: Machine, lhs: Expr, rhs: Expr) -> Expr:
    return flags(m, compared(m, lhs, CmpType.LT, rhs), lanes_of(lhs))


def _not(m: Machine, on: Expr) -> Expr:
    return m.b.tile("xor", on, constant(1, dtypes.UINT8))


_EXAMPLE = "(%x: v64xi32, %y: v64xi32, %m: m32{}); %r, %s = {{op}} %x, %y, {} -> v64xi32, {}"
_WIDE = '{}.view("u4").astype(int)'


@declare(
    "pto.vaddc",
    register("vvm", "vm"),
    means='x + y, x.view("u4") + y.view("u4") < x.view("u4")',
    example=_EXAMPLE.format("", "%m", "m32"),
)
def _add_with_carry(m: Machine, op: Op) -> tuple[Expr, Expr]:
    """Sums, and the lanes that wrapped."""
    lhs, rhs = _in_unsigned(m, op)
    total = m.b.tile("add", lhs, rhs)
    return _both(m, op, total, _less(m, total, lhs))


@declare(
    "pto.vsubc",
    register("vvm", "vm"),
    means='x - y, x.view("u4") >= y.view("u4")',
    example=_EXAMPLE.format("", "%m", "m32"),
)
def _subtract_with_carry(m: Machine, op: Op) -> tuple[Expr, Expr]:
    """The difference; the mask says where nothing was borrowed."""
    lhs, rhs = _in_unsigned(m, op)
    return _both(m, op, m.b.tile("sub", lhs, rhs), _not(m, _less(m, lhs, rhs)))


@declare(
    "pto.vaddcs",
    register("vvmm", "vm"),
    means=f"np.where(o, x + y + m, 0), o & ({_WIDE.format('x')} + {_WIDE.format('y')} + m >= 1 << 32)",
    example=_EXAMPLE.format(", %o: m32", "%m, %o", "m32"),
)
def _add_carry(m: Machine, op: Op, x: Vector, y: Vector, given: Predicate) -> tuple[Expr, Expr]:
    """The sum of both and the carry that comes in."""
    lhs, rhs = _in_unsigned(m, op)
    carry = regrained(m, given.expr, element_of(lhs).get_byte())
    first = m.b.tile("add", lhs, rhs)
    total = m.b.tile("add", first, cast(m, carry, element_of(first)))
    return _both(m, op, total, m.b.tile("or_", _less(m, first, lhs), _less(m, total, first)))


@declare(
    "pto.vsubcs",
    register("vvmm", "vm"),
    means=f"np.where(o, x - y - (1 - m), 0), o & ({_WIDE.format('x')} >= {_WIDE.format('y')} + (1 - m))",
    example=_EXAMPLE.format(", %o: m32", "%m, %o", "m32"),
)
def _subtract_borrow(m: Machine, op: Op, x: Vector, y: Vector, given: Predicate) -> tuple[Expr, Expr]:
    """The difference, less one where something was borrowed before."""
    lhs, rhs = _in_unsigned(m, op)
    carry = regrained(m, given.expr, element_of(lhs).get_byte())
    borrow = cast(m, _not(m, carry), element_of(lhs))
    first = m.b.tile("sub", lhs, rhs)
    total = m.b.tile("sub", first, borrow)
    return _both(m, op, total, _not(m, m.b.tile("or_", _less(m, lhs, rhs), _less(m, first, borrow))))


@declare(
    "pto.vmull",
    register("vvm", "vv"),
    means="x * y, x.astype(int) * y >> 32",
    example=_EXAMPLE.format("", "%m", "v64xi32"),
)
def _long_product(m: Machine, op: Op, lhs: Vector, rhs: Vector, mask: Predicate) -> tuple[Expr, Expr]:
    """The low and the high half of the whole product."""
    dtype = element_of(lhs.expr)
    wide = dtypes.INT64 if dtype.is_signed_int() else dtypes.UINT64
    product = m.b.tile("mul", cast(m, lhs.expr, wide), cast(m, rhs.expr, wide))
    high = m.b.tile("shr", product, constant(dtype.bits, wide))
    low, top = (masked(m, cast(m, half, dtype), mask) for half in (product, high))
    return low, top
