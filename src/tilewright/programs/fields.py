"""Fields: what the values of a configuration may be, each brought to one spelling or refused by name."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable
from enum import Enum
from typing import Any, TypeAlias

Rule: TypeAlias = Callable[[str, Any], Any]
"""Takes a field's name and what was given, returns what is kept; ValueError otherwise."""

RINGS = 4
"""How many rings the PTO family's runtime has, one for each depth of scopes."""


def flag(name: str, value: Any) -> bool:
    """Return a switch."""
    if isinstance(value, int) and value in (0, 1):
        return bool(value)
    raise ValueError(f"{name} must be True or False, got {value!r}")


def level(high: int | None = None, whole: int = 1) -> Rule:
    """Return a rule for how much of something there is to be, up to `high`; True stands for `whole`."""

    def rule(name: str, value: Any) -> int:
        if isinstance(value, bool):
            return whole if value else 0
        if high is not None and natural(name, value) > high:
            raise ValueError(f"{name} must be an integer in [0, {high}], got {value!r}")
        return natural(name, value)

    return rule


def natural(name: str, value: Any) -> int:
    """Return an integer that is not negative."""
    if _is_int(value) and value >= 0:
        return value
    raise ValueError(f"{name} must be an integer, 0 or more, got {value!r}")


def positive(name: str, value: Any) -> int:
    """Return an integer above zero."""
    if _is_int(value) and value > 0:
        return value
    raise ValueError(f"{name} must be an integer above 0, got {value!r}")


def tolerance(name: str, value: Any) -> float:
    """Return how far two numbers may be apart."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value) and value >= 0:
        return float(value)
    raise ValueError(f"{name} must be a finite number, 0 or more, got {value!r}")


def path(name: str, value: Any) -> str:
    """Return a path as text."""
    try:
        return os.fsdecode(value)
    except TypeError:
        raise ValueError(f"{name} must be a path, got {value!r}") from None


def place(name: str, value: Any) -> str:
    """Return a path as text that means the same wherever Python goes, and is one object wherever it is written."""
    found = path(name, value)
    if not found:
        raise ValueError(f"{name} must be a path, got {value!r}")
    return sys.intern(os.path.abspath(os.path.expanduser(found)))


def one_of(choices: type[Enum]) -> Rule:
    """Return a rule for a member of an enum, given as such or by its name."""

    def rule(name: str, value: Any) -> Enum:
        by_name = {member.name.lower(): member for member in choices}
        known = value if isinstance(value, choices) else by_name.get(str(getattr(value, "name", value)).lower())
        if known is None:
            raise ValueError(f"{name} must be one of {', '.join(m.name for m in choices)}, got {value!r}")
        return known

    return rule


def either(first: type[Enum]) -> Rule:
    """Return a rule for a switch, or for a member of an enum that says more than a switch does."""
    return lambda name, value: flag(name, value) if isinstance(value, int) else one_of(first)(name, value)


def optional(rule: Rule) -> Rule:
    """Return a rule that also lets None be."""
    return lambda name, value: None if value is None else rule(name, value)


def ring(low: int, high: int | None = None) -> Rule:
    """Return a rule for the size of a ring: a power of two from `low` on, or anything up to `high` where there is one.

    One number is for every ring; a list has one for each of them, 0 where that one is to stay as it is.
    """
    wanted = f"a power of 2 >= {low}" if high is None else f"in [{low}, {high}]"

    def fits(value: Any) -> bool:
        if not _is_int(value) or value < low:
            return False
        return value & (value - 1) == 0 if high is None else value <= high

    def rule(name: str, value: Any) -> int | tuple[int, ...]:
        if not isinstance(value, (list, tuple)):
            return _checked(name, value, fits, wanted)
        entries: tuple[Any, ...] = tuple(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        if len(entries) != RINGS:
            raise ValueError(f"{name} must have exactly {RINGS} entries, one for each depth, got {len(entries)}")
        return tuple(_checked(f"each of {name}", e, lambda v: v == 0 or fits(v), wanted) for e in entries)

    return rule


def _checked(name: str, value: Any, fits: Callable[[Any], bool], wanted: str) -> int:
    if isinstance(value, bool) or not fits(value):
        raise ValueError(f"{name} must be {wanted}, got {value!r}")
    return value


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
