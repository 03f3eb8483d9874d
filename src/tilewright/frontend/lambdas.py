"""Lambdas: functions that Python itself runs while a kernel is compiled, and what they read."""

from __future__ import annotations

import dis
from collections.abc import Callable
from types import FunctionType

from tilewright.frontend.capture import codes
from tilewright.frontend.names import Resolver
from tilewright.frontend.value_keys import is_known_by_identity, is_plain

_NAMES = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF")
_ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD")


def is_lambda(function: object) -> bool:
    """Return whether a value is a lambda."""
    return isinstance(function, FunctionType) and function.__name__ == "<lambda>"


def unfollowed(resolver: Resolver, may_call: Callable[[object], bool]) -> str:
    """Note what a lambda reads from outside; return what of it nobody could look at again, or nothing.

    That is whatever is neither a value, nor something it `may_call`.
    """
    for code in codes(resolver.function.__code__):
        instructions = list(dis.get_instructions(code))
        for place, instruction in enumerate(instructions):
            if instruction.opname in _NAMES and _is_outside(resolver, instruction):
                name = _read(resolver, instructions[place:], may_call)
                if name:
                    return name
    return ""


def _is_outside(resolver: Resolver, instruction: dis.Instruction) -> bool:
    return instruction.opname != "LOAD_DEREF" or instruction.argval in resolver.cells


def _read(resolver: Resolver, instructions: list[dis.Instruction], may_call: Callable[[object], bool]) -> str:
    """Read a name and the attributes that follow it; return them where that leads to what cannot be followed."""
    first, *rest = instructions
    name = str(first.argval)
    try:
        value = resolver.lookup(name)
        for instruction in rest:
            if instruction.opname not in _ATTRIBUTES:
                break
            name += f".{instruction.argval}"
            value = resolver.attribute(value, str(instruction.argval))
    except (KeyError, AttributeError):
        return ""  # Python will say so when it runs
    return "" if may_call(value) or (is_plain(value) and not is_known_by_identity(value)) else name
