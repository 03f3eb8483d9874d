"""Tokens: PTO text cut into words, each with its place.

A whole type (`!pto.ptr<f32, gm>`), a whole attribute (`#pto.pipe<PIPE_V>`) and a whole elided one (`<PIPE_V>`) is one
token, so that each spelling is read once and looked up afterwards. Nothing is skipped but blanks, comments and the byte
order mark that some editors begin files with: a character that starts no token is a token of its own, which the parser
then names.
"""

from __future__ import annotations

import re
from bisect import bisect_right

from tilewright.source import Source, Span

_ANGLES = r'<[^<>{}%";]*(?:<[^<>{}%";]*>[^<>{}%";]*)*>'
_TOKEN = re.compile(
    rf"""(?:[ \t\r\n]+|//[^\n]*|\A\ufeff)*
    ( %[\w$.]+(?:-[\w$.]+)*(?:\#\d+)?
    | [A-Za-z_][\w$.]*
    | ->
    | [,:()\[\]{{}}=]
    | [!\#][\w.]+(?:{_ANGLES})?
    | {_ANGLES}
    | -?0x[0-9A-Fa-f]+
    | -?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?
    | "(?:[^"\\\n]|\\.)*"
    | @(?:[\w$.]+|"[^"\n]*")
    | \^\w+
    | \Z
    | .
    )""",
    re.VERBOSE | re.ASCII,
)


class Tokens:
    """The tokens of one text: what they say and where they start; the last one is empty."""

    __slots__ = ("_is_ascii", "_line_starts", "source", "starts", "text", "texts")

    def __init__(self, text: str, filename: str) -> None:
        self.text = text
        lines = text.split("\n")
        self.source = Source(filename, tuple(line.removesuffix("\r") for line in lines))
        self._line_starts = [0]
        for line in lines[:-1]:
            self._line_starts.append(self._line_starts[-1] + len(line) + 1)
        self.texts: list[str] = []
        self.starts: list[int] = []
        for match in _TOKEN.finditer(text):
            self.texts.append(match[1])
            self.starts.append(match.start(1))
        end = self.texts.index("")  # where the text ends, which is a match or two
        del self.texts[end + 1 :], self.starts[end:]
        self.starts.append(len(text.rstrip()))
        self._is_ascii = text.isascii()

    def span(self, first: int, last: int) -> Span:
        """Return the place from token `first` to the end of token `last`."""
        start, end, lines = self.starts[first], self.starts[last] + len(self.texts[last]), self._line_starts
        line = bisect_right(lines, start)
        if self._is_ascii and line < len(lines) and end <= lines[line]:  # as most do
            begin = lines[line - 1]
            return Span(self.source, line, start - begin, line, end - begin)
        return self._between(start, end)

    def _between(self, start: int, end: int) -> Span:
        starts = self._line_starts
        line = bisect_right(starts, start)
        end_line = line if line < len(starts) and end <= starts[line] else bisect_right(starts, end)
        if self._is_ascii:
            return Span(self.source, line, start - starts[line - 1], end_line, end - starts[end_line - 1])
        return Span(self.source, line, self._bytes(line, start), end_line, self._bytes(end_line, end))

    def part(self, token: int, offset: int, length: int) -> Span:
        """Return the place of `length` characters of a token from `offset` on."""
        return self._between(self.starts[token] + offset, self.starts[token] + offset + length)

    def _bytes(self, line: int, offset: int) -> int:
        """Return how many bytes of UTF-8 lie between the start of `line` and `offset`, which is how spans count."""
        return len(self.text[self._line_starts[line - 1] : offset].encode(errors="surrogatepass"))
