"""Kinds: what an operand may be, in one letter, and signatures made of them.

A signature is a row of letters: `tt?` is a tile and perhaps another, `ts|st` a tile and a scalar in either order,
`x*` any number of anything. Letters that share (`t`, `v`) have one element type throughout an op; `e` is a scalar
that goes with it, `m` a mask as wide.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TypeAlias

from tilewright.pto.memrefs import is_memref
from tilewright.pto.types import ALIGN, I1, Mask, Opaque, Ptr, Scalar, Space, TensorView, TileBuf, Type, VReg
from tilewright.records import record

Count: TypeAlias = tuple[int, int]
"""The fewest and the most of something."""
_MANY = 1 << 30


@record
class Kind:
    """One letter: what it takes, in words and as a test."""

    name: str
    takes: Callable[[Type], bool]


_KINDS = {
    "tz": Kind("a tile", lambda type: isinstance(type, TileBuf)),
    "q": Kind("a partition of a tensor view", lambda type: isinstance(type, TensorView) and type.partition),
    "w": Kind("a tensor view", lambda type: isinstance(type, TensorView) and not type.partition),
    "y": Kind("a tensor view or a partition of one", lambda type: isinstance(type, TensorView)),
    "se": Kind("a number", lambda type: type.__class__ is Scalar),
    "i": Kind("an integer", lambda type: isinstance(type, Scalar) and type.is_integer),
    "b": Kind("an i1", lambda type: type == I1),
    "f": Kind("a float", lambda type: isinstance(type, Scalar) and type.is_float),
    "vu": Kind("a vector register", lambda type: type.__class__ is VReg),
    "mn": Kind("a mask", lambda type: type.__class__ is Mask),
    "p": Kind("a pointer", lambda type: isinstance(type, Ptr)),
    "g": Kind("a pointer to global memory", lambda type: isinstance(type, Ptr) and type.space is Space.GM),
    "l": Kind("a pointer to ub", lambda type: isinstance(type, Ptr) and type.space is Space.VEC),
    "a": Kind("an alignment state", lambda type: type == ALIGN),
    "o": Kind("an array", lambda type: type.__class__ is Opaque),
    "r": Kind("a memref", is_memref),
    "x": Kind("a value", lambda type: True),
}
KINDS = {letter: kind for letters, kind in _KINDS.items() for letter in letters}


@record
class Signature:
    """Rows of kinds, one of which operands must follow."""

    rows: tuple[str, ...]
    count: Count


@lru_cache(maxsize=1024)
def signature(text: str) -> Signature:
    """Return what `text` spells."""
    rows: list[str] = []
    counts: list[Count] = []
    for row in text.split("|"):
        letters = row.replace("?", "").replace("*", "")
        optional = row.count("?")
        most = _MANY if row.endswith("*") else len(letters)
        rows.append(letters)
        counts.append((len(letters) - optional - row.endswith("*"), most))
    return Signature(tuple(rows), (min(low for low, _ in counts), max(high for _, high in counts)))


def fits(number: int, signature_text: str) -> bool:
    """Tell whether `number` operands can follow a signature."""
    fewest, most = signature(signature_text).count
    return fewest <= number <= most


def shown(signature_text: str) -> str:
    """Return how many operands a signature has, as words."""
    fewest, most = signature(signature_text).count
    if fewest == most:
        return str(fewest)
    return f"at least {fewest}" if most == _MANY else f"{fewest} to {most}"


def counted(count: object, noun: str) -> str:
    """Return a number of things as messages say it."""
    return f"{count} {noun}{'' if str(count) == '1' else 's'}"


def rows_for(signature_text: str, count: int) -> list[str]:
    """Return the rows of a signature for so many operands, the last letter of each as often as it takes."""
    return [(row + row[-1:] * (count - len(row)))[:count] for row in signature(signature_text).rows]


def row_of(signature_text: str, types: Sequence[Type]) -> str:
    """Return the row of a signature that `types` follow, as many letters as there are types, or nothing."""
    for letters in rows_for(signature_text, len(types)):
        if all(KINDS[letter].takes(type) for letter, type in zip(letters, types, strict=False)):
            return letters
    return ""


def misfit(signature_text: str, types: Sequence[Type]) -> tuple[int, str]:
    """Return the first position where `types` leave the first row of a signature, and what belongs there."""
    for i, (letter, type) in enumerate(zip(rows_for(signature_text, len(types))[0], types, strict=False)):
        if not KINDS[letter].takes(type):
            return i, KINDS[letter].name
    return 0, "something else"
