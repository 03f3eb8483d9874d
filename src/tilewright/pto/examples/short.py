"""Short lines: what a declaration writes for an example, and the PTO text that it is short for.

Lines are separated by `;`. The first may say what they are given, as the arguments of a function, of any type:
`(%a: T<8x64xf32>, %m: M<32>)`; a word after a type says what to fill it with, as in `%i: V<ui32> = arange`. Lines that
say no types get those of their operands, `%c8` and `%c8_i64` are constants, and types have short names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from tilewright.records import record

_BOXED = "blayout=col_major, slayout=row_major"
_NAMES = {
    "M": "!pto.mask<b{}>",
    "T": "!pto.tile_buf<vec, {}>",
    "L": "!pto.tile_buf<mat, {}>",
    "A": f"!pto.tile_buf<left, {{}}, {_BOXED}>",
    "B": "!pto.tile_buf<right, {}, slayout=col_major>",
    "C": f"!pto.tile_buf<acc, {{}}, {_BOXED}, fractal=1024>",
    "P": "!pto.ptr<{}, ub>",
    "G": "!pto.ptr<{}, gm>",
    "W": "!pto.partition_tensor_view<{}>",
}
"""Short for masks, tiles in vec, mat, left, right and acc, pointers to ub and gm, and windows."""
_GIVEN = re.compile(r"%(\w+): (.+?)(?: = ([\w:.-]+))?(?=, %|\)$)")
_CONSTANT = re.compile(r"%c(\d+)(?:_([a-z]+\d+))?$")
_OPERAND = re.compile(r"%[\w#]+")
_CLAUSE = re.compile(r"\b(ins|outs)\(([^:()]*)\)")


@record
class Given:
    """Something that lines are given: its type, and what it is filled with."""

    type: str
    fill: str


@record
class Lines:
    """The lines of an example in full."""

    given: dict[str, Given]
    lines: tuple[str, ...]


def written_out(text: str) -> Lines:
    """Return what short lines are short for."""
    lines = [_types_in_full(line.strip()) for line in text.strip().split(";")]
    head = lines.pop(0) if lines[0].startswith("(") else ""
    given = {name: Given(kind, fill) for name, kind, fill in _GIVEN.findall(head)}
    known = {f"%{name}": each.type for name, each in given.items()}
    return Lines(given, tuple(_typed(line, known) for line in lines))


def _types_in_full(line: str) -> str:
    line = re.sub(r"\bV<(\D*?(\d+)[^<>]*)>", lambda found: f"!pto.vreg<{2048 // int(found[2])}x{found[1]}>", line)
    return re.sub(r"\b([MTLABCPGW])<([^<>]*)>", lambda found: _NAMES[found[1]].format(found[2]), line)


def _typed(line: str, known: dict[str, str]) -> str:
    """Return a line with the types of its operands, and note those of its results."""
    made, equals, rest = line.partition(" = ") if line.startswith("%") else ("", "", line)
    rest = _CLAUSE.sub(lambda found: f"{found[1]}({found[2]} : {_types(found[2], known)})", rest)
    if " : " not in rest and not rest.endswith("{") and not rest.startswith(("scf.", "^")):
        text, arrow, results = rest.partition(" -> ")
        kinds = _types(re.sub(r"\[.*?\]", "", text), known)
        rest = f"{text} : {kinds}{arrow}{results}" if kinds else rest
    results = rest.rpartition(" -> ")[2] if " -> " in rest else rest.rpartition(" : ")[2].rpartition(" to ")[2]
    known.update(zip(_OPERAND.findall(made), re.split(r", (?![^<]*>)", results.strip("() {")), strict=False))
    return f"{made}{equals}{rest}"


def _types(operands: str, known: dict[str, str]) -> str:
    return ", ".join(known.get(name) or _constant_type(name) for name in _OPERAND.findall(operands))


def _constant_type(name: str) -> str:
    found = _CONSTANT.match(name)
    return (found[2] or "index") if found else "index"


def is_constant(name: str) -> bool:
    """Tell whether a value's name says that it is a constant."""
    return bool(_CONSTANT.match(f"%{name}"))


def constants(lines: Iterable[str]) -> list[str]:
    """Return the lines that define the constants of a text."""
    used = dict.fromkeys(name for line in lines for name in _OPERAND.findall(line))
    found = [match for name in used if (match := _CONSTANT.match(name))]
    return [f"{match[0]} = arith.constant {_digits(match)} : {match[2] or 'index'}" for match in found]


def _digits(match: re.Match[str]) -> str:
    return f"{match[1]}.0" if (match[2] or "").startswith(("f", "b")) else match[1]
