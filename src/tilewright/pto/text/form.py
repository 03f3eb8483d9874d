"""Op forms: how the text of an op is laid out.

A form is syntax alone: how many operands and results there are, which words hold more operands, which tokens are static
and what they are called, and where the types go. One rule of the parser reads every op that has a form, one of the
printer writes it, and the verifier counts by it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import Enum

from tilewright.pto.types import Type
from tilewright.records import record


class Typing(Enum):
    """What the types after the colon say."""

    EACH = "one type for each operand, then `->` and one for each result"
    SAME = "one type that all operands and results share"
    COMPARE = "the type of both operands; the result is i1"
    SELECT = "the type of the two choices and of the result"
    CAST = "the operand's type, `to`, the result's type"
    RESULT = "the result's type; `->` may come before it"
    EXTENDED = "the type of both operands and of the first result, then the second result's"
    IMPLIED = "nothing: the result's type goes without saying"


class Layout(Enum):
    """How operands under a word are written, and some operands for an example."""

    TYPED = "{word}({values} : {types})", "%a"
    PLAIN = "{word}({values})", "%a, %b, %c"
    LIST = "{word} = [{values}]", "%a, %b"
    SINGLE = "{word} = {values}", "%a"
    BRACKET = "{word} [{values}]", "%a, %b"
    INDEX = "%a[{values}]", "%i"
    SLOT = "{values}", "%a"
    """In a static token's place."""

    def text(self, word: str, values: str, types: str) -> str:
        """Return operands under a word."""
        return self.value[0].format(word=word, values=values, types=types)

    def example(self, word: str) -> str:
        """Return what stands under a word, as an example."""
        return self.text(word, self.value[1], "T")


class Syntax(Enum):
    """Who reads an op: the one rule, or a rule of its own."""

    __hash__ = object.__hash__  # an enumeration hashes its name, each time that a rule is looked up

    PLAIN = "plain"
    CONSTANT = "arith.constant"
    FOR = "scf.for"
    IF = "scf.if"
    WHILE = "scf.while"
    CONDITION = "scf.condition"
    CALL = "func.call"
    SWITCH = "scf.index_switch"
    EXECUTE = "scf.execute_region"
    REGION = "a region after the name"
    FREE = "operands, words and types in an order of its own"


NO_INLINE = "no_inline"
"""What `scf.execute_region` may say of itself before its region; it changes nothing."""


@record
class Word:
    """Operands under a word: their layout, their signature, and whether the word may be left out or repeated."""

    layout: Layout
    kinds: str
    required: bool = False
    repeated: bool = False
    default: tuple[int, ...] = ()
    """What a call in a body means that leaves it out."""


@record
class Slot:
    """A static token: its attribute's name and what it is a word of.

    `family` is an enumeration's name, or `string`, `word` or `int` for plain ones.
    """

    name: str
    family: str


@record
class Form:
    """The layout of one op."""

    operands: str = ""
    """The signature of the positional operands (see `kinds`)."""
    results: str = ""
    typing: Typing = Typing.EACH
    words: Mapping[str, Word] = field(default_factory=dict[str, Word])
    numbers: tuple[str, ...] = ()
    """Words that hold static numbers, as in `sizes [8, 16]`."""
    slots: tuple[Slot, ...] = ()
    needed_slots: int | None = None
    """How many of the slots must be there; None is all of them."""
    is_leading: bool = False
    """Whether the static tokens come before the operands."""
    is_bracketed: bool = False
    """Whether the static tokens stand in square brackets."""
    index: str = ""
    """The word for what stands in brackets after an operand."""
    indexed: int = 0
    """Which operand has those brackets."""
    order: tuple[int, ...] = ()
    """The operand that each written type belongs to, where that is not their order."""
    untyped: int = 0
    """How many operands at the end may go without a type."""
    implied: Type | None = None
    family: str = ""
    """The family of result types written as `<...>`; that of the first operand where empty."""
    syntax: Syntax = Syntax.PLAIN
    phrase: str | None = None
    """How free text is written out from the arguments of a call (see `phrase`); None is one operand after the other."""


def free(
    operands: str, results: str = "", words: str = "", typing: Typing = Typing.EACH, phrase: str | None = None
) -> Form:
    """Return the form of an op whose text has an order of its own; `operands` are all of them, as they come.

    Only the words that are given stand in it, besides what comes after a `=`.
    """
    known = {word: Word(Layout.PLAIN, "x*") for word in words.split()}
    return Form(operands, results, typing, words=known, syntax=Syntax.FREE, phrase=phrase)


def tile(ins: str, outs: str = "t") -> Form:
    """Return the form of an op on tiles: `pto.tX ins(...) outs(...) {...}`.

    Scratch tiles, packed bits, indices and casts are tiles whose element type is their own (`z`).
    """
    words = {"ins": Word(Layout.TYPED, ins, required=True), "outs": Word(Layout.TYPED, outs, required=True)}
    return Form(words=words)


def register(operands: str, results: str = "v", slot: str = "", needs_slot: bool = True) -> Form:
    """Return the form of an op on registers and masks; a word in quotes may follow its operands."""
    slots = (Slot(slot, "string"),) if slot else ()
    return Form(operands, results, slots=slots, needed_slots=None if needs_slot else 0)


def memory(operands: str, results: str = "", slot: str = "") -> Form:
    """Return the form of a load or store of registers, whose pointer has an offset in brackets."""
    offset, slots = {"offset": Word(Layout.INDEX, "i")}, (Slot(slot, "string"),) if slot else ()
    return Form(
        operands, results, words=offset, slots=slots, needed_slots=0, index="offset", indexed=operands.index("l")
    )
