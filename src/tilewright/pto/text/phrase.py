"""Phrases: ops of free text as templates, whose blanks have the names that bodies give them as arguments.

    %m                an operand; `%sid=0` where nobody says it, `%shape*` several
    $mode             a word; `"$format"` in quotes, `$sat{sat True:sat False:}` one of some, or what it is spelled as
    {id, root:i32}    attributes that were given; of a type, `location#address_space` of a family, `f@` a function
    #m, #             the types of an operand, of all of them
    ^result_type      the type of the result, as an argument
    '['               a bracket of the text
    [, clip = %clip]  where all of it was given, or else the next side of a `|`

All else stands in the text as it is; after `->` it is the types of results.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from functools import cache

from tilewright.pto.text.form import Form, Typing
from tilewright.pto.text.kinds import signature
from tilewright.records import record


class Part(Enum):
    """What a piece of a phrase stands for."""

    TEXT = "text"
    MARK = "'x'"
    OPERAND = "%"
    WORD = "$"
    QUOTED = '"$"'
    ATTRIBUTES = "{}"
    TYPES = "#"
    RESULT = "^"


@record
class Piece:
    """One piece: what it is, and the text, or the argument that it stands for."""

    part: Part
    name: str
    default: str | None = None
    is_many: bool = False
    spelled: tuple[tuple[str, str], ...] = ()
    """How a word is written, where that is not the word itself."""
    attributes: tuple[tuple[str, str], ...] = ()
    """The names of attributes, each with what its value is of."""

    @property
    def is_argument(self) -> bool:
        """Whether a call passes it."""
        return self.part in (Part.OPERAND, Part.WORD, Part.QUOTED, Part.RESULT)


@record
class Choice:
    """Sides of which the first is written whose arguments were all given, or none."""

    sides: tuple[Phrase, ...]


Phrase = tuple["Piece | Choice", ...]

_PIECES = re.compile(
    r"""\s*(?:
    "\$(?P<quoted>\w+)"
    | %(?P<operand>\w+)(?P<many>\*)?(?:=(?P<default>-?\d+))?
    | \$(?P<word>\w+)(?:\{(?P<spelled>[^}]*)\})?(?:=(?P<usual>\w+))?
    | \#(?P<types>\w*)
    | \^(?P<result>\w+)
    | \{(?P<attributes>[^}]*)\}
    | '(?P<mark>\S)'
    | (?P<text>->|![\w.]+|\w+|\S)
    )""",
    re.VERBOSE,
)
_ATTRIBUTE = re.compile(r"(\w+)(.*)")


@cache
def phrase(text: str) -> Phrase:
    """Return the phrase that a declaration writes."""
    found, rest = _side(_pieces(text))
    assert rest == "", f"`{rest}` opens nothing in {text}"
    return found


def _pieces(text: str) -> Iterator[Piece]:
    for match in _PIECES.finditer(text.strip()):
        yield _piece(match)


def _piece(match: re.Match[str]) -> Piece:
    if match["operand"]:
        return Piece(Part.OPERAND, match["operand"], match["default"], bool(match["many"]))
    if match["word"]:
        pairs = [word.partition(":") for word in (match["spelled"] or "").split()]
        return Piece(
            Part.WORD, match["word"], match["usual"], spelled=tuple((a, b if mark else a) for a, mark, b in pairs)
        )
    if match["attributes"] is not None:
        named = [_ATTRIBUTE.fullmatch(word.strip()) for word in match["attributes"].split(",")]
        return Piece(Part.ATTRIBUTES, "", attributes=tuple((each[1], each[2]) for each in named if each))
    simple = {"quoted": Part.QUOTED, "types": Part.TYPES, "result": Part.RESULT, "mark": Part.MARK, "text": Part.TEXT}
    name = next(name for name in simple if match[name] is not None)
    return Piece(simple[name], match[name])


def _side(pieces: Iterator[Piece]) -> tuple[Phrase, str]:
    """Return the pieces up to what ends a side, and that."""
    found: list[Piece | Choice] = []
    for piece in pieces:
        if piece.part is Part.TEXT and piece.name in ("|", "]"):
            return tuple(found), piece.name
        found.append(_choice(pieces) if piece.part is Part.TEXT and piece.name == "[" else piece)
    return tuple(found), ""


def _choice(pieces: Iterator[Piece]) -> Choice:
    sides: list[Phrase] = []
    end = "|"
    while end == "|":
        side, end = _side(pieces)
        sides.append(side)
    return Choice(tuple(sides))


def phrase_of(form: Form) -> Phrase | None:
    """Return how an op of free text is written: as its declaration says, or all operands in a row and their types."""
    if form.phrase is not None:
        return phrase(form.phrase)
    kinds = form.operands + form.results
    return None if "*" in kinds or "r" in kinds else phrase(_plain(form))  # Python has no memrefs


def _plain(form: Form) -> str:
    fewest, most = signature(form.operands).count
    shown = [f"%{number}" for number in range(fewest)]
    more = "".join(f"[, %{number}]" for number in range(fewest, most))
    types = " : #" if most and form.typing is not Typing.RESULT else ""
    return f"{', '.join(shown)}{more}{types}"


def arguments_of(pieces: Phrase, is_chosen: bool = False) -> Iterator[tuple[Piece, bool]]:
    """Yield the arguments of a phrase, and whether it may go without each."""
    for piece in pieces:
        if isinstance(piece, Choice):
            for side in piece.sides:
                yield from arguments_of(side, True)
        elif piece.is_argument:
            yield piece, is_chosen or piece.default is not None
        elif piece.part is Part.ATTRIBUTES:
            for name, _ in piece.attributes:
                yield Piece(Part.ATTRIBUTES, name), True
