"""Inference: the types of an op's results, and of the Python numbers among its operands.

Both follow from the letters of the op's form: `v` is the register that an op computes in, `m` a mask as wide, `e` a
number that goes with its elements, `i` a count. What a letter leaves open, the op's name or `dtype=` decides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tilewright.pto.module import Value
from tilewright.pto.text.form import Form
from tilewright.pto.text.kinds import KINDS, signature
from tilewright.pto.types import ALIGN, I64, INDEX, SCALARS, Mask, Ptr, Scalar, TileBuf, Type, VReg

_I16, _I32 = SCALARS["i16"], SCALARS["i32"]
_BYTES = ("pto.mte_", "pto.copy_", "pto.set_loop", "pto.set_ffts")
"""How the ops begin that count bytes."""
_WIDTHS: dict[str, Callable[[int], int]] = {
    "pto.vpack": lambda bits: bits // 2,
    "pto.vsunpack": lambda bits: bits * 2,
    "pto.vzunpack": lambda bits: bits * 2,
}
"""The ops whose results have elements of another width."""
_RETYPED = ("pto.vcvt", "pto.vbitcast", "pto.pbitcast", "pto.declare_local_array", "pto.declare_eventid_array")
"""The ops whose results have to be told."""


def letters_of(text: str, values: Sequence[object]) -> str:
    """Return the kind of each of some operands: the row of a signature that they follow, or its first."""
    rows = [row + row[-1:] * (len(values) - len(row)) for row in signature(text).rows]
    fitting = (row for row in rows if len(row) >= len(values) and all(map(_could_be, row, values)))
    return next(fitting, rows[0])[: len(values)]


def _could_be(letter: str, value: object) -> bool:
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
    def element(self) -> Scalar | None:
        """The element type that the op computes in: of what it writes, unless that is another by nature."""
        tiles = [type.element for type in self.types if isinstance(type, TileBuf)]
        if tiles:
            return tiles[0] if self.name.startswith(("pto.tcmp", "pto.taxpy", "pto.tgetval")) else tiles[-1]
        of = (type.element for type in self.types if isinstance(type, (TileBuf, VReg, Ptr)))
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
        if letter == "i" or (letter == "x" and self.name.startswith(_BYTES)):
            return self._count()
        return (
            self.dtype if self.dtype is not None and self.name in ("pto.vdup", "pto.vbr", "pto.vci") else self.element
        )

    def _count(self) -> Scalar:
        """Return the type that an op counts in."""
        if self.name.startswith(_BYTES):
            return I64
        if self.name.startswith("pto.plt_"):
            return _I32
        return _I16 if self.name.startswith(("pto.vsh", "pto.vsldb", "pto.vsstb")) else INDEX

    def results(self, form: Form) -> tuple[Type, ...] | None:
        """Return the types of the op's results, or None where they do not follow."""
        if form.implied is not None:
            return (form.implied,)
        row = signature(form.results).rows[0][: signature(form.results).count[0]]
        if self.name in _RETYPED and self.dtype is None:
            return None
        found = [self._result(letter) for letter in row]
        return tuple(each for each in found if each is not None) if None not in found else None

    def _result(self, letter: str) -> Type | None:
        match letter:
            case "v" | "u":
                return self._register()
            case "m" | "n":
                return self._mask(letter)
            case "s" | "i":
                return _I32 if letter == "i" else self.element
            case "a":
                return ALIGN
            case "p":
                return self._address()
            case _:
                return None

    def _mask(self, letter: str) -> Mask | None:
        """Return a mask as wide as what is computed with, or as `dtype=`, the name or another mask says."""
        element = self.dtype or (self.element if letter == "m" or self.width is None else None)
        bits = self.width if element is None else element.bits
        return Mask(bits) if bits in (8, 16, 32) else None

    def _register(self) -> VReg | None:
        made = next((type for type in self.types if isinstance(type, VReg)), None)
        element = self.dtype
        if element is None and made is not None and self.name in _WIDTHS:
            element = _resized(made.element, _WIDTHS[self.name](made.element.bits))
            return None if element is None else register(element)
        if element is None and not self.name.startswith("pto.vgather") and made is not None:
            return made
        spread = (type for type in self.types if isinstance(type, Scalar))
        pointed = (type.element for type in self.types if isinstance(type, Ptr))
        element = element or next(pointed, None) or next(spread, None)
        return None if element is None else register(element)

    def _address(self) -> Type | None:
        """Return the type of a pointer: the same as another, or to the elements of a tile."""
        first = self.types[0] if self.types else None
        return Ptr(first.element, first.space) if isinstance(first, TileBuf) else first


def _resized(element: Scalar, bits: int) -> Scalar | None:
    sign = element.name.rstrip("0123456789") if element.is_integer else "i"
    return SCALARS.get(f"{sign}{bits}")


def register(element: Scalar) -> VReg:
    """Return the register of an element type: always 256 bytes."""
    return VReg(2048 // element.bits, element)
