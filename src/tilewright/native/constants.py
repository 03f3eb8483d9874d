"""Constants: what instructions over 64-bit numbers and conditions give that are known while code is written.

LLVM would fold them, too, after it has read them; and a loop that is known to have one turn, or none, only where it
looks for that, which takes longer than all else that is done to most programs.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping

WORD = 1 << 64
_COMPUTED: Mapping[str, Callable[[int, int], int]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "and": lambda x, y: x & y,
    "or": lambda x, y: x | y,
    "xor": lambda x, y: x ^ y,
    "llvm.smin": lambda x, y: min(x, y),
    "llvm.smax": lambda x, y: max(x, y),
}
_NEUTRAL = {"add": "0", "sub": "0", "mul": "1", "or": "0", "xor": "0", "shl": "0", "ashr": "0", "lshr": "0"}
"""What leaves a number as it is that is to the left of it; and that is to the right, but for differences and shifts."""
_ONE_SIDED = ("sub", "shl", "ashr", "lshr")
_HELD: Mapping[str, Callable[[int, int], bool]] = {
    "icmp eq": operator.eq,
    "icmp ne": operator.ne,
    "icmp slt": operator.lt,
    "icmp sle": operator.le,
    "icmp sgt": operator.gt,
    "icmp sge": operator.ge,
    "icmp ult": lambda x, y: x % WORD < y % WORD,
    "icmp ule": lambda x, y: x % WORD <= y % WORD,
}
_CONDITIONS = {"and": ("true", "false"), "or": ("false", "true")}
"""Of what joins conditions, the one that leaves the other as it is, and the one that decides."""


def is_number(ref: str) -> bool:
    """Tell whether an operand is a number."""
    return ref[0] in "-0123456789"


def computed(name: str, x: str, y: str) -> str | None:
    """Return what an instruction over two 64-bit numbers gives, a number or one of the two; None for what runs."""
    if is_number(y):
        if y == _NEUTRAL.get(name):
            return x
        if is_number(x) and name in _COMPUTED:
            return str((_COMPUTED[name](int(x), int(y)) + WORD // 2) % WORD - WORD // 2)
    elif is_number(x) and x == _NEUTRAL.get(name) and name not in _ONE_SIDED:
        return y
    return None


def joined(name: str, x: str, y: str) -> str | None:
    """Return what an instruction over two conditions gives, a constant or one of the two; None for what runs."""
    if name == "xor" and y == "true":
        return {"true": "false", "false": "true"}.get(x)
    leaves, decides = _CONDITIONS.get(name, ("", ""))
    if decides in (x, y):
        return decides
    return x if y == leaves else y if x == leaves else None


def held(predicate: str, x: str, y: str) -> str | None:
    """Return whether a comparison of two 64-bit numbers holds; None for what only the running program knows."""
    if not (is_number(x) and is_number(y)) or predicate not in _HELD:
        return None
    return "true" if _HELD[predicate](int(x), int(y)) else "false"
