"""Attributes: static values, alone and in dictionaries."""

from __future__ import annotations

import re

from tilewright.pto.errors import PtoSyntaxError
from tilewright.pto.module import Attribute, Enumerated, Number, SymbolRef
from tilewright.pto.text.cursor import Cursor
from tilewright.pto.text.form import Slot

_ENUMERATED = re.compile(r"#pto(?:\.(?P<family>[\w.]+))?<(?P<inner>.*)>\Z", re.DOTALL)
_NUMBER = re.compile(r"-?[0-9]")
_INTEGER = re.compile(r"-?(0x[0-9A-Fa-f]+|[0-9]+)\Z")
_ESCAPE = re.compile(r"\\([0-9A-Fa-f]{2}|.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t"}
_CONSTANTS = {"true": True, "false": False, "unit": None}
_WORD = re.compile(r"[\w.]+\Z", re.ASCII)
_LONGEST_NUMBER = 400
SEGMENTS = "operandSegmentSizes"
"""The attribute that says how generic operands are grouped, which an op's own text says already."""


def dictionary(cursor: Cursor) -> dict[str, Attribute]:
    """Return the attributes of `{name = value, flag, ...}`."""
    found: dict[str, Attribute] = {}
    cursor.expect("{")
    with cursor.nested():
        for at in cursor.items("}"):
            name = _key(cursor)
            if name in found:
                raise PtoSyntaxError(f"attribute `{name}` is given twice", spans=(cursor.span(at, at),))
            found[name] = attribute(cursor) if cursor.accept("=") else None
    return found


def _key(cursor: Cursor) -> str:
    token = cursor.token
    if token.startswith('"') and len(token) > 1:
        cursor.at += 1
        return unquoted(token)
    if not token[:1].isalpha() and token[:1] != "_":
        raise cursor.unexpected("the name of an attribute or `}`")
    cursor.at += 1
    return token


def attribute(cursor: Cursor) -> Attribute:
    """Return the attribute that stands here."""
    token = cursor.token
    if token in ("[", "{"):
        return _group(cursor)
    if token in _CONSTANTS:
        cursor.at += 1
        return _CONSTANTS[token]
    if _NUMBER.match(token):
        value = number(cursor)
        return Number(value, cursor.type()) if cursor.accept(":") else value
    if token == "array" and cursor.following.startswith("<"):
        return _array(cursor)
    return _word(cursor, token)


def _word(cursor: Cursor, token: str) -> Attribute:
    first = token[:1]
    if len(token) == 1 or not first:
        raise cursor.unexpected("an attribute")
    if first == '"':
        cursor.at += 1
        return unquoted(token)
    if first == "@":
        cursor.at += 1
        return SymbolRef(token[1:].strip('"'))
    if token in cursor.aliases:
        cursor.at += 1
        return cursor.aliases[token]
    if first in "#<":
        return enumerated(cursor)
    return cursor.type()


def _group(cursor: Cursor) -> tuple[Attribute, ...]:
    """Return the items of a list, or of a dictionary as pairs."""
    if cursor.token == "{":
        return tuple(dictionary(cursor).items())
    with cursor.nested():
        cursor.expect("[")
        return tuple(attribute(cursor) for _ in cursor.items("]"))


def _array(cursor: Cursor) -> tuple[Attribute, ...]:
    """Return the numbers of `array<i32: 1, 2>`."""
    cursor.at += 1
    _, _, numbers = cursor.token[1:-1].partition(":")
    words = [word.strip() for word in numbers.split(",") if word.strip()]
    if not all(re.fullmatch(r"-?\d{1,18}", word, re.ASCII) for word in words):
        raise cursor.unexpected("whole numbers, as in `array<i32: 1, 2>`")
    cursor.at += 1
    return tuple(map(int, words))


def enumerated(cursor: Cursor, family: str = "") -> Enumerated:
    """Return the word of an enumeration: `#pto.pipe<PIPE_V>`, `#pto<cmp lt>`, or `<PIPE_V>` of `family`."""
    token = cursor.token
    alias = cursor.aliases.get(token)
    if isinstance(alias, Enumerated):
        cursor.at += 1
        return alias
    if token.startswith("<"):
        found = Enumerated(family, token[1:-1].strip())
    else:
        match = _ENUMERATED.match(token)
        if match is None:
            raise cursor.unexpected("an attribute such as `#pto.pipe<PIPE_V>`")
        inner = match["inner"].strip()
        family, _, word = (match["family"], "", inner) if match["family"] else inner.partition(" ")
        found = Enumerated(family, word.strip())
    if not found.word or (found.family and not _WORD.match(found.family)):
        raise cursor.unexpected("a word between `<` and `>`")
    cursor.at += 1
    return found


def slotted(cursor: Cursor, slot: Slot) -> Attribute:
    """Return what stands in `slot`: a word in any of its spellings."""
    token = cursor.token
    if slot.family == "word" and token[:1].isalpha():
        return cursor.take()
    if slot.family == "int" and _INTEGER.match(token):
        return number(cursor)
    if slot.family not in ("word", "int") and token.startswith('"') and len(token) > 1:
        word = unquoted(token)
        if slot.family != "string" and not _WORD.match(word):
            raise cursor.unexpected(f"the {slot.name} as one word")
        cursor.at += 1
        return word if slot.family == "string" else Enumerated(slot.family, word)
    if slot.family not in ("word", "int", "string") and token[:1] in ("#", "<") and len(token) > 1:
        return enumerated(cursor, slot.family)
    raise cursor.unexpected(f"the {slot.name}, {_SPELLINGS.get(slot.family, 'such as `<WORD>`')}")


_SPELLINGS = {
    "string": "a word in quotes",
    "word": "a bare word",
    "int": "a whole number",
    "pipe": "such as `<PIPE_V>`",
    "event": "such as `<EVENT_ID0>`",
}


def number(cursor: Cursor) -> int | float:
    """Return the number that stands here."""
    token = cursor.token
    if len(token) > _LONGEST_NUMBER or not _NUMBER.match(token):
        raise cursor.unexpected("a number")
    cursor.at += 1
    if "0x" in token:
        return int(token, 16)
    return float(token) if "." in token or "e" in token.lower() else int(token)


def unquoted(token: str) -> str:
    """Return what a quoted token says."""
    return _ESCAPE.sub(_escaped, token[1:-1])


def _escaped(match: re.Match[str]) -> str:
    code = match[1]
    return chr(int(code, 16)) if len(code) == 2 else _ESCAPED.get(code, code)


def fits_slot(value: Attribute, slot: Slot) -> bool:
    """Tell whether `value` is what stands in `slot`."""
    if slot.family in ("string", "word"):
        return isinstance(value, str) and (slot.family == "string" or value.isidentifier())
    if slot.family == "int":
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, Enumerated)


def quoted(text: str) -> str:
    """Return `text` as a token."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{escaped}"'
