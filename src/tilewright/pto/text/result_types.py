"""Result types: what the types after an op's colon and arrow say.

They name each operand's type, or the one that all share, or only the result's; the form knows which.
"""

from __future__ import annotations

from tilewright.pto.errors import PtoSyntaxError
from tilewright.pto.module import Op
from tilewright.pto.ops.registry import OPS
from tilewright.pto.text.cursor import Cursor
from tilewright.pto.text.form import Form, Typing
from tilewright.pto.text.kinds import counted, signature
from tilewright.pto.text.pieces import Head, Pieces, Placed
from tilewright.pto.text.typetext import BUILTIN_SHAPED, family_of
from tilewright.pto.types import I1, Type


def result_types(cursor: Cursor, head: Head, pieces: Pieces) -> list[Type]:
    """Read the types after the colon and the arrow, and return those of the results."""
    form = head.form
    if form.typing is Typing.RESULT:
        cursor.accept("outs")
    if not cursor.accept(":"):
        return _untold(cursor, head, pieces)
    if form.typing is Typing.EACH:
        return _each(cursor, head, pieces)
    if form.typing is Typing.RESULT:
        return _told(cursor, head, pieces)
    return _shared(cursor, head, pieces)


def _untold(cursor: Cursor, head: Head, pieces: Pieces) -> list[Type]:
    """Return the result types of an op without a colon."""
    form = head.form
    if form.typing in (Typing.EACH, Typing.RESULT) and cursor.accept("->"):
        return cursor.types(form.family)
    if form.implied is not None:
        return [form.implied]
    if form.typing is Typing.EACH and (not pieces.untyped or len(pieces.untyped) <= form.untyped):
        if signature(form.results).count[0]:
            raise cursor.unexpected(f"`:` and the types of `{head.name}`")
        return []
    raise cursor.unexpected(f"`:` and the types of `{head.name}`")


def _each(cursor: Cursor, head: Head, pieces: Pieces) -> list[Type]:
    form = head.form
    types_at = cursor.at
    written = _count_types(cursor, form)
    for value, at in _typed(cursor, form, pieces, written, head):
        if cursor.at != types_at:
            cursor.expect(",")
        if cursor.token in form.words:
            cursor.at += 1
        cursor.check(value, at)
    if cursor.accept("->"):
        return cursor.types(form.family or (family_of(pieces.operands[0].type) if pieces.operands else ""))
    derive = OPS[head.name].left_out
    if derive is None:
        return []
    op = Op(head.name, tuple(pieces.operands), tuple(pieces.clauses), pieces.attributes)
    return [derive(op, cursor.constants)]


def _count_types(cursor: Cursor, form: Form) -> int:
    """Return how many types stand here, separated by commas."""
    texts, at, count = cursor.tokens.texts, cursor.at, 1
    while True:
        at += texts[at] in form.words
        at += 2 if texts[at] in BUILTIN_SHAPED else 1
        if at >= len(texts) or texts[at] != ",":
            return count
        at, count = at + 1, count + 1


def _typed(cursor: Cursor, form: Form, pieces: Pieces, written: int, head: Head) -> list[Placed]:
    """Return the values that the written types belong to, in the order of the types."""
    if form.order and written == len(pieces.operands) == len(form.order):
        return [(pieces.operands[i], pieces.places[i]) for i in form.order]
    everything = [(value, at) for value, at, _ in pieces.untyped]
    outside = [(value, at) for value, at, is_bracketed in pieces.untyped if not is_bracketed]
    for choice in (everything, outside, outside[: len(outside) - form.untyped], _alike(outside, form.untyped)):
        if len(choice) == written:
            return choice
    message = f"`{head.name}` has {counted(len(outside), 'operand')} but {written} types"
    raise PtoSyntaxError(message, spans=(cursor.span(cursor.at, cursor.at),), help="write one type for each operand")


def _alike(placed: list[Placed], count: int) -> list[Placed]:
    """Return operands of which the last so many have one type, and write it once."""
    last = placed[len(placed) - count :]
    return placed[: len(placed) - count + 1] if count > 1 and len({value.type for value, _ in last}) == 1 else []


def _told(cursor: Cursor, head: Head, pieces: Pieces) -> list[Type]:
    form = head.form
    first_at = cursor.at
    types = cursor.types(form.family)
    if not cursor.accept("->"):
        return types[:-1] if _is_of_words(types, head, pieces) else types
    cursor.at = first_at
    for i, (value, at, _) in enumerate(pieces.untyped):
        if i:
            cursor.expect(",")
        cursor.check(value, at)
    cursor.expect("->")
    return cursor.types(form.family)


def _is_of_words(types: list[Type], head: Head, pieces: Pieces) -> bool:
    """Return whether the last of the types behind an op is that of the numbers under its words."""
    given = {value.type for clause in pieces.clauses if clause.name != "addr" for value in clause.values}
    return len(types) == 1 + signature(head.form.results).count[1] and given == {types[-1]}


def _shared(cursor: Cursor, head: Head, pieces: Pieces) -> list[Type]:
    """Read the type that operands share, and return what it makes of the results."""
    typing, operands = head.form.typing, list(zip(pieces.operands, pieces.places, strict=True))
    if typing is Typing.IMPLIED:
        return [_implied(cursor, head)]
    if typing is Typing.SELECT and cursor.following == ",":
        cursor.check(*operands.pop(0)) if operands else None
        cursor.expect(",")
    elif typing is Typing.SELECT and operands:
        operands.pop(0)
    at = cursor.at
    for operand in operands:
        cursor.at = at
        cursor.check(*operand)
    cursor.at = at
    type = cursor.type()
    if typing is Typing.COMPARE:
        return [I1]
    if typing is Typing.CAST:
        cursor.expect("to")
        return [cursor.type()]
    if typing is Typing.EXTENDED:
        cursor.expect(",")
        return [type, cursor.type()]
    return [type] * len(head.form.results)


def _implied(cursor: Cursor, head: Head) -> Type:
    at = cursor.at
    type = cursor.type()
    if type != head.form.implied:
        message = f"`{head.name}` gives {head.form.implied}, its text says {type}"
        raise PtoSyntaxError(message, spans=(cursor.span(at, at),))
    return type
