"""Joins: several tiles or tensors put together along an axis, or along a new one."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from tilewright.core.expr import Const, Expr
from tilewright.core.operands import is_shaped
from tilewright.core.types import ShapedType
from tilewright.errors import ArgumentCountError, AttributeValueError, KernelError, OperandError, ShapeMismatchError
from tilewright.frontend.arguments import values_of
from tilewright.frontend.derived import Writer
from tilewright.frontend.translator import Translator
from tilewright.frontend.walk.known import sequence
from tilewright.frontend.walk.walker import Value
from tilewright.ops.axes import one_axis
from tilewright.ops.derived import extents, on
from tilewright.ops.families import shaped
from tilewright.ops.indices import differ

_USAGE = "pl.cat([a, b], axis=0) puts tiles one after the other, pl.stack([a, b], axis=0) along a new axis"


def cat(t: Translator, node: ast.Call) -> Value:
    """Return what `pl.cat` gives: several values one after the other along an axis."""
    return _checked(t, node, _in_line, -1)


def stack(t: Translator, node: ast.Call) -> Value:
    """Return what `pl.stack` gives: several values along a new axis."""
    return _checked(t, node, _stacked, 0)


def names_several(node: ast.Call) -> bool:
    """Return whether a call of `pl.concat` means `pl.cat`: with a list, more than two values, or an axis."""
    is_listed = len(node.args) == 1 and not any(keyword.arg == "src1" for keyword in node.keywords)
    return is_listed or len(node.args) > 2 or any(keyword.arg == "axis" for keyword in node.keywords)


def _checked(
    t: Translator, node: ast.Call, join: Callable[[Writer, Sequence[Expr], Any], Expr], otherwise: int
) -> Value:
    given = values_of(t, node)
    is_listed = bool(given.args) and isinstance(given.args[0], tuple)
    parts: list[Any] = list(sequence(given.args[0]) if is_listed else given.args)
    named = dict(given.kwargs)
    axis = named.pop("axis", given.args[1] if is_listed and len(given.args) > 1 else otherwise)
    if named or not parts:
        raise t.error(ArgumentCountError, node, "this takes a list of tiles or tensors, and an axis", help=_USAGE)
    for part in parts:
        if not is_shaped(part) or on(part) != on(parts[0]):
            message = f"tiles are joined with tiles, and tensors with tensors, got {t.describe(part)}"
            raise t.error(OperandError, node, message, help=_USAGE)
    try:
        return join(Writer(t, node), parts, axis.value if isinstance(axis, Const) else axis)
    except KernelError as error:
        error.locate([t.span(node)])
        raise


def _in_line(w: Writer, parts: Sequence[Expr], axis: Any) -> Expr:
    return _joined(w, parts, one_axis(parts[0], axis))


def _joined(w: Writer, parts: Sequence[Expr], axis: int) -> Expr:
    """Return values one after the other along an axis that is counted from the end."""
    for place, part in enumerate(parts, start=1):
        one_axis(part, axis)
        _check_valid(shaped(parts[0]), shaped(part), axis, is_last=place == len(parts))
    if axis == -1 or len(parts) == 1:
        return _in_halves(w, parts)
    name = f"{on(parts[0])}.transpose"
    joined = _in_halves(w, [w.do(name, x=part, axis1=axis, axis2=-1) for part in parts])
    return w.do(name, x=joined, axis1=axis, axis2=-1)


def _check_valid(first: ShapedType, part: ShapedType, axis: int, *, is_last: bool) -> None:
    """Raise where data would not lie together: a part that ends early, or has fewer rows than the first."""
    if not is_last and part.valid[axis] != part.shape[axis]:
        help = "pl.slice what is valid where its extent is known, or pl.store each part where it belongs"
        raise ShapeMismatchError(f"what comes before another part is all valid, got {part}", help=help)
    place = len(part.shape) + axis
    pairs = enumerate(zip(first.valid, part.valid, strict=False))
    if any(each != place and differ(a, b) for each, (a, b) in pairs):
        help = "pl.fillpad gives the elements that are missing a number"
        raise ShapeMismatchError(f"parts have as many valid elements as the first, got {first} and {part}", help=help)


def _in_halves(w: Writer, parts: Sequence[Expr]) -> Expr:
    """Return values side by side, each copied as often as the number of parts can be halved."""
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    return w.do(f"{on(parts[0])}.concat", src0=_in_halves(w, parts[:half]), src1=_in_halves(w, parts[half:]))


def _stacked(w: Writer, parts: Sequence[Expr], axis: Any) -> Expr:
    rank = len(shaped(parts[0]).shape) + 1
    if not isinstance(axis, int) or isinstance(axis, bool) or not -rank <= axis < rank:
        help = f"axes of the result are 0 to {rank - 1}, or -{rank} to -1 from the end"
        raise AttributeValueError(f"there is no axis {axis!r} to stack along", help=help)
    place, first = axis % rank, shaped(parts[0])
    for part in parts:
        if shaped(part).shape != first.shape:
            message = f"what is stacked has one shape, got {first} and {shaped(part)}"
            raise ShapeMismatchError(message, help="pl.cat joins parts of different extents along an axis they have")
    tall = [w.do(f"{on(part)}.reshape", x=part, shape=_with(extents(w, part), place)) for part in parts]
    return _joined(w, tall, place - rank)


def _with(shape: Sequence[Any], place: int) -> tuple[Any, ...]:
    return (*shape[:place], 1, *shape[place:])
