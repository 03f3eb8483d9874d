"""Audits: tables of texts that machines take or refuse, a row for each sentence of the rules.

A row is `++ lines`: what A2/A3 and A5 make of them, `+` where they are taken and `-` where they are refused, and after
`=>` what a refusal says. Lines are in the shorthand of examples, their operands the arguments of a function, or they
are functions of their own. `[[a b]]` stands for a row with each of its words, in which `|` is a blank, and
`T<vec, 8x64xf32, nz>` for a tile of a layout.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from tilewright.errors import KernelError
from tilewright.pto.shorthand import written
from tilewright.pto.text.parser import parse
from tilewright.pto.verify import verify

MACHINES = ("a3", "a5")
TABLES = Path(__file__).parent
LAYOUTS = {
    "nd": "blayout=row_major", "dn": "blayout=col_major", "nz": "blayout=col_major, slayout=row_major",
    "zn": "blayout=row_major, slayout=col_major", "zz": "blayout=row_major, slayout=row_major",
    "nn": "blayout=col_major, slayout=col_major",
}  # fmt: skip
_TILE = re.compile(r"\bT<([^>]*)>")
_CHOICE = re.compile(r"\[\[(.*?)\]\]")


@dataclass(frozen=True)
class Row:
    """A text, and what becomes of it on each machine."""

    rule: str
    taken: str
    lines: str
    said: str = ""

    def __str__(self) -> str:
        return f"{self.rule}: {self.taken} {self.lines}"


def rows_of(name: str) -> list[Row]:
    """Return the rows of a table, each under the rule whose heading it stands below."""
    found: list[Row] = []
    rule = ""
    for line in (TABLES / name).read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            rule = line.removeprefix("# ")
        elif line.strip():
            taken, _, rest = line.partition(" ")
            lines, _, said = rest.partition(" => ")
            found += [Row(rule, taken, each, said.strip()) for each in chosen(lines.strip())]
    return found


def chosen(lines: str) -> Iterator[str]:
    """Yield lines with every choice made; equal choices are made alike."""
    choices = list(dict.fromkeys(_CHOICE.findall(lines)))
    for words in product(*(choice.split(" ") for choice in choices)):
        made = lines
        for choice, word in zip(choices, words, strict=True):
            made = made.replace(f"[[{choice}]]", word.replace("|", " "))
        yield made


def text_of(lines: str, arch: str) -> str:
    """Return the module of a function with the operands of lines as arguments, or of the functions that they are."""
    said = [line.strip() for line in _TILE.sub(_tile, lines).split(";")]
    if not said[0].startswith("func.func"):
        head = said.pop(0) if said[0].startswith("(") else "()"
        said = [f"func.func @rule{head} {{", *said, "return", "}"]
    return "\n".join([f'module attributes {{pto.target_arch = "{arch}"}} {{', *written(said), "}", ""])


def _tile(found: re.Match[str]) -> str:
    words = [LAYOUTS.get(word, word) for word in found[1].split(", ")]
    return f"!pto.tile_buf<{', '.join(words)}>"


def refusal(lines: str, arch: str) -> str:
    """Return the first line of what a machine says against lines, nothing where it takes them."""
    try:
        verify(parse(text_of(lines, arch), "rule.pto"))
    except KernelError as error:
        return str(error).splitlines()[0]
    return ""
