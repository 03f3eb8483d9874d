"""Shorthand: the text of examples without what a reader does not need to write.

That is constants (`%c8` is an index, `%n8` an i64, `%i8` an i32, `%h8` an i16, `%x0.5` an f32, `%yes` and `%no` are
flags), the types behind an op's operands, and long types: `v64xf32` is a register, `m32` a mask, `t8x64xf32` a tile in
vec, `w8x64xf32` a window; `mat`, `left`, `right`, `acc`, `bias` and `scaling` before `16x16xf32` are tiles of the
cube's memories.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import takewhile

_BOXED = ", blayout=col_major, slayout=row_major"
_TILES = {
    "t": "vec, {}", "mat": f"mat, {{}}{_BOXED}",
    "left": f"left, {{}}{_BOXED}", "acc": f"acc, {{}}{_BOXED}, fractal=1024",
    "right": "right, {}, blayout=row_major, slayout=col_major", "bias": "bias, {}", "scaling": "scaling, {}",
}  # fmt: skip
_LONG = {
    "v": "!pto.vreg<{}>", "w": "!pto.partition_tensor_view<{}>",
    **{word: f"!pto.tile_buf<{inner}>" for word, inner in _TILES.items()},
}  # fmt: skip
_SHORT = re.compile(rf"(?<![\w.%<])({'|'.join(sorted(_LONG, key=len, reverse=True))})(\d+x[\w?.]+)(?![\w.])")
_MASK = re.compile(r"(?<![\w.%])m(8|16|32)\b")
_NUMBERS = {"c": "index", "n": "i64", "i": "i32", "h": "i16", "x": "f32"}
_NUMBER = re.compile(r"%(?:[cnih]\d+|x\d+\.\d+|yes|no)\b")
_ANGLES = r"<(?:[^<>]|<[^<>]*>)*>"
_PARAMETER = re.compile(rf"%(\w+): ((?:[^,()<]|{_ANGLES})+)")
_TYPE = re.compile(rf"(?:[^\s,<>]|{_ANGLES})+")
_FLAGS = {"yes": "i1", "no": "i1"}
_USED = re.compile(r"%([\w.]+)")
_SPARE = re.compile(r"%(\w+) = (?:pto\.castptr|pto\.addptr|pto\.make_tensor_view|pto\.get_laneid|arith\.)")
_CLAUSE = re.compile(r"\b(ins|outs)\(([^:()]*)\)")
"""Operands under a word that has their types with it."""
_INDEX = re.compile(r"\[.*?\]")
"""Operands in brackets behind another, which have none."""


def lines_of(text: str) -> list[str]:
    """Return the lines of a text that say something, without blanks around them."""
    return [line for each in text.splitlines() if (line := each.strip())]


def needed(lines: Sequence[str]) -> list[str]:
    """Return lines without what makes pointers, views and numbers that none of the others uses."""
    used: set[str] = set()
    kept: list[str] = []
    for line in reversed(lines):
        made = _SPARE.match(line)
        if made and made[1] not in used and "{op}" not in line:
            continue
        used.update(_USED.findall(line))
        kept.append(line)
    return kept[::-1]


def placed(text: str) -> str:
    """Return the making of a pointer to local memory, of `x1: f32 l1 0`."""
    name, _, rest = text.strip().partition(":")
    element, space, start = rest.split()
    return f"%{name} = pto.castptr %n{start} : i64 -> !pto.ptr<{element}, {space}>"


def written(lines: Sequence[str]) -> list[str]:
    """Return functions with their types and constants, indented."""
    done: list[str] = []
    types: dict[str, str] = {}
    for number, line in enumerate(lines):
        long = _lengthened(line)
        if long.startswith("func.func"):
            types = dict(_PARAMETER.findall(long))
            done += [long, *_constants(lines[number + 1 :])]
            types.update({name: _FLAGS.get(name) or _NUMBERS[name[0]] for name in _numbers_in(lines[number + 1 :])})
            continue
        done.append(_typed(long, types))
        types.update(_made(done[-1]))
    depth, indented = 1, list[str]()
    for line in done:
        depth -= line.startswith("}")
        indented.append("  " * (depth - line.startswith("^")) + line)
        depth += line.endswith("{")
    return indented


def _lengthened(line: str) -> str:
    """Return a line with its types in full."""
    return _MASK.sub(r"!pto.mask<b\1>", _SHORT.sub(lambda found: _LONG[found[1]].format(found[2]), line))


def _numbers_in(lines: Sequence[str]) -> list[str]:
    """Return the constants that a function uses."""
    own = list(takewhile(lambda line: not line.startswith("func.func"), lines))
    return sorted({found[0][1:] for line in own for found in _NUMBER.finditer(line)}, key=_order)


def _constants(lines: Sequence[str]) -> list[str]:
    flags = {"yes": "true", "no": "false"}
    return [
        f"%{name} = arith.constant {flags[name] if name in flags else f'{name[1:]} : {_NUMBERS[name[0]]}'}"
        for name in _numbers_in(lines)
    ]


def _order(name: str) -> tuple[str, float]:
    return ("", 0) if name in _FLAGS else (name[0], float(name[1:]))


def _typed(line: str, types: Mapping[str, str]) -> str:
    """Return an op with the types of its operands, where nothing is said about types."""
    line = _CLAUSE.sub(lambda found: f"{found[1]}({found[2]} : {_types(found[2], types)})", line)
    if ":" in line or "%" not in line or line[-1] in "{}":
        return line
    head, arrow, result = line.partition(" -> ")
    operands = head.partition(" = ")[2] if head.startswith("%") else head
    said = _types(_INDEX.sub("", operands), types)
    return f"{head} : {said}{arrow}{result}" if said else line


def _types(operands: str, types: Mapping[str, str]) -> str:
    return ", ".join(types.get(name, "?") for name in _USED.findall(operands))


def _made(line: str) -> dict[str, str]:
    """Return the types of what a line makes."""
    names, equals, rest = line.partition(" = ")
    if not equals or not names.startswith("%"):
        return {}
    after = rest.rpartition(" -> ")[2] if " -> " in rest else rest.rpartition(" : ")[2]
    return dict(zip(_USED.findall(names), _TYPE.findall(after.rpartition(" to ")[2]), strict=False))
