"""Vector arithmetic: lane by lane; lanes that a mask leaves out become zero."""

from __future__ import annotations

from tilewright.core.enums import CmpType
from tilewright.core.expr import Expr, constant
from tilewright.dtypes import UNSIGNED
from tilewright.errors import UnsupportedFeatureError
from tilewright.pto.machine.build import element_of
from tilewright.pto.machine.machine import Machine
from tilewright.pto.machine.registers import (
    active,
    bitcast,
    every,
    full,
    iota,
    lanes_of,
    mask_of,
    masked,
    scalar_in,
    vector,
    vector_type,
)
from tilewright.pto.machine.registers import where as chosen
from tilewright.pto.machine.values import Number, Predicate, Vector
from tilewright.pto.module import Op
from tilewright.pto.op import declare
from tilewright.pto.ops.arithmetic import predicate
from tilewright.pto.ops.elementwise import arithmetic, cast, where
from tilewright.pto.ops.masks import COMPARISONS, comparison
from tilewright.pto.text.form import register

_UNARY = {"vabs": "abs", "vneg": "neg", "vexp": "exp", "vln": "log", "vsqrt": "sqrt", "vrelu": "relu"}
_BINARY = {"vadd": "add", "vsub": "sub", "vmul": "mul", "vdiv": "div", "vmax": "maximum", "vmin": "minimum"}
_WITH_SCALAR = {"vadds": "add", "vsubs": "sub", "vmuls": "mul", "vmaxs": "maximum", "vmins": "minimum"}
_BITS = {"vand": "and_", "vor": "or_", "vxor": "xor"}
_SHIFTS = {"vshl": "shl", "vshr": "shr", "vshls": "shl", "vshrs": "shr"}
_RELU = {"vaddrelu": "add", "vsubrelu": "sub"}


def _word(op: Op) -> str:
    return op.name.removeprefix("pto.")


def rows_of(m: Machine, op: Op) -> list[Expr]:
    """Return the vectors among the operands of an op."""
    found = (m.values[v] for v in op.operands)
    return [v.expr for v in found if isinstance(v, Vector)]


def finished(m: Machine, op: Op, row: Expr) -> Vector:
    """Return the result of an op, with zeros where its mask is not set."""
    return vector(op, masked(m, row, mask_of(m, op)))


@declare("pto.vabs vneg vexp vln vsqrt vrelu", register("vm"))
def _unary(m: Machine, op: Op) -> Vector:
    return finished(m, op, m.b.op(f"tile.{_UNARY[_word(op)]}", x=rows_of(m, op)[0]))


@declare("pto.vadd vsub vmul vdiv vmax vmin", register("vvm"))
def _binary(m: Machine, op: Op) -> Vector:
    lhs, rhs = rows_of(m, op)
    return finished(m, op, arithmetic(m, _BINARY[_word(op)], lhs, rhs))


@declare("pto.vadds vsubs vmuls vmaxs vmins", register("vem"))
def _with_scalar(m: Machine, op: Op) -> Vector:
    lhs = m.get(op.operands[0], Vector)
    rhs = scalar_in(m, op.operands[1], lhs.element)
    return finished(m, op, arithmetic(m, _WITH_SCALAR[_word(op)], lhs.expr, rhs))


@declare("pto.vand vor vxor", register("vvm"))
@declare("pto.vnot", register("vm"))
def _bitwise(m: Machine, op: Op) -> Vector:
    """Bits, whatever they stand for: floats go through integers of their size."""
    rows = rows_of(m, op)
    dtype = element_of(rows[0])
    rows = [bitcast(m, row, UNSIGNED[dtype.get_byte()]) if dtype.is_float() else row for row in rows]
    if op.name == "pto.vnot":
        made = m.b.op("tile.not_", x=rows[0])
    else:
        made = m.b.op(f"tile.{_BITS[_word(op)]}", lhs=rows[0], rhs=rows[1])
    return finished(m, op, bitcast(m, made, dtype))


@declare("pto.vshl vshr", register("uum", "u"))
@declare("pto.vshls vshrs", register("vim"))
def _shift(m: Machine, op: Op) -> Vector:
    lhs = m.get(op.operands[0], Vector)
    count = m.values[op.operands[1]]
    dtype = lhs.element.dtype
    rhs = m.b.cast(count.expr, dtype) if isinstance(count, Number) else cast(m, rows_of(m, op)[1], dtype)
    return finished(m, op, m.b.op(f"tile.{_SHIFTS[_word(op)]}", lhs=lhs.expr, rhs=rhs))


@declare("pto.vaddrelu vsubrelu", register("vvm?"))
def _then_relu(m: Machine, op: Op) -> Vector:
    lhs, rhs = rows_of(m, op)
    return finished(m, op, m.b.op("tile.relu", x=arithmetic(m, _RELU[_word(op)], lhs, rhs)))


@declare("pto.vlrelu", register("vem"))
def _leaky(m: Machine, op: Op) -> Vector:
    lhs = m.get(op.operands[0], Vector)
    slope = scalar_in(m, op.operands[1], lhs.element)
    return finished(m, op, m.b.op("tile.lrelu", lhs=lhs.expr, rhs=slope))


