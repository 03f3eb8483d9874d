"""Free text: ops whose operands, words and types follow an order of their own, read and written piece by piece.

What stands between the operands is kept as it was, word by word, in the attribute `written`: `%` is the next operand,
`{}` the dictionary of attributes. The types that are written are held to the operands, in order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tilewright.pto.errors import PtoSyntaxError, PtoTypeMismatchError
from tilewright.pto.module import Attribute, Op, Value
from tilewright.pto.text.attributes import dictionary
from tilewright.pto.text.cursor import Cursor
from tilewright.pto.text.form import Typing
from tilewright.pto.text.pieces import Head, Pieces, Placed, finished
from tilewright.pto.text.suggestions import nearest
from tilewright.pto.text.typetext import BUILTIN_SHAPED, brief_text
from tilewright.pto.types import SCALARS, Type
from tilewright.records import record

WRITTEN = "written"
"""The attribute that keeps what stands between the operands."""
OPERAND, ATTRIBUTES = "%", "{}"
_OPENING, _CLOSING = "([<", {"(": ")", "[": "]", "<": ">"}
_MARKS = ",:=()[]<>"
_ITEMS = ("module", "builtin.module", "func.func", "return", "call", "yield")


@dataclass(slots=True)
class _Text:
    """What has been read of an op."""

    tokens: list[str] = field(default_factory=list[str])
    placed: list[Placed] = field(default_factory=list[Placed])
    types: list[tuple[Type, int]] = field(default_factory=list[tuple[Type, int]])
    results: list[Type] = field(default_factory=list[Type])
    attributes: dict[str, Attribute] = field(default_factory=dict[str, Attribute])
    open: list[str] = field(default_factory=list[str])
    """The brackets that are open here."""
    is_typed: bool = False
    """Whether a colon or an arrow came before, so that words of types are types."""
    gives: bool = False
    """Whether an arrow came before: types are those of results."""


def read_free(cursor: Cursor, head: Head) -> Op:
    """Return the op whose name the cursor has just passed."""
    text = _Text()
    while not _ends(cursor, head, text):
        _piece(cursor, head, text)
    if text.open:
        raise cursor.unexpected(f"`{_CLOSING[text.open[-1]]}`")
    if head.form.typing is Typing.RESULT and not text.gives:
        count = len(head.names)
        text.results = [type for type, _ in text.types[len(text.types) - count :]]
        text.types = text.types[: len(text.types) - count]
    _agree(cursor, text)
    pieces = Pieces([value for value, _ in text.placed])
    pieces.attributes = {**({WRITTEN: tuple(text.tokens)} if text.tokens else {}), **text.attributes}
    return finished(cursor, head, pieces, text.results)


def _ends(cursor: Cursor, head: Head, text: _Text) -> bool:
    """Tell whether the next op begins here, or the region ends."""
    token = cursor.token
    if not token or token == "}":
        return True
    if text.open:
        return False
    before = text.tokens[-1] if text.tokens else ""
    if token[0] == "%":
        if before == ")" and head.names and not text.is_typed:
            return False  # of what an op gives it says the type
        return (before != "," and bool(before)) or not head.form.operands or (not before and cursor.following == "=")
    if token[0] == '"':
        return cursor.following == "("
    return token in _ITEMS or (token[0].isalpha() and "." in token)


def _piece(cursor: Cursor, head: Head, text: _Text) -> None:
    token, at = cursor.token, cursor.at
    if token[0] == "%" and len(token) > 1:
        if text.open and text.tokens[-1] == OPERAND:
            raise cursor.unexpected(f"`,` or `{_CLOSING[text.open[-1]]}`")
        text.placed.append((cursor.value(), at))
        text.tokens.append(OPERAND)
    elif token == "{":
        text.attributes |= dictionary(cursor)
        text.tokens.append(ATTRIBUTES)
    elif text.is_typed and _is_type(cursor):
        type = cursor.type()
        text.tokens.append(str(type))
        (text.results.append(type) if text.gives else text.types.append((type, at)))
    else:
        _bracket(cursor, text)
        _refuse_word(cursor, head, text)
        text.is_typed = text.is_typed or token in (":", "->")
        text.gives = text.gives or (token == "->" and not text.open)
        text.tokens.append(cursor.take())


def _is_type(cursor: Cursor) -> bool:
    token = cursor.token
    return token[0] == "!" or token in SCALARS or (token in BUILTIN_SHAPED and cursor.following.startswith("<"))


def _bracket(cursor: Cursor, text: _Text) -> None:
    token = cursor.token
    if token in _OPENING:
        text.open.append(token)
    elif token in _CLOSING.values():
        if not text.open or _CLOSING[text.open[-1]] != token:
            raise cursor.unexpected("an operand, a word or a type")
        text.open.pop()


def _refuse_word(cursor: Cursor, head: Head, text: _Text) -> None:
    """Raise for a word that the op does not have; what stands in brackets is for its rule to judge."""
    token, known = cursor.token, head.form.words
    if len(token) == 1 and not token.isalnum() and token not in _MARKS:
        raise cursor.unexpected("an operand, a word or a type")
    if not token[0].isalpha() or token in known or text.open:
        return
    message = f"`{head.name}` has no `{token}`"
    raise PtoSyntaxError(message, spans=(cursor.span(cursor.at, cursor.at),), help=nearest(token, known))


def _agree(cursor: Cursor, text: _Text) -> None:
    """Raise where a written type is not its operand's: the next one, or any other where not all have one."""
    left = [value for value, _ in text.placed]
    has_all = len(text.types) == len(left)
    for type, at in text.types:
        found = left[0] if has_all else next((value for value in left if value.type == type), None)
        if found is None or found.type != type:
            name = f"`%{found.name}` is {brief_text(found.type)}" if found else "no operand here has it"
            raise PtoTypeMismatchError(f"{brief_text(type)} is written, {name}", spans=(cursor.span(at, at),))
        left.remove(found)


