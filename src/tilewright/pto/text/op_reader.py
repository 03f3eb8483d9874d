"""Reading ops: how an op without regions is read, as its form says.

    results `=` name piece* (`:` types)? (`->` types)? attributes?

A piece is an operand, a static token, a word with operands, or a dictionary of attributes.
"""

from __future__ import annotations

from tilewright.pto.errors import PtoSyntaxError
from tilewright.pto.module import Clause, Op, Value
from tilewright.pto.text.attributes import dictionary, number, slotted
from tilewright.pto.text.cursor import Cursor
from tilewright.pto.text.form import Layout, Word
from tilewright.pto.text.kinds import counted
from tilewright.pto.text.pieces import Head, Pieces, Placed, check_each, finished, operands_in, values_of
from tilewright.pto.text.result_types import result_types

_ENDS = (":", "->", "}", "")


def read_plain(cursor: Cursor, head: Head) -> Op:
    """Return the op whose name the cursor has just passed."""
    pieces = Pieces()
    texts = cursor.tokens.texts
    if head.form.is_bracketed or (head.form.slots and texts[cursor.at] == "["):
        _bracketed_slots(cursor, head, pieces)
        if cursor.following.startswith("%"):
            cursor.accept(",")
    _read_pieces(cursor, head, pieces)
    types = result_types(cursor, head, pieces)
    if texts[cursor.at] == "{":
        _attributes(cursor, pieces)
    return finished(cursor, head, pieces, types)


def _read_pieces(cursor: Cursor, head: Head, pieces: Pieces) -> None:
    """Read operands, static tokens, words and attributes up to the types or the next op."""
    texts, is_first, after_comma = cursor.tokens.texts, True, False
    while True:
        token = texts[cursor.at]
        may_follow = is_first or after_comma
        if token[:1] == "%":
            if not may_follow or (is_first and _begins_an_op(cursor, head)):
                return
            _operand(cursor, head, pieces)
        elif token == "{":
            _attributes(cursor, pieces)
        elif token[:1].isalpha() and not (may_follow and _is_slot(head, pieces)):
            if not _word(cursor, head, pieces):
                return
        elif token in _ENDS or not may_follow:
            return
        else:
            _slot(cursor, head, pieces)
        is_first, after_comma = False, texts[cursor.at] == ","
        if after_comma:
            cursor.at += 1
            if texts[cursor.at] in _ENDS:
                raise cursor.unexpected("an operand after `,`")


def _begins_an_op(cursor: Cursor, head: Head) -> bool:
    """Tell whether the value here is a result of the next op: the one just named may have no operands."""
    return not head.form.operands or cursor.following == "="


def _is_slot(head: Head, pieces: Pieces) -> bool:
    slots = head.form.slots
    return pieces.slots < len(slots) and slots[pieces.slots].family == "word"


def _operand(cursor: Cursor, head: Head, pieces: Pieces) -> None:
    at = cursor.at
    value = cursor.value()
    position = len(pieces.operands)
    pieces.operands.append(value)
    pieces.places.append(at)
    pieces.untyped.append((value, at, False))
    if cursor.tokens.texts[cursor.at] == "[":
        _index(cursor, head, pieces, position)


def _index(cursor: Cursor, head: Head, pieces: Pieces, position: int) -> None:
    """Read what stands in brackets after the operand at `position`."""
    form, at = head.form, cursor.at
    if not form.index or form.indexed != position:
        raise PtoSyntaxError(f"`{head.name}` has no brackets after this operand", spans=(cursor.span(at, at),))
    placed = operands_in(cursor, "[", "]")
    pieces.clauses.append(Clause(form.index, values_of(placed), cursor.span(at)))
    pieces.untyped += [(value, place, True) for value, place in placed]


def _attributes(cursor: Cursor, pieces: Pieces) -> None:
    at = cursor.at
    for name, value in dictionary(cursor).items():
        if name in pieces.attributes:
            raise PtoSyntaxError(f"attribute `{name}` is given twice", spans=(cursor.span(at),))
        pieces.attributes[name] = value


def _slot(cursor: Cursor, head: Head, pieces: Pieces) -> None:
    if pieces.slots >= len(head.form.slots):
        raise cursor.unexpected(f"an operand, types or the end of `{head.name}`")
    slot = head.form.slots[pieces.slots]
    if slot.name in pieces.attributes:
        raise PtoSyntaxError(f"`{slot.name}` is given twice", spans=(cursor.span(cursor.at, cursor.at),))
    pieces.attributes[slot.name] = slotted(cursor, slot)
    pieces.slots += 1


