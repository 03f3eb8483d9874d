"""Free ops: a call in a body as an op of free text, written as the phrase of its declaration says."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from tilewright.errors import ArgumentCountError, AttributeValueError, OperandError, UnsupportedFeatureError
from tilewright.pto.module import Attribute, Enumerated, Number, Op, SymbolRef, Value
from tilewright.pto.op import Declaration
from tilewright.pto.ops.registry import OPS
from tilewright.pto.text.attributes import quoted
from tilewright.pto.text.form import Typing
from tilewright.pto.text.free import ATTRIBUTES, OPERAND, WRITTEN
from tilewright.pto.text.kinds import KINDS, signature
from tilewright.pto.text.phrase import Choice, Part, Phrase, Piece, arguments_of, phrase_of
from tilewright.pto.traced.arguments import Argument, Arguments, listed
from tilewright.pto.traced.callees import Callee
from tilewright.pto.traced.inference import Inference, could_be
from tilewright.pto.traced.scalars import as_integer, constant, static_int
from tilewright.pto.traced.tracer import Tracer
from tilewright.pto.traced.values import describe
from tilewright.pto.types import F32, I1, I64, INDEX, SCALARS, SPACES, Opaque, Scalar, Type


def emit_phrase(t: Tracer, name: str, given: Arguments) -> Any:
    """Add an op of free text; return its results, or None."""
    pieces = phrase_of(OPS[name].form)
    if pieces is None:
        message = f"`{given.name}` is an op of PTO text, and bodies have no words for it"
        raise t.error(UnsupportedFeatureError, given.node, message, help="write a kernel with `source=` that uses it")
    return _Call(t, name, given, _bound(t, given, pieces)).emitted(pieces)


def _bound(t: Tracer, given: Arguments, pieces: Phrase) -> dict[str, Argument]:
    """Return the arguments that were given, by the names that the phrase has for them."""
    found = {piece.name: (piece, may_go) for piece, may_go in arguments_of(pieces)}
    positional = [
        name
        for name, (piece, may_go) in found.items()
        if piece.part is not Part.ATTRIBUTES and (not may_go or piece.default is not None or name.isdigit())
    ]
    required = [name for name, (_, may_go) in found.items() if not may_go]
    bound = given.bound(t, positional, list(found), required)
    for name in required:
        if bound[name].value is None:
            help = "leave out only what may be left out"
            message = f"`{given.name}` needs `{name}`, got None"
            raise t.error(ArgumentCountError, bound[name].node, message, help=help)
    return {name: argument for name, argument in bound.items() if argument.value is not None}


@dataclass
class _Call:
    """One call on its way to text."""

    t: Tracer
    name: str
    given: Arguments
    bound: dict[str, Argument]
    operands: dict[str, tuple[Value, ...]] = field(default_factory=dict[str, tuple[Value, ...]])
    """The operands that each argument is, in the order of the text."""
    attributes: dict[str, Attribute] = field(default_factory=dict[str, Attribute])
    tokens: list[str] = field(default_factory=list[str])
    written: set[str] = field(default_factory=set[str])
    """The arguments that have been written, or that say what the text leaves out."""
    results: list[Type] = field(default_factory=list[Type])

    @property
    def declared(self) -> Declaration:
        """What is known about the op."""
        return OPS[self.name]

    def emitted(self, pieces: Phrase) -> Any:
        """Add the op; return its results, or None."""
        self._write(pieces)
        self._refuse_unwritten()
        form, span = self.declared.form, self.t.span(self.given.node)
        operands = tuple(chain.from_iterable(self.operands.values()))
        if form.results and not self.results:
            self.results = list(self._inferred(operands))
            arrow = ":" if form.typing is Typing.RESULT else "->"
            self.tokens += [arrow, *_listed(str(type_) for type_ in self.results)]
        made = tuple(Value("", type_, span) for type_ in self.results)
        written = {WRITTEN: tuple(self.tokens)} if self.tokens else {}
        self.t.writer.emit(Op(self.name, operands, (), {**written, **self.attributes}, made, span=span))
        return made[0] if len(made) == 1 else made or None

    def _refuse_unwritten(self) -> None:
        for name, argument in self.bound.items():
            if name not in self.written:
                message = f"`{name}` of `{self.given.name}` says nothing alone"
                help = "it goes with other arguments, which are not there"
                raise self.t.error(OperandError, argument.node, message, help=help)

    def _inferred(self, operands: tuple[Value, ...]) -> Iterable[Type]:
        found = Inference(self.name, tuple(value.type for value in operands)).results()
        if found is None:
            message = f"the type of `{self.given.name}` does not follow from this"
            raise self.t.error(OperandError, self.given.node, message, help="write a kernel with `source=`")
        return found

    def _write(self, pieces: Phrase) -> None:
        for piece in pieces:
            if isinstance(piece, Choice):
                self._write(next((side for side in piece.sides if self._has(side)), ()))
            else:
                for token in self._tokens(piece):
                    if token != "," or (self.tokens and self.tokens[-1] != "("):
                        self.tokens.append(token)

    def _has(self, side: Phrase) -> bool:
        """Return whether all arguments of a side were given, those of choices within it aside."""
        own = [piece for piece in side if isinstance(piece, Piece) and piece.is_argument]
        return all(self._is_given(piece) for piece in own)

    def _is_given(self, piece: Piece) -> bool:
        if piece.part is Part.OPERAND and piece.default is not None:
            return True
        if piece.part is not Part.WORD or piece.name not in self.bound:
            return piece.name in self.bound
        says_nothing = self._word(piece) in ("", piece.default)
        self.written |= {piece.name} if says_nothing else set()
        return not says_nothing

    def _tokens(self, piece: Piece) -> Iterator[str]:
        self.written |= {piece.name} if piece.is_argument else set()
        match piece.part:
            case Part.OPERAND:
                yield from _listed(OPERAND for _ in self._placed(piece))
            case Part.WORD:
                yield from _words(self._word(piece))
            case Part.QUOTED:
                yield quoted(self._text(piece))
            case Part.ATTRIBUTES:
                self._attributes(piece)
                yield from [ATTRIBUTES] if self.attributes else []
            case Part.TYPES:
                rows = [self.operands[piece.name]] if piece.name else self.operands.values()
                yield from _listed(str(value.type) for row in rows for value in row)
            case Part.RESULT:
                yield str(self._result(self.bound[piece.name]))
            case Part.TEXT | Part.MARK:
                self._note(piece.name)
                yield piece.name

    def _note(self, token: str) -> None:
        """Note a type that stands behind an arrow, or behind the colon of an op that has only results."""
        is_behind = "->" in self.tokens or (self.declared.form.typing is Typing.RESULT and ":" in self.tokens)
        if is_behind and token != ",":
            self.results.append(SCALARS.get(token) or Opaque(token))

    def _result(self, argument: Argument) -> Type:
        value = argument.value
        type_ = value.type if isinstance(value, Value) else value
        if not isinstance(type_, Type):
            help = "a type, as in `pto.tile_type(shape=[16, 16], dtype=pto.f32)`, or a value that has it"
            raise self.t.error(OperandError, argument.node, f"a type is needed here, got {describe(value)}", help=help)
        self.results.append(type_)
        return type_

    def _word(self, piece: Piece) -> str:
        """Return how a word is written."""
        argument = self.bound.get(piece.name)
        value = piece.default if argument is None else argument.value
        spelled = dict(piece.spelled)
        if str(value) in spelled:
            return spelled[str(value)]
        if spelled or not isinstance(value, str):
            node = self.given.node if argument is None else argument.node
            message = f"`{piece.name}` of `{self.given.name}` cannot be {describe(value)}"
            help = f"it is {', '.join(spelled)}" if spelled else "it is a word in quotes"
            raise self.t.error(AttributeValueError, node, message, help=help)
        return value

    def _text(self, piece: Piece) -> str:
        argument = self.bound[piece.name]
        if not isinstance(argument.value, str):
            message = f"`{piece.name}` of `{self.given.name}` is text, got {describe(argument.value)}"
            raise self.t.error(AttributeValueError, argument.node, message, help="write it in quotes")
        return argument.value

    # operands

    def _placed(self, piece: Piece) -> tuple[Value, ...]:
        default = Argument(int(piece.default or 0), self.given.node)
        argument = self.bound.get(piece.name, default)
        parts = listed(argument) if piece.is_many else [argument]
        taken = sum(map(len, self.operands.values()))
        letters = signature(self.declared.form.operands).rows[0]
        self.operands[piece.name] = tuple(
            self._value(part, letters[min(taken + place, len(letters) - 1)]) for place, part in enumerate(parts)
        )
        return self.operands[piece.name]

    def _value(self, argument: Argument, letter: str) -> Value:
        value, node = argument.value, argument.node
        counts = self.declared.counts if self.declared.counts != INDEX else I64
        if not could_be(letter, value):
            message = f"`{self.given.name}` takes {KINDS[letter].name} here, got {describe(value)}"
            raise self.t.error(OperandError, node, message)
        if not isinstance(value, Value):
            type_ = I1 if isinstance(value, bool) else F32 if isinstance(value, float) else counts
            return constant(self.t, value, type_, node)
        is_count = letter == "i" and isinstance(value.type, Scalar) and value.type != I1
        return as_integer(self.t, value, counts, node) if is_count else value

    # attributes

    def _attributes(self, piece: Piece) -> None:
        for name, kind in piece.attributes:
            if name in self.bound:
                self.written.add(name)
                self.attributes[name] = self._attribute(name, kind, self.bound[name])

    def _attribute(self, name: str, kind: str, argument: Argument) -> Attribute:
        value = argument.value
        if kind.startswith(":"):
            return Number(static_int(self.t, value, argument.node, f"`{name}`"), SCALARS[kind[1:]])
        if kind == "@" and isinstance(value, str | Callee):
            return SymbolRef(value if isinstance(value, str) else value.name)
        if kind == "#address_space" and isinstance(value, str) and value.lower() in SPACES:
            return Enumerated("address_space", SPACES[value.lower()].loc)
        if kind.startswith("#") and kind != "#address_space" and isinstance(value, str):
            return Enumerated(kind[1:], value.lower())
        if not kind and isinstance(value, bool | int | str):
            return value
        message = f"`{name}` of `{self.given.name}` cannot be {describe(value)}"
        help = "it is the name of a function" if kind == "@" else "it is known at compile time"
        raise self.t.error(AttributeValueError, argument.node, message, help=help)


def _words(text: str) -> list[str]:
    """Return the tokens of a word: a bracket is one of its own."""
    return text.replace("(", " ( ").replace(")", " ) ").split()


def _listed(words: Iterable[str]) -> list[str]:
    return [part for word in words for part in (",", word)][1:]