def free_text(op: Op, use: Callable[[Value], str], braces: str) -> str:
    """Return what stands behind an op's name, its operands as `use` calls them."""
    written, operands, before, text = op.attributes.get(WRITTEN, ()), iter(op.operands), "", ""
    assert isinstance(written, tuple)
    for token in map(str, written):
        text += "" if _clings(before, token) else " "
        text += use(next(operands)) if token == OPERAND else braces if token == ATTRIBUTES else token
        before = token
    return text


def _clings(before: str, token: str) -> bool:
    """Tell whether no blank stands between two tokens."""
    if before in ("(", "[", "<") or token in (",", ")", "]", ">"):
        return True
    return token in ("(", "[", "<") and (not before or before[-1] in "%>" or before[0].isalpha() or before[0] == "@")


@record
class Said:
    """What stands in the brackets behind a word: operands, bare words, and what follows a `=`."""

    values: tuple[Value, ...] = ()
    words: tuple[str, ...] = ()
    named: Mapping[str, str | Value] = field(default_factory=dict[str, "str | Value"])

    @property
    def first(self) -> str:
        """The first bare word, empty where there is none."""
        return self.words[0] if self.words else ""

    def word(self, name: str) -> str:
        """Return the word behind `name =`, empty where there is none."""
        found = self.named.get(name, "")
        return found if isinstance(found, str) else ""


def said(op: Op) -> dict[str, Said]:
    """Return the words between an op's operands, each with what stands in its brackets."""
    operands = iter(op.operands)
    tokens: list[str | Value] = [next(operands) if token == OPERAND else token for token in words_of(op)]
    end = tokens.index(":") if ":" in tokens else len(tokens)
    found: dict[str, Said] = {}
    at = 0
    while at < end:
        token, at = tokens[at], at + 1
        if not isinstance(token, str) or not token[0].isalpha():
            continue
        close = tokens.index(")", at) if at < end and tokens[at] == "(" else at - 1
        found[token] = _said(tokens[at + 1 : close]) if close >= at else Said()
        at = max(at, close)
    return found


def _said(tokens: list[str | Value]) -> Said:
    items: list[list[str | Value]] = [[]]
    for token in tokens:
        items.append([]) if token == "," else items[-1].append(token)
    values = tuple(item[0] for item in items if len(item) == 1 and isinstance(item[0], Value))
    words = tuple(item[0] for item in items if len(item) == 1 and isinstance(item[0], str))
    return Said(values, words, {str(item[0]): item[2] for item in items if len(item) == 3})


def bracketed(op: Op) -> list[tuple[int | Value, ...]]:
    """Return the numbers and operands in each pair of square brackets of an op of free text."""
    operands = iter(op.operands)
    found: list[list[int | Value]] = []
    is_inside = False
    for token in words_of(op):
        item = next(operands) if token == OPERAND else int(token) if token.lstrip("-").isdecimal() else None
        if token == "[":
            found.append([])
        is_inside = token == "[" or (is_inside and token != "]")
        if is_inside and item is not None:
            found[-1].append(item)
    return [tuple(items) for items in found]


def words_of(op: Op) -> tuple[str, ...]:
    """Return the words and marks that stand between the operands of an op of free text."""
    written = op.attributes.get(WRITTEN, ())
    return tuple(map(str, written)) if isinstance(written, tuple) else ()


def word_in(op: Op, word: str) -> str:
    """Return what stands in brackets behind a word of an op of free text, or nothing."""
    words = words_of(op)
    return words[words.index(word) + 2] if word in words else ""