def _bracketed_slots(cursor: Cursor, head: Head, pieces: Pieces) -> None:
    """Read `[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID0>]`, in which a value may stand for the last."""
    cursor.expect("[")
    for _ in cursor.items("]", "`,` or `]`"):
        if cursor.token.startswith("%"):
            _slot_value(cursor, head, pieces)
        else:
            _slot(cursor, head, pieces)


def _slot_value(cursor: Cursor, head: Head, pieces: Pieces) -> None:
    at = cursor.at
    name = head.form.slots[pieces.slots].name if pieces.slots < len(head.form.slots) else ""
    if name not in head.form.words:
        raise cursor.unexpected("a static token or `]`")
    pieces.clauses.append(Clause(name, (cursor.value(),), cursor.span(at)))
    pieces.slots += 1


def _word(cursor: Cursor, head: Head, pieces: Pieces) -> bool:
    """Read a word with its operands, and tell whether one stood here."""
    name, form = cursor.token, head.form
    if name in form.numbers and cursor.following == "[":
        _static_numbers(cursor, name, pieces)
        return True
    word = form.words.get(name)
    if word is None:
        if "." in name or cursor.following not in ("=", "(", "["):
            return _modifier(cursor, name, pieces)
        known = " or ".join(f"`{other}`" for other in form.words) or "no words"
        raise cursor.unexpected(f"{known} in `{head.name}`")
    if name in ("outs", "ins") and cursor.following == ":":
        return False
    if not word.repeated and any(clause.name == name for clause in pieces.clauses):
        raise PtoSyntaxError(f"`{name}` is given twice", spans=(cursor.span(cursor.at, cursor.at),))
    _clause(cursor, name, word, pieces)
    return True


def _modifier(cursor: Cursor, name: str, pieces: Pieces) -> bool:
    """Read `fastmath<...>` or `overflow<...>`, which only permit what is not done anyway."""
    if name not in ("fastmath", "overflow") or not cursor.following.startswith("<"):
        return False
    cursor.at += 1
    pieces.attributes[name] = cursor.take()[1:-1].strip()
    return True


def _static_numbers(cursor: Cursor, name: str, pieces: Pieces) -> None:
    at = cursor.at
    cursor.at += 2
    numbers = tuple(number(cursor) for _ in cursor.items("]"))
    if name in pieces.attributes:
        raise PtoSyntaxError(f"`{name}` is given twice", spans=(cursor.span(at, at),))
    pieces.attributes[name] = numbers


def _clause(cursor: Cursor, name: str, word: Word, pieces: Pieces) -> None:
    at = cursor.at
    cursor.at += 1
    if word.layout is Layout.TYPED:
        values = _typed_values(cursor, pieces)
    elif word.layout is Layout.SINGLE:
        cursor.expect("=")
        values = (cursor.value(),)
    elif word.layout is Layout.PLAIN:
        placed = operands_in(cursor, "(", ")")
        pieces.untyped += [(value, place, False) for value, place in placed]
        values = values_of(placed)
    else:
        if word.layout is Layout.LIST:
            cursor.expect("=")
        values = values_of(operands_in(cursor, "[", "]"))
    pieces.clauses.append(Clause(name, values, cursor.span(at)))


def _typed_values(cursor: Cursor, pieces: Pieces) -> tuple[Value, ...]:
    """Read `(%a, %b {attributes} : T, U)`, or each operand with its own type, `(%a : T, %b : U)`."""
    texts, placed, told = cursor.tokens.texts, list[Placed](), 0
    cursor.expect("(")
    while texts[cursor.at][:1] == "%" or not placed:
        placed.append((cursor.value(), cursor.at - 1))
        has_more = cursor.accept(",")
        if texts[cursor.at] == "{":
            _attributes(cursor, pieces)
            has_more = False
        if cursor.accept(":"):
            check_each(cursor, placed[told:])
            told = len(placed)
            has_more = cursor.accept(",")
        if not has_more:
            break
    if told < len(placed):
        raise cursor.unexpected("`,` or `:`")
    if not cursor.accept(")"):
        raise cursor.unexpected(f"`)` after the types of {counted(len(placed), 'operand')}")
    return values_of(placed)
