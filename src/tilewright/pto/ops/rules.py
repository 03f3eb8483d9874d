"""Rules: what the rules of several ops share. A rule raises without a place: the verifier knows it."""

from __future__ import annotations

from collections.abc import Callable

from tilewright.pto.errors import PtoTypeMismatchError, PtoValidShapeError
from tilewright.pto.module import Op
from tilewright.pto.op import Constants, Rule
from tilewright.pto.text.typetext import brief_text
from tilewright.pto.types import Ptr, Scalar, TensorView, TileBuf, Type, VReg


def equal(op: Op, what: str, found: Type, expected: Type) -> None:
    """Raise where a type is not the one that an op needs."""
    if found != expected:
        raise PtoTypeMismatchError(f"the {what} of `{op.name}` is {brief_text(expected)}, got {brief_text(found)}")


def gives(expected: Callable[[Op], Type]) -> Rule:
    """Return the rule of an op whose result has a type that follows from its operands."""
    return lambda op, _: equal(op, "result", op.results[0].type, expected(op))


def element_type(type: Type) -> Scalar:
    """Return what something holds."""
    assert isinstance(type, TensorView | TileBuf | Ptr | VReg)
    return type.element


def reach(op: Op, _: Constants) -> None:
    """Raise where a pointwise op would read beyond a source to fill its output."""
    target = op.outs[0].of(TileBuf)
    for value in op.ins:
        source = value.type
        if not isinstance(source, TileBuf):
            continue
        if (target.valid_rows or 0) > source.rows or (target.valid_cols or 0) > source.cols:
            filled = f"{target.valid_rows or '?'}x{target.valid_cols or '?'}"
            message = f"`{op.name}` fills {filled} elements, `%{value.name}` holds {source.rows}x{source.cols}"
            raise PtoValidShapeError(message, help="make the source as large as the output's valid region")
