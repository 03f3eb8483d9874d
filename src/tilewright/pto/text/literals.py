"""Literals: attributes and constants as text, and the numbers that constants write as their type holds them."""

from __future__ import annotations

import math
import re
import struct

from tilewright.dtypes import round_scalar
from tilewright.pto.errors import PtoSyntaxError
from tilewright.pto.module import Attribute, Attributes, Enumerated, Number, SymbolRef
from tilewright.pto.text.attributes import quoted
from tilewright.pto.types import I1, SCALARS, Scalar, Type

_BARE = re.compile(r"[A-Za-z_][\w$.]*\Z", re.ASCII)
_SYMBOL = re.compile(r"[\w$.]+\Z", re.ASCII)
_BITS = {"f32": ("7F800000", "FF800000", "7FC00000"), "f16": ("7C00", "FC00", "7E00"), "bf16": ("7F80", "FF80", "7FC0")}


def symbol(name: str) -> str:
    """Return a name of a function or module after its `@`, in quotes where it needs them."""
    return f"@{name}" if _SYMBOL.match(name) else f'@"{name}"'


def dictionary(attributes: Attributes) -> str:
    """Return attributes in braces."""
    return f"{{{', '.join(_entry(name, value) for name, value in attributes.items())}}}"


def _entry(name: str, value: Attribute) -> str:
    key = name if _BARE.match(name) else quoted(name)
    return key if value is None else f"{key} = {attribute(value)}"


def items(value: Attribute) -> str:
    """Return the items of a list without its brackets."""
    return ", ".join(map(attribute, value)) if isinstance(value, tuple) else attribute(value)


def attribute(value: Attribute) -> str:
    """Return a static value as text."""
    if value is None:
        return "unit"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return _float(value)
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, tuple):
        return f"[{items(value)}]"
    if isinstance(value, Enumerated):
        return f"#pto.{value.family}<{value.word}>" if value.family else f"<{value.word}>"
    if isinstance(value, Number):
        return f"{attribute(value.value)} : {value.type}"
    return symbol(value.name) if isinstance(value, SymbolRef) else str(value)


def _float(value: float) -> str:
    """Return a float with a point in it, as the grammar wants; infinity is a number nothing holds."""
    if math.isinf(value) or math.isnan(value):
        return "-1.0e999" if value < 0 else "1.0e999"
    mantissa, e, exponent = repr(value).partition("e")
    return f"{mantissa if '.' in mantissa else f'{mantissa}.0'}{e}{exponent}"


def constant_text(value: Attribute, type: Type) -> str:
    """Return what `arith.constant` writes: floats that are no numbers by their bits."""
    if type == I1:
        return "true" if value else "false"
    if isinstance(value, str):  # of several numbers
        return f"{value} : {type}"
    if isinstance(value, float) and isinstance(type, Scalar) and not math.isfinite(value) and type.name in _BITS:
        above, below, nan = _BITS[type.name]
        return f"0x{nan if math.isnan(value) else above if value > 0 else below} : {type}"
    return f"{attribute(value)} : {type}"


# constants


def constant(value: bool | int | float, type: Type, is_hexadecimal: bool = False) -> bool | int | float:
    """Return `value` as a constant of `type` holds it: wrapped for integers, a float for floats."""
    if not isinstance(type, Scalar) or not (type.is_float or type.is_integer):
        raise PtoSyntaxError(f"a constant cannot be {type}")
    if type.name == "i1":
        return _boolean(value)
    if isinstance(value, bool) or (isinstance(value, float) and not type.is_float):
        raise PtoSyntaxError(f"`{str(value).lower()}` is no {type}")
    bits = type.bits
    if type.is_float:
        if isinstance(value, float):
            return value
        if not is_hexadecimal:
            raise PtoSyntaxError(f"`{value}` is no {type}", help=f"write `{value}.0`")
        return _from_bits(value, type)
    assert isinstance(value, int)
    if not -(1 << bits - 1) <= value < 1 << bits:
        raise PtoSyntaxError(f"{value} does not fit in {type}")
    return round_scalar(value, type.dtype)


def _boolean(value: bool | int | float) -> bool:
    if value not in (0, 1, -1) or isinstance(value, float):
        raise PtoSyntaxError(f"`{value}` is no i1", help="write `true` or `false`")
    return bool(value)


def _from_bits(value: int, type: Scalar) -> float:
    if not 0 <= value < 1 << type.bits:
        raise PtoSyntaxError(f"{value:#x} has more bits than {type}")
    if type.name == "f16":
        return struct.unpack("<e", value.to_bytes(2, "little"))[0]
    if type.name in ("f32", "bf16"):
        wide = value << 16 if type.name == "bf16" else value
        return struct.unpack("<f", wide.to_bytes(4, "little"))[0]
    if type.name == "f64":
        return struct.unpack("<d", value.to_bytes(8, "little"))[0]
    raise PtoSyntaxError(f"a constant of {type} cannot be given by its bits")


_DENSE = re.compile(r"dense<\s*(\[)?([^\[\]]*)\]?\s*>", re.ASCII)
_VECTOR = re.compile(r"vector<(\d{1,6})x(\w+)>", re.ASCII)
_PLAIN_NUMBER = re.compile(r"-?(0x[0-9A-Fa-f]{1,16}|\d{1,40}(\.\d{0,40}([eE][+-]?\d{1,6})?)?)", re.ASCII)


def dense(text: str, type: Type) -> tuple[bool | int | float, ...]:
    """Return the numbers of `dense<[1, 2]>`, or of `dense<1>` for all, as a vector of `type` holds them."""
    vector, listed = _VECTOR.fullmatch(str(type)), _DENSE.fullmatch(text)
    element = SCALARS.get(vector[2]) if vector else None
    if vector is None or element is None or listed is None:
        help = "as in `dense<[1, 2]> : vector<2xi16>`, or `dense<1>` for all"
        raise PtoSyntaxError(f"`{text}` is no {type}", help=help)
    count, words = int(vector[1]), [word.strip() for word in listed[2].split(",")]
    if len(words) != (count if listed[1] else 1):
        raise PtoSyntaxError(f"{type} has {count} numbers, `{text}` {len(words)}", help="write each, or one for all")
    numbers = tuple(_plain_number(word, element) for word in words)
    return numbers if listed[1] else numbers * count


def _plain_number(word: str, element: Scalar) -> bool | int | float:
    if not _PLAIN_NUMBER.fullmatch(word):
        raise PtoSyntaxError(f"`{word}` is no number")
    is_hexadecimal = "0x" in word
    value = int(word, 16) if is_hexadecimal else float(word) if "." in word else int(word)
    return constant(value, element, is_hexadecimal)
