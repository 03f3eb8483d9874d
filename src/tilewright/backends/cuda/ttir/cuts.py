"""Cuts: rows that several blocks share out, where each element is computed from those in its place alone.

Small blocks keep memory busier than large ones. The text of such a kernel is written for whole rows; cut, a block has
the columns of its part, and counts them from where that begins.
"""

from __future__ import annotations

import re
from math import prod

PART, MOVED, LEAST = 1024, 6144, 256
"""Elements of a block's tiles, but more where it would move less than so many bytes, as starting one takes 1.2 ns; how
many of a row at least."""

_FREE = re.compile(
    r"arith\.|math\.|tt\.(?:load|store|splat|expand_dims|broadcast|addptr|make_range|bitcast|get_program_id|return"
    r"|func|elementwise_inline_asm|extern_elementwise|precise_\w+|fp_to_fp) |scf\.(?:if|yield) "
)
"""Operations that look at one place of all their operands."""
_OPERATION = re.compile(r"^ *(?:%\S+ = )?\"?([a-z_]+\.\w+[^\n]*)", re.MULTILINE)
_RANGE = re.compile(r"( *)(%\d+) = tt\.make_range \{end = (\d+) : i32, start = 0 : i32\} : tensor<\3xi32>([^\n]*)")
_BLOCK = re.compile(r"( *)(%\d+) = arith\.extsi (%\d+) : i32 to i64([^\n]*)")
_SHAPE = re.compile(r"tensor<((?:\d+x)+)")
_MOVE = re.compile(r"tt\.(?:load|store) (%\w+).*? : tensor<((?:\d+x)+)!tt\.ptr<[a-z]+(\d+)")
_WORD = re.compile(r"%\w+|tt\.get_program_id")


def parts(text: str, errors: str) -> int:
    """Return among how many blocks a kernel's rows can be shared out, 1 where it is better left whole.

    `errors` is the parameter where it notes errors, nothing else than which and tiles it may store.
    """
    shapes = {tuple(map(int, found.split("x")[:-1])) for found in _SHAPE.findall(text)}
    width = max((shape[-1] for shape in shapes), default=1)
    if "dense<[" in text or not all(_FREE.match(found + " ") for found in _OPERATION.findall(text)):
        return 1
    stores = re.findall(r"tt\.store (%\w+),[^\n]*? : (tensor|)", text)
    if not shapes or not stores or any(kind != "tensor" and place != errors for place, kind in stores):
        return 1
    if any(shape[-1] not in (1, width) or width in shape[:-1] for shape in shapes if len(shape) > 1):
        return 1
    largest = max(map(prod, shapes))
    return max(1, min(largest // _part(text, largest), width // LEAST))


def _part(text: str, largest: int) -> int:
    """Return how many elements a block's tiles have, by the bytes that are moved for each.

    What all blocks of several rows load is in the cache, and counts for nothing.
    """
    shared, apart, own = 0, 0, {"tt.get_program_id"}
    for line in text.splitlines():
        name, _, made = line.strip().partition(" = ")
        if made and not own.isdisjoint(_WORD.findall(made)):
            own.add(name)
        move = _MOVE.search(line)
        if move and prod(map(int, move[2].split("x")[:-1])) == largest:
            size = max(int(move[3]) // 8, 1)
            shared, apart = (shared, apart + size) if move[1] in own else (shared + size, apart)
    part, moved = PART, apart or shared
    while moved and part * moved < MOVED:
        part *= 2
    return part


def cut(text: str, count: int) -> str:
    """Return the text of a kernel of which so many blocks share each row out."""
    width = max(int(found.split("x")[-2]) for found in _SHAPE.findall(text))
    each = width // count

    def ranged(found: re.Match[str]) -> str:
        pad, name, extent, place = found.groups()
        if int(extent) != width:
            return found[0]
        made, number = f"tensor<{each}xi32>", name[1:]
        lines = (
            f"%line{number} = tt.make_range {{end = {each} : i32, start = 0 : i32}} : {made}",
            f"%far{number} = tt.splat %first : i32 -> {made}",
            f"{name} = arith.addi %line{number}, %far{number} : {made}",
        )
        return "\n".join(f"{pad}{line}{place}" for line in lines)

    def numbered(found: re.Match[str]) -> str:
        pad, name, block, place = found.groups()
        lines = (
            f"%count = arith.constant {count} : i32",
            f"%each = arith.constant {each} : i32",
            f"%part = arith.remsi {block}, %count : i32",
            "%first = arith.muli %part, %each : i32",
            f"%turn = arith.divsi {block}, %count : i32",
            f"{name} = arith.extsi %turn : i32 to i64",
        )
        return "\n".join(f"{pad}{line}{place}" for line in lines)

    text = _BLOCK.sub(numbered, text, count=1)
    text = _RANGE.sub(ranged, text)
    return re.sub(rf"tensor<((?:\d+x)*?){width}x(?=[^\d])", rf"tensor<\g<1>{each}x", text)
