"""Constants: the numbers that `arith.constant` writes, as their type holds them."""

from __future__ import annotations

import struct

from tilewright.pto.errors import PtoSyntaxError
from tilewright.pto.types import Scalar, Type


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
    is_signed = not type.name.startswith("ui")
    return (
        value - (1 << bits) if is_signed and value >= 1 << bits - 1 else value % (1 << bits) if not is_signed else value
    )


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
    raise PtoSyntaxError(f"a constant of {type} cannot be given by its bits")
