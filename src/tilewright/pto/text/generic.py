"""The generic form: `"name"(operands) <{...}> {...} : (types) -> types`, which every op without regions has."""

from __future__ import annotations

from itertools import takewhile

from tilewright.pto.errors import PtoSyntaxError
from tilewright.pto.module import Attribute, Clause, Op, Value
from tilewright.pto.ops.registry import OPS
from tilewright.pto.text.attributes import SEGMENTS, dictionary, fits_slot
from tilewright.pto.text.cursor import Cursor
from tilewright.pto.text.form import Form, Syntax
from tilewright.pto.text.kinds import signature
from tilewright.pto.text.pieces import Head, Names, Pieces, check_enclosed, finished, operands_in, values_of
from tilewright.pto.text.spellings import NAMES, missing


def read_generic(cursor: Cursor, names: Names) -> Op:
    """Return an op in the form every op has: `"name"(operands) <{...}> {...} : (types) -> types`."""
    at = cursor.at
    name = NAMES.get(cursor.take()[1:-1])
    if name is None:
        raise cursor.placed(missing(cursor.tokens.texts[at][1:-1]), at)
    form = OPS[name].form
    if form.syntax not in (Syntax.PLAIN, Syntax.CALL):
        raise PtoSyntaxError(f"`{name}` is written without quotes", spans=(cursor.span(at, at),))
    placed = operands_in(cursor, "(", ")")
    attributes = _generic_attributes(cursor)
    cursor.expect(":")
    if cursor.token != "(":
        raise cursor.unexpected("`(` and the types of the operands")
    check_enclosed(cursor, placed)
    cursor.expect("->")
    types = cursor.types()
    segments = attributes.pop(SEGMENTS, None)
    pieces = _grouped(list(values_of(placed)), form, segments)
    pieces.attributes = attributes
    pieces.slots = sum(1 for _ in takewhile(lambda slot: slot.name in attributes, form.slots))
    head = Head(name, form, names, at)
    misfit = next((s.name for s in form.slots if s.name in attributes and not fits_slot(attributes[s.name], s)), None)
    if misfit:
        raise PtoSyntaxError(f"`{misfit}` of `{name}` is not what it must be", spans=(cursor.span(at),))
    for clause in pieces.clauses:
        clause.span = cursor.span(at)
    return finished(cursor, head, pieces, types)


def _generic_attributes(cursor: Cursor) -> dict[str, Attribute]:
    attributes: dict[str, Attribute] = {}
    if cursor.accept("<"):
        attributes.update(dictionary(cursor))
        cursor.expect(">")
    if cursor.token == "{":
        attributes.update(dictionary(cursor))
    return attributes


def _grouped(values: list[Value], form: Form, segments: Attribute) -> Pieces:
    """Return `values` under the words of `form`, as the segment sizes or the counts say."""
    words = list(form.words.items())
    positional = len(signature(form.operands).rows[0])
    if [name for name, _ in words] == ["ins", "outs"]:
        cut = max(0, len(values) - signature(words[1][1].kinds).count[0])
        pieces = Pieces()
        pieces.clauses += [Clause("ins", tuple(values[:cut])), Clause("outs", tuple(values[cut:]))]
        return pieces
    if not words or not isinstance(segments, tuple) or len(segments) != positional + len(words):
        return Pieces(values)
    pieces = Pieces(values[:positional])
    start = positional
    for (name, _), size in zip(words, segments[positional:], strict=True):
        count = size if isinstance(size, int) else 0
        if count > 0:
            pieces.clauses.append(Clause(name, tuple(values[start : start + count])))
        start += max(count, 0)
    return pieces
