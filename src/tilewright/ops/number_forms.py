"""Number forms: numbers as text the way that a conversion of C's printf says, such as `%+08.3f` or `%x`."""

from __future__ import annotations

import math
import re

from tilewright.dtypes import FP64, INT64, UINT64, DataType
from tilewright.records import record

SIGNED, UNSIGNED, FLOAT = "di", "uoxX", "eEfFgG"
"""The letters of conversions, by the numbers that they are of."""
_FORM = re.compile(rf"%([-+ #0]*)(\d{{0,3}})(\.\d{{0,3}})?([{SIGNED}{UNSIGNED}{FLOAT}])")
_DOUBLE = 310
"""Digits that a double has before its point at most, with its sign."""


@record
class NumberForm:
    """A conversion: its flags, how wide it is at least, its digits with their point, and its letter."""

    flags: str
    width: str
    digits: str
    letter: str

    @property
    def is_of_float(self) -> bool:
        """Whether it shows a float."""
        return self.letter in FLOAT

    @property
    def room(self) -> int:
        """How many bytes a text of it has at most."""
        return _DOUBLE + int(self.width or 0) + int(self.digits[1:] or 0)

    def in_c(self) -> str:
        """Return how C has it for doubles and integers of 64 bits."""
        return f"%{self.flags}{self.width}{self.digits}{'' if self.is_of_float else 'll'}{self.letter}"

    def said(self, number: float) -> str:
        """Return the text of a number."""
        if not self.is_of_float:
            return self._integer(int(number))
        flags = self.flags if math.isfinite(number) else self.flags.replace("0", "")
        return f"%{flags}{self.width}{self.digits}{self.letter}" % number

    def _integer(self, number: int) -> str:
        """Return the text of an integer: of as many digits as are said at least, zero in none where none are."""
        sign = "-" if number < 0 else next((each for each in "+ " if each in self.flags and self.letter in SIGNED), "")
        digits = format(abs(number), self.letter if self.letter in "oxX" else "d")
        text = "" if self.digits and not number else digits
        text = text.rjust(int(self.digits[1:] or 0) if self.digits else 1, "0")
        if "#" in self.flags and self.letter == "o" and not text.startswith("0"):
            text = f"0{text}"
        if "#" in self.flags and self.letter in "xX" and number:
            sign = f"0{self.letter}"
        width = int(self.width or 0)
        if "-" in self.flags:
            return f"{sign}{text}".ljust(width)
        filled = text.rjust(width - len(sign), "0") if "0" in self.flags and not self.digits else text
        return f"{sign}{filled}".rjust(width)


def number_form(text: str, dtype: DataType) -> NumberForm | None:
    """Return the conversion that a text is, None where it is none of numbers of a type."""
    found = _FORM.fullmatch(text)
    letters = FLOAT if dtype.is_float() else UNSIGNED if dtype.is_unsigned_int() else SIGNED
    made = None if found is None else NumberForm(*(each or "" for each in found.groups()))
    return made if made is not None and made.letter in letters else None


def said(text: str, number: float) -> str:
    """Return the text of a number in a form that is one of its type."""
    dtype = FP64 if isinstance(number, float) else UINT64 if text[-1] in UNSIGNED else INT64
    made = number_form(text, dtype)
    assert made is not None
    return made.said(number)
