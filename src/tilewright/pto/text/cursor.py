"""The cursor: where the parser stands in the tokens, and which values it can see."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager

from tilewright.errors import KernelError
from tilewright.pto.errors import (
    PtoNestingError,
    PtoRedefinitionError,
    PtoSyntaxError,
    PtoTypeMismatchError,
    PtoUndeclaredValueError,
)
from tilewright.pto.module import Attribute, Constants, Value
from tilewright.pto.text.kinds import counted
from tilewright.pto.text.lexer import Tokens
from tilewright.pto.text.suggestions import nearest
from tilewright.pto.text.typetext import BUILTIN_SHAPED, brief_text, family_of, read_elided, read_type
from tilewright.pto.types import SCALARS, TensorView, Type
from tilewright.source import Span

DEEPEST = 64
"""How many regions, modules or attributes may lie inside each other."""

NAMES = "a name is of ASCII letters, digits, `_`, `$`, `.` and `-`, right behind the `%`"
"""What names of values are."""


class Cursor:
    """A position in the tokens of one text; `token` is the one it stands at."""

    __slots__ = ("_defined", "_depth", "_texts", "aliases", "at", "constants", "spelled", "tokens", "values")

    def __init__(self, tokens: Tokens) -> None:
        self.tokens = tokens
        self.at = 0
        self.values: dict[str, Value] = {}
        self.constants = Constants()
        self.aliases: dict[str, Attribute] = {}
        self._texts = tokens.texts
        self._defined: list[str] = []
        self.spelled: dict[str, Type] = dict(SCALARS)  # aliases too
        self._depth = 0

    @property
    def token(self) -> str:
        """The token here; empty at the end of the text."""
        return self._texts[self.at]

    @property
    def following(self) -> str:
        """The token after the one here."""
        return self._texts[min(self.at + 1, len(self._texts) - 1)]

    def take(self) -> str:
        """Return the token here and step past it."""
        token = self._texts[self.at]
        if token:
            self.at += 1
        return token

    def accept(self, token: str) -> bool:
        """Step past `token` if it is here, and tell whether it was."""
        if self._texts[self.at] != token:
            return False
        self.at += 1
        return True

    def expect(self, token: str) -> None:
        """Step past `token`, which must be here."""
        if self._texts[self.at] != token:
            raise self.unexpected(f"`{token}`")
        self.at += 1

    def items(self, closing: str, missing: str = "`,`") -> Iterator[int]:
        """Yield the token of each item up to `closing`, with commas between them."""
        is_first = True
        while not self.accept(closing):
            if not is_first and not self.accept(","):
                raise self.unexpected(missing)
            is_first = False
            yield self.at

    def span(self, first: int, last: int | None = None) -> Span:
        """Return the place from token `first` to `last`, or to the one before here."""
        return self.tokens.span(first, max(first, self.at - 1) if last is None else last)

    def unexpected(self, expected: str, help: str = "", begins: bool = False) -> PtoSyntaxError:
        """Return the error that names what should stand here and what does.

        What is missing at the end of a line is shown there, unless it would have begun something new.
        """
        found = f"`{shortened(self.token)}`" if self.token else "the end of the text"
        here = self.span(self.at, self.at)
        if self.token == "%":
            found, help, begins = "`%` without a name", help or NAMES, True
        if self.at and not begins and self.token:
            before = self.span(self.at - 1, self.at - 1)
            if before.end_line < here.line:
                here = before._replace(line=before.end_line, column=before.end_column)
        return PtoSyntaxError(f"expected {expected}, found {found}", spans=(here,), help=help)

    def placed(self, error: KernelError, first: int, last: int | None = None) -> KernelError:
        """Return `error` with the place of the tokens `first` to `last`."""
        error.locate((self.span(first, first if last is None else last),))
        return error

    @contextmanager
    def nested(self) -> Generator[None]:
        """Go one level down, in which new values are visible; refuse to go too deep."""
        if self._depth == DEEPEST:
            what = f"regions and attributes may lie {DEEPEST} deep in each other"
            raise PtoNestingError(what, spans=(self.span(self.at, self.at),))
        self._depth += 1
        outer, self._defined = self._defined, []
        yield
        for name in self._defined:
            del self.values[name]
        self._defined = outer
        self._depth -= 1

    @contextmanager
    def isolated(self) -> Generator[None]:
        """Go into a function, which sees no value from outside."""
        outer, self.values = self.values, {}
        with self.nested():
            yield
        self.values = outer

    def define(self, name: str, type: Type, at: int) -> Value:
        """Return a new value, visible from here on."""
        before = self.values.get(name)
        if before is not None:
            message = f"`%{name}` is already defined on line {before.span.line}"
            raise PtoRedefinitionError(message, spans=(self.span(at, at),))
        value = Value(name, type, self.tokens.span(at, at))
        self.values[name] = value
        self._defined.append(name)
        return value

    def value(self) -> Value:
        """Return the value that is named here."""
        token = self._texts[self.at]
        value = self.values.get(token[1:])
        if value is None or token[0] != "%":
            raise self._no_value(token)
        self.at += 1
        return value

    def _no_value(self, token: str) -> KernelError:
        if not token.startswith("%") or token == "%":
            return self.unexpected("a value such as `%x`")
        help = nearest(token[1:], list(self.values), "%") if self.values else ""
        if f"{token[1:]}#0" in self.values:
            help = f"it has several results: write `{token}#0`"
        return self.placed(PtoUndeclaredValueError(f"`{token}` is not defined before this use", help=help), self.at)

    def type(self, family: str = "") -> Type:
        """Return the type that stands here; `<...>` is one of `family`."""
        at, token = self.at, self._texts[self.at]
        found = self.spelled.get(token)
        if found is not None:
            self.at += 1
            return found
        self._refuse_what_is_no_type(token, family)
        self.at += 1
        if token in BUILTIN_SHAPED:
            if not self.token.startswith("<"):
                raise self.unexpected(f"`<` and what the {token} holds")
            token += self.take()
        try:
            if token[0] == "<":
                return read_elided(token, family)
            found = self.spelled[token] = read_type(token)
        except KernelError as error:
            error.locate((self._blamed(error, at),))
            raise error from None
        return found

    def _blamed(self, error: KernelError, at: int) -> Span:
        """Return the place of the part of the type at `at` that `error` blames, or of all of it."""
        for part in error.blame:
            offset = self._texts[at].rfind(part)
            if offset >= 0:
                return self.tokens.part(at, offset, len(part))
        return self.span(at, at)

    def _refuse_what_is_no_type(self, token: str, family: str) -> None:
        is_elided = token.startswith("<") and len(token) > 1
        if is_elided and not family:
            raise self.unexpected("a type in full, which nothing here implies")
        is_name = token[:1].isalpha() and "." not in token
        if not is_elided and not is_name and not (token.startswith("!") and len(token) > 1):
            raise self.unexpected("a type")

    def check(self, value: Value, at: int) -> None:
        """Read the type here, which must be that of `value`, used at token `at`."""
        written_at = self.at
        own = value.type
        if self.spelled.get(self._texts[written_at]) is own:
            self.at += 1
            return
        written = self.type(family_of(own))
        if written != own and not _is_vaguer(written, own):
            message = f"`%{value.name}` is {brief_text(own)}, its use says {brief_text(written)}"
            place = (self.span(written_at, written_at), self.span(at, at))
            note = f"%{value.name}: {brief_text(own)} from line {value.span.line}"
            help = "write the type the value was defined with"
            raise PtoTypeMismatchError(message, spans=place, notes=(note,), help=help)

    def types(self, family: str = "") -> list[Type]:
        """Return the types of a list with or without parentheses around it."""
        if self.accept("("):
            return [self.type(family) for _ in self.items(")", "`)`")]
        types = [self.type(family)]
        while self.accept(","):
            types.append(self.type(family))
        return types

    def bind(self, names: Iterable[tuple[str, int]], types: list[Type], head: int) -> tuple[Value, ...]:
        """Return the results of the op at token `head`, named as its text names them."""
        named = list(names)
        if not named:
            return tuple(Value("", type, self.span(head, head)) for type in types)
        if len(named) != len(types):
            message = f"`{self._texts[head]}` has {counted(len(types) or 'no', 'result')}, {len(named)} named here"
            raise PtoSyntaxError(message, spans=(self.span(named[0][1], named[-1][1]),))
        return tuple([self.define(name, type, at) for (name, at), type in zip(named, types, strict=True)])


def _is_vaguer(written: Type, own: Type) -> bool:
    """Tell whether text says less of a partition than is known: its type may have been left out, too."""
    if not (isinstance(written, TensorView) and isinstance(own, TensorView) and written.partition and own.partition):
        return False
    if written.element != own.element or len(written.shape) != len(own.shape):
        return False
    return all(extent in (None, known) for extent, known in zip(written.shape, own.shape, strict=True))


def shortened(token: str) -> str:
    """Return a token short enough for a message."""
    flat = " ".join(token.split())
    flat = flat if flat and flat.isprintable() else ascii(token)[1:-1]
    return flat if len(flat) <= 60 else f"{flat[:57]}..."