@declare("pto.vprelu", register("vvm?"))
def _parametric(m: Machine, op: Op) -> Vector:
    x, slope = rows_of(m, op)
    scaled = m.b.op("tile.mul", lhs=x, rhs=slope)
    return finished(m, op, where(m, x, CmpType.GT, constant(0.0), x, scaled))


@declare("pto.vmula", register("vvvm"))
def _multiply_add(m: Machine, op: Op) -> Vector:
    """The accumulator plus the product of the two others."""
    total, lhs, rhs = rows_of(m, op)
    return finished(m, op, m.b.op("tile.add", lhs=total, rhs=m.b.op("tile.mul", lhs=lhs, rhs=rhs)))


@declare("pto.vmadd", register("vvvm"))
def _scale_add(m: Machine, op: Op) -> Vector:
    """The product of the accumulator and the first, plus the second."""
    total, lhs, rhs = rows_of(m, op)
    dtype = element_of(total)
    if dtype.bits < 32:
        raise UnsupportedFeatureError(f"pto.vmadd does not take {dtype} elements", help="convert them with pto.vcvt")
    return finished(m, op, m.b.op("tile.add", lhs=m.b.op("tile.mul", lhs=total, rhs=lhs), rhs=rhs))


@declare("pto.vaxpy", register("vvem|vem|vve"))
def _axpy(m: Machine, op: Op) -> Vector:
    x, *others = rows_of(m, op)
    numbers = [v for v in op.operands if isinstance(m.values[v], Number)]
    scaled = m.b.op("tile.mul", lhs=x, rhs=m.b.cast(m.expr(numbers[0]), element_of(x)))
    return finished(m, op, m.b.op("tile.add", lhs=scaled, rhs=others[0]) if others else scaled)


@declare("pto.vexpdif", register("uun?", "u", "part", False))
def _exponential_of_difference(m: Machine, op: Op) -> Vector:
    """The exponential of a difference in fp32; of shorter floats, of their even or odd lanes."""
    lhs, rhs = rows_of(m, op)
    type_ = vector_type(op.results[0])
    step = lanes_of(lhs) // type_.lanes
    first = 1 if op.attributes.get("part") == "ODD" and step > 1 else 0
    a, b = (cast(m, every(m, row, step, first, type_.lanes), type_.element.dtype) for row in (lhs, rhs))
    made = m.b.op("tile.exp", x=m.b.op("tile.sub", lhs=a, rhs=b))
    mask = mask_of(m, op)
    if mask is None or mask.bits == type_.element.bits:
        return vector(op, masked(m, made, mask))
    on = active(m, mask, mask.bits // 8)
    on = None if on is None else every(m, on, step, first, type_.lanes)
    return vector(op, made if on is None else chosen(m, on, made, full(m, type_.lanes, element_of(made), 0)))


@declare("pto.vsel", register("vvm"))
def _select(m: Machine, op: Op) -> Vector:
    then, other = rows_of(m, op)
    mask = m.get(op.operands[2], Predicate)
    return vector(op, chosen(m, active(m, mask, element_of(then).get_byte()), then, other))


@declare("pto.vbr", register("e"))
def _broadcast(m: Machine, op: Op) -> Vector:
    type_ = vector_type(op.results[0])
    return vector(op, full(m, type_.lanes, type_.element.dtype, scalar_in(m, op.operands[0], type_.element)))


@declare("pto.vdup", register("vm?|em?"))
def _duplicate(m: Machine, op: Op) -> Vector:
    """A number in every lane: a scalar, or the first or last lane of a vector."""
    type_, source = vector_type(op.results[0]), m.values[op.operands[0]]
    if isinstance(source, Vector):
        lane = source.lanes - 1 if "HIGH" in str(op.attributes.get("position", "")) else 0
        number = m.b.op("tile.read", x=source.expr, indices=(0, lane))
    else:
        number = scalar_in(m, op.operands[0], type_.element)
    return finished(m, op, full(m, type_.lanes, type_.element.dtype, number))


@declare("pto.vci", register("e"))
def _count(m: Machine, op: Op) -> Vector:
    """Numbers that go up from a start, or down."""
    type_ = vector_type(op.results[0])
    steps = cast(m, iota(m, type_.lanes), type_.element.dtype)
    start = scalar_in(m, op.operands[0], type_.element)
    if str(op.attributes.get("order", "ASC")) in ("DESC", "DEC"):
        return vector(op, m.b.op("tile.sub", lhs=full(m, type_.lanes, type_.element.dtype, start), rhs=steps))
    return vector(op, m.b.op("tile.add", lhs=steps, rhs=start))


# comparison


@declare("pto.vcmp", register("vvm", "m", "predicate"), rule=predicate(tuple(COMPARISONS)))
@declare("pto.vcmps", register("vem", "m", "predicate"), rule=predicate(tuple(COMPARISONS)))
def _compare(m: Machine, op: Op) -> Predicate:
    lhs, rhs = m.get(op.operands[0], Vector), m.values[op.operands[1]]
    other = rhs.expr if isinstance(rhs, Vector) else scalar_in(m, op.operands[1], lhs.element)
    return comparison(m, op, lhs.expr, str(op.attributes["predicate"]), other)
