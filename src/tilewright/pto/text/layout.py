"""The layout: PTO text with its blanks put in order. Not a token changes; comments and line breaks stay.

A line is indented by the braces around it, and a step more where it goes on with the op of the line before. Blanks are
one or none: one around `=` and `->`, none inside parentheses, one before a colon that is not a parameter's. Where both
are common, as before a parenthesis, the author's choice stands.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import takewhile

from tilewright.pto.text.lexer import Tokens

_STEP = "  "
_RESULTS = re.compile(r"%[^,:]+(:\d+)?(,%[^,:]+(:\d+)?)*")
"""Names before an equals sign, some of them for several values: `%a, %pair:2`."""
_APART = frozenset(("=", "->"))
_NAMED = frozenset(("offset", "sizes", "strides"))
"""The words of a cast of memory that have their colons with them, as in `offset: [0]`."""
_STARTS = frozenset(("module", "return", "}"))
"""What begins an op, or ends a region, and has no dialect."""


@dataclass(slots=True)
class _Line:
    """Tokens that stand on one line, with the comment after them."""

    tokens: list[str] = field(default_factory=list[str])
    blanks: list[bool] = field(default_factory=list[bool])
    """Whether each token had a blank before it."""
    comment: str = ""
    is_apart: bool = False
    """Whether an empty line is above."""

    @property
    def is_label(self) -> bool:
        """Whether it names the values that a region starts from."""
        return bool(self.tokens) and self.tokens[0].startswith("^")

    @property
    def starts_op(self) -> bool:
        """Whether an op begins here, as far as words can tell."""
        first = self.tokens[0]
        if first.startswith("%"):
            results = "".join(takewhile(lambda token: token != "=", self.tokens))
            return "=" in self.tokens and _RESULTS.fullmatch(results) is not None
        if first.startswith(("!", "#")):
            return self.tokens[1:2] == ["="]
        return first in _STARTS or first.startswith(("^", '"')) or (first[0].isalpha() and "." in first)


def formatted(text: str, filename: str = "<text>") -> str:
    """Return text whose tokens are those of `text`, laid out in order; laid out text comes back as it is."""
    lines = list(_lines(Tokens(text, filename)))
    return "".join(f"{line}\n" for line in _indented(lines))


def _lines(tokens: Tokens) -> Iterator[_Line]:
    """Yield the lines of a text; one that holds only a comment has no tokens."""
    line, end = _Line(), 0
    for token, start in zip(tokens.texts, [*tokens.starts[:-1], len(tokens.text)], strict=True):
        rest, *below = tokens.text[end:start].split("\n")
        line.comment = rest.strip()
        is_blank = rest != ""
        for part in below:
            is_empty = not line.tokens and not line.comment
            if not is_empty:
                yield line
            line = _Line(comment=part.strip(), is_apart=is_empty)
            is_blank = False
        line.tokens.append(token)
        line.blanks.append(is_blank)
        end = start + len(token)
    del line.tokens[-1], line.blanks[-1]  # the end of the text
    if line.tokens or line.comment:
        yield line


def _indented(lines: list[_Line]) -> Iterator[str]:
    """Yield the lines as text."""
    depth, layout = 0, _Blanks()
    for number, line in enumerate(lines):
        if line.is_apart and number:
            yield ""
        leading = next((i for i, token in enumerate(line.tokens) if token != "}"), len(line.tokens))
        leading += line.is_label
        goes_on = bool(line.tokens) and (bool(layout.open) or not line.starts_op)
        indent = _STEP * (max(0, depth - leading) + goes_on)
        depth += line.tokens.count("{") - line.tokens.count("}")
        text = layout.joined(line)
        yield f"{indent}{text}{'  ' if text and line.comment else ''}{line.comment}"


class _Blanks:
    """What stands between tokens, given the parentheses around them."""

    def __init__(self) -> None:
        self.open: list[bool] = []
        """For each parenthesis or bracket around the token, whether it holds parameters or a location."""

    def joined(self, line: _Line) -> str:
        """Return a line's tokens with the blanks that belong between them."""
        text, before = "", ""
        for token, had_blank in zip(line.tokens, line.blanks, strict=True):
            is_colon_of_label = line.is_label and token == ":" and not self.open
            is_apart = before and not is_colon_of_label and self._is_apart(before, token, had_blank)
            text += f" {token}" if is_apart else token
            if token in ("(", "["):
                starts = before == "loc" or before.startswith(("@", "^")) or self.open[-1:] == [True]
                self.open.append(token == "(" and starts)
            elif token in (")", "]") and self.open:
                self.open.pop()
            before = token
        return text

    def _is_close(self, before: str, had_blank: bool) -> bool:
        """Whether a colon is a parameter's or counts results, as in `%pair:2`."""
        return self.open[-1] if self.open else before.startswith("%") and not had_blank

    def _is_apart(self, before: str, token: str, had_blank: bool) -> bool:
        if token == "," or before in ("(", "[") or token in (")", "]"):
            return False
        if token == ":":
            return not self._is_close(before, had_blank) and (had_blank or before not in _NAMED)
        if token.isdecimal() and before == ":" or token == "{" and before[0] in "<%":
            return had_blank
        return had_blank or before in (",", ":") or before in _APART or token in _APART or token == "{"
