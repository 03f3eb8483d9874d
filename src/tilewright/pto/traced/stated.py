"""Stated: what the annotations of a sub-kernel say of what it is given, and of what a helper returns.

Integers become integers of the type that is stated; a float stays one of its own. What is annotated otherwise, as
`Any`, is taken as it is.
"""

from __future__ import annotations

import ast
from typing import Any

from tilewright.errors import DTypeMismatchError, KernelError, OperandError, ReturnMismatchError
from tilewright.pto.declarations import Marker, PartitionTensorView, TensorView, Tile
from tilewright.pto.module import Value
from tilewright.pto.traced.arguments import Argument
from tilewright.pto.traced.first_lanes import first_lane
from tilewright.pto.traced.scalars import constant, convert
from tilewright.pto.traced.tracer import Tracer
from tilewright.pto.traced.values import describe
from tilewright.pto.types import I1, Scalar, TileBuf, Type
from tilewright.pto.types import TensorView as View

Stated = Scalar | Marker | None


def stated(t: Tracer, node: ast.expr | None) -> Stated:
    """Return the type that an annotation states, None where it is no type of a number or of a tile."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        node = ast.parse(node.value, mode="eval").body
    try:
        found = None if node is None else t.evaluate(node)
    except KernelError:  # an annotation for a type checker, of names that no kernel sees
        return None
    return found if isinstance(found, Scalar) or found in (Tile, TensorView, PartitionTensorView) else None


def as_parameter(t: Tracer, wanted: Stated, name: str, argument: Argument) -> Any:
    """Return an argument as its parameter states it; Python's numbers stay known."""
    value = argument.value if wanted is None else first_lane(t, argument.value)
    if isinstance(wanted, Marker) and not (isinstance(value, Value) and is_a(value.type, wanted)):
        raise _unlike(t, wanted, name, value, argument.node)
    if not isinstance(wanted, Scalar):
        return value
    if isinstance(value, Value):
        made = _as_number(t, value, wanted, argument.node)
        if made is None:
            raise _unlike(t, wanted, name, value, argument.node)
        return made
    if not isinstance(value, bool | int | float):
        raise _unlike(t, wanted, name, value, argument.node)
    return float(value) if wanted.is_float else value


def is_a(type: Type, wanted: Marker) -> bool:
    """Return whether a value of a type is what a marker stands for."""
    if wanted is Tile:
        return isinstance(type, TileBuf)
    return isinstance(type, View) and type.partition == (wanted is PartitionTensorView)


def as_returned(t: Tracer, wanted: object, name: str, argument: Argument) -> Any:
    """Return what a helper gives as the number that it says it returns."""
    value = argument.value
    if not isinstance(wanted, Scalar):
        return value
    if isinstance(value, bool | int | float):
        return constant(t, value, wanted, argument.node)
    made = _as_number(t, value, wanted, argument.node) if isinstance(value, Value) else None
    if made is None:
        found = "nothing" if value is None else describe(value)
        help = "return a number on its way out" if value is None else f"convert it: pto.cast(..., pto.{wanted.name})"
        raise t.error(ReturnMismatchError, argument.node, f"`{name}` returns {wanted}, here {found}", help=help)
    return made


def _as_number(t: Tracer, value: Value, wanted: Scalar, node: ast.AST) -> Value | None:
    """Return a number as one of a type, None where that would change what kind of number it is."""
    have = value.type
    if have == wanted:
        return value
    if not isinstance(have, Scalar) or not (have.is_integer and wanted.is_integer) or I1 in (have, wanted):
        return None
    return convert(t, value, wanted, t.span(node))


def _unlike(t: Tracer, wanted: Scalar | Marker, name: str, value: object, node: ast.AST) -> KernelError:
    message, is_number = f"parameter `{name}` is {wanted}, got {describe(value)}", isinstance(wanted, Scalar)
    if is_number and isinstance(value, Value) and isinstance(value.type, Scalar):
        return t.error(DTypeMismatchError, node, message, help=f"convert it: pto.cast(..., pto.{wanted.name})")
    return t.error(OperandError, node, message, help="pass what its annotation says")
