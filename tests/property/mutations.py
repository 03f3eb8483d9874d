"""Mutations: PTO texts with a few things changed, mostly to what they were not written for.

A change takes one place, or every place that has the same word: types are spelled again where values are used, and a
text that disagrees with itself gets no further than the parser.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from random import Random

KERNELS = sorted((Path(__file__).parents[1] / "unit" / "pto").glob("*/kernels/*.pto"))
TEXTS = {f"{path.parents[1].name}/{path.stem}": path.read_text(encoding="utf-8") for path in KERNELS}
"""Every sample kernel, by its folder and name."""
FILES = sorted((Path(__file__).parents[1] / "unit" / "pto").rglob("*.pto"))
"""Every file of PTO text that tests have, wrong ones too."""

NUMBERS = ("0", "1", "2", "3", "7", "8", "15", "16", "31", "32", "33", "64", "65", "128", "4096", "-1", "253952", "?")
EDGES = (
    "-1",
    "0",
    "1",
    "255",
    "65536",
    f"{2**31 - 1}",
    f"{2**31}",
    f"{-(2**31)}",
    f"{2**32}",
    f"{2**63 - 1}",
    f"{2**63}",
)
TYPES = (
    *("i1", "i8", "i16", "i32", "i64", "ui8", "ui16", "ui32", "ui64", "si8", "si16", "index", "f16", "bf16", "f32"),
    *("f8E4M3FN", "f8E5M2", "!pto.hif8", "!pto.hif8x2", "!pto.f4E1M2x2", "!pto.f4E2M1x2"),
)
LAYOUTS = ("vec", "mat", "left", "right", "acc", "bias", "scaling", "row_major", "col_major", "none_box", "ub", "gm")
CHARACTERS = (
    *'\0\t\r"\\{}<>()[]%@#!-x?,:=.e\u2028\ufeff\x85é核',
    *("\r\n", "//", "1" * 30, "0x", "1e999", "->", "::", "^bb0", '"\\', "\\22", "[[", "{}", "#pto<", "dense<"),
    *("!pto.tile_buf<", 'loc("a":1:1)'),
)
TOKEN = re.compile(r"%[\w$]+|-?\d+(?:\.\d+)?|[\w.]+|\S")
_TYPE = re.compile(r"!pto\.(?:hif8|f4)\w*|(?<![\w%@.])(?:\d+x)*((?:[us]?i(?:1|8|16|32|64)|b?f16|f32|f8E\w+|index))\b")
_NUMBER = re.compile(r"(?<![\w.%@])-?\d+(?![\w.]*x\w*\")(?:(?=x)|\b)(?!\.\d)")
_OPERAND = re.compile(r"%[\w$#]+")
_OP = re.compile(r"\bpto\.[a-z_0-9.]+")


def mutated(text: str, rng: Random) -> str:
    """Return a text with one to three things changed."""
    for change in rng.choices([*CHANGES], [*CHANGES.values()], k=rng.choice((1, 1, 1, 2, 3))):
        text = change(text, rng)
    return text


def characters_changed(text: str, rng: Random) -> str:
    """Return a text with some characters dropped, or written over by others, mostly such as mean something."""
    for _ in range(rng.randint(1, 4)):
        at, again = rng.randrange(len(text) + 1), rng.randrange(len(text) + 1)
        new = rng.choice(CHARACTERS) if rng.random() < 0.7 else text[again : again + rng.randint(1, 60)]
        text = text[:at] + new + text[at + rng.choice((0, 0, 1, 1, 2, 5, 40)) :]
    return text


def word_changed(text: str, rng: Random) -> str:
    """Return a text with a word changed: a number for a number, a word for one of the same kind."""
    tokens = [m for m in TOKEN.finditer(text) if not m.group().startswith(("func", "module"))]
    chosen = tokens[rng.randrange(len(tokens))]
    return _put(text, chosen, _other(chosen.group(), tokens, rng))


def _other(word: str, tokens: list[re.Match[str]], rng: Random) -> str:
    if rng.random() < 0.1:
        return ""
    if re.fullmatch(r"-?\d+", word) and rng.random() < 0.7:
        return rng.choice(NUMBERS)
    return rng.choice([m.group() for m in tokens if m.group()[0] == word[0] or m.group()[:4] == word[:4]])


def _number_changed(text: str, rng: Random) -> str:
    return _changed(text, _NUMBER, lambda _: rng.choice((*NUMBERS, *EDGES)), rng)


def _constant_changed(text: str, rng: Random) -> str:
    """Change a constant, or hand a number an op takes to the edge of its type."""
    found = list(re.finditer(r"(?<=arith\.constant )-?\d+(?= )", text))
    return _put(text, rng.choice(found), rng.choice(EDGES)) if found else text


def _type_changed(text: str, rng: Random) -> str:
    found = [m for m in _TYPE.finditer(text)]
    if not found:
        return text
    word = rng.choice(found)
    old = word[1] or word[0]
    new = rng.choice(TYPES)
    if rng.random() < 0.3:
        start = word.start(1) if word[1] else word.start()
        return text[:start] + new + text[start + len(old) :]
    return re.sub(rf"(?<![A-Za-z%@.!]){re.escape(old)}\b", new, text)


def _layout_changed(text: str, rng: Random) -> str:
    return _changed(text, re.compile(rf"\b(?:{'|'.join(LAYOUTS)})\b"), lambda _: rng.choice(LAYOUTS), rng)


def _extent_changed(text: str, rng: Random) -> str:
    """Change one extent of a tile or view, or what is valid of a tile, wherever that type is spelled."""
    types = sorted(set(re.findall(r"!pto\.(?:tile_buf|\w*tensor_view)<[^>]*>", text)))
    if not types:
        return text
    old = rng.choice(types)
    new = _changed(old, re.compile(r"\d+(?=x)|\?"), lambda _: rng.choice(NUMBERS), rng)
    if old.startswith("!pto.tile_buf") and "valid" not in old and rng.random() < 0.3:
        new = f"{old[:-1]}, valid={rng.choice(NUMBERS)}x{rng.choice(NUMBERS)}>"
    return text.replace(old, new)


def _operand_dropped(text: str, rng: Random) -> str:
    return _changed(text, re.compile(r"%[\w$#]+(?:, )?(?=[^=\n]*\n)|, %[\w$#]+"), lambda _: "", rng)


def _operand_changed(text: str, rng: Random) -> str:
    """Put another value where one is used, mostly one whose name begins alike: that often is of its type."""
    names = [m.group() for m in _OPERAND.finditer(text)]
    width = rng.choice((1, 2, 2, 3))
    return _changed(text, _OPERAND, lambda old: rng.choice([n for n in names if n[:width] == old[:width]]), rng)


def _op_changed(text: str, rng: Random) -> str:
    names = sorted({m.group() for other in TEXTS.values() for m in _OP.finditer(other)})
    return _changed(text, _OP, lambda old: rng.choice([n for n in names if n[:5] == old[:5]] or names), rng)


def _line_moved(text: str, rng: Random) -> str:
    """Drop a line, write it twice, or put it elsewhere."""
    lines = text.split("\n")
    at, to = rng.randrange(len(lines)), rng.randrange(len(lines))
    line = lines[at]
    match rng.randrange(3):
        case 0:
            del lines[at]
        case 1:
            lines.insert(at, line)
        case _:
            lines.insert(to, lines.pop(at))
    return "\n".join(lines)


def _name_changed(text: str, rng: Random) -> str:
    """Give a function or a value a name outside ASCII, or one that means something elsewhere."""
    found = [m.group() for m in re.finditer(r"@\w+|%[A-Za-z]\w*", text)]
    if not found:
        return text
    old = rng.choice(found)
    word = rng.choice(("größe", "核", "a b", "main", "for", "x\\\\y", "llvm.trap", "memcpy", "1", ""))
    new = f'@"{word}"' if old[0] == "@" else f"%{word}"
    return re.sub(rf"{re.escape(old)}\b", lambda _: new, text)


CHANGES: dict[Callable[[str, Random], str], int] = {
    word_changed: 2,
    _number_changed: 2,
    _constant_changed: 6,
    _type_changed: 5,
    _layout_changed: 2,
    _extent_changed: 6,
    _operand_dropped: 1,
    _operand_changed: 4,
    _op_changed: 4,
    _line_moved: 2,
    _name_changed: 1,
}
"""What can be done to a text, and how often that is; most of it leaves a text that parses."""


def _changed(text: str, pattern: re.Pattern[str], other: Callable[[str], str], rng: Random) -> str:
    found = list(pattern.finditer(text))
    if not found:
        return text
    chosen = rng.choice(found)
    return _put(text, chosen, other(chosen.group()))


def _put(text: str, place: re.Match[str], word: str) -> str:
    return text[: place.start()] + word + text[place.end() :]
