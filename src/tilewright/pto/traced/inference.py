"""Inference: the types of an op's results, and of the Python numbers among its operands.

Both follow from the letters of the op's form: `v` is the register that an op computes in, `m` a mask as wide, `e` a
number that goes with its elements, `i` a count. What a letter leaves open, the op's declaration or `dtype=` decides.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tilewright.pto.module import Value
from tilewright.pto.op import Declaration
from tilewright.pto.ops.registry import OPS
from tilewright.pto.text.kinds import KINDS, rows_for, signature
from tilewright.pto.types import ALIGN, INDEX, SCALARS, Mask, Opaque, Ptr, Scalar, TileBuf, Type, VReg


def letters_of(text: str, values: Sequence[object]) -> str:
    """Return the kind of each of some operands: the row of a signature that they follow, or its first."""
    rows = rows_for(text, len(values))
    return next((row for row in rows if len(row) == len(values) and all(map(could_be, row, values))), rows[0])


def could_be(letter: str, value: object) -> bool:
    """Return whether a value is of a kind, or a number that can become one."""
    if isinstance(value, Value):
        return KINDS[letter].takes(value.type)
    return letter in "seifbx" and isinstance(value, (bool, int, float))


@dataclass(frozen=True)
class Inference:
    """What the operands of one op say about its other types."""

    name: str
    types: Sequence[Type]
    """The types of the operands that have one, in order."""
    dtype: Scalar | None = None
    """The element type that `dtype=` asks for."""

    @property
    def declared(self) -> Declaration:
        """What is known about the op."""
        return OPS[self.name]

    @property
    def element(self) -> Scalar | None:
        """The element type that the op computes in: of what it writes, unless that is another by nature."""
        tiles = [type.element for type in self.types if isinstance(type, TileBuf)]
        if tiles:
            return tiles[0 if self.declared.is_by_source else -1]
        of = (element for type in self.types if (element := _held(type)) is not None)
        return next(of, None) or self.dtype

    @property
    def width(self) -> int | None:
        """The lanes that a mask covers, in bits, as the op's name or its operands have them."""
        named = self.name.rpartition("_b")[2]
        if named.isdigit():
            return int(named)
        return next((type.bits for type in self.types if isinstance(type, Mask)), None)

    def number(self, letter: str) -> Scalar | None:
        """Return the type of a number at a place of some kind, or None where nothing says it."""
        counts = self.declared.counts
        return counts if letter == "i" or (letter == "x" and counts != INDEX) else self.element

    def results(self) -> tuple[Type, ...] | None:
        """Return the types of the op's results, or None where they do not follow."""
        form = self.declared.form
        if form.implied is not None:
            return (form.implied,)
        if self.dtype is None and not self.declared.widens:
            return None
        row = signature(form.results).rows[0][: signature(form.results).count[0]]
        found = [self._result(letter) for letter in row]
        return tuple(each for each in found if each is not None) if None not in found else None

    def _result(self, letter: str) -> Type | None:
        match letter:
            case "v" | "u":
                element = self._lane()
                return None if element is None else register(element)
            case "m" | "n":
                return self._mask(letter)
            case "s":
                return self.element
            case "i":
                return SCALARS["i32"]
            case "a":
                return ALIGN
            case "z":
                tile = next((type for type in self.types if isinstance(type, TileBuf)), None)
                return None if tile is None else replace(tile, element=self.dtype or tile.element)
            case "p":
                first = self.types[0] if self.types else None
                return Ptr(first.element, first.space) if isinstance(first, TileBuf) else first
            case _:
                return None

    def _mask(self, letter: str) -> Mask | None:
        """Return a mask as wide as what is computed with, or as `dtype=`, the name or another mask says."""
        element = self.dtype or (self.element if letter == "m" or self.width is None else None)
        bits = self.width if element is None else element.bits
        return Mask(bits) if bits in (8, 16, 32) else None

    def _lane(self) -> Scalar | None:
        """Return the elements of a register: as those of another that is no index, of memory, or of a scalar."""
        made = next((type.element for type in self.types if isinstance(type, VReg)), None)
        if self.dtype is None and made is not None and {"u", "v"} & set(self.declared.form.operands):
            return made if self.declared.widens == 1 else _resized(made, int(made.bits * self.declared.widens))
        pointed = (type.element for type in self.types if isinstance(type, Ptr))
        spread = (type for type in self.types if isinstance(type, Scalar))
        return self.dtype or next(pointed, None) or next(spread, None)


_ARRAY = re.compile(r"!pto\.local_array<(?:\d+x)+(\w+)>")


def _held(type: Type) -> Scalar | None:
    """Return the elements of a register, of memory, or of a local array."""
    if isinstance(type, VReg | Ptr):
        return type.element
    array = _ARRAY.fullmatch(type.text) if isinstance(type, Opaque) else None
    return None if array is None else SCALARS.get(array[1])


def _resized(element: Scalar, bits: int) -> Scalar | None:
    sign = element.name.rstrip("0123456789") if element.is_integer else "i"
    return SCALARS.get(f"{sign}{bits}")


def register(element: Scalar) -> VReg:
    """Return the register of an element type: always 256 bytes."""
    return VReg(2048 // element.bits, element)
