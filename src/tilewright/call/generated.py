"""Generated functions: Python made from text where a loop over arguments would cost more than the call."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

MISSED = NotImplemented
"""What a generated function gives that does not take a call: `missed` in its text."""


def made(text: str, name: str, **held: Any) -> Callable[..., Any]:
    """Return a function from the text that defines it, and what that text names."""
    names = {**held, "missed": MISSED}
    exec(text, names)  # noqa: S102 - only this package's own texts: nothing in them is anybody else's
    return names[name]


def arguments(count: int, default: str = "") -> str:
    """Return the names that arguments go by in generated code."""
    return ", ".join(f"a{number}{default}" for number in range(count))


def result(names: Iterable[str]) -> str:
    """Return what a call gives back, as it is written: None, one thing, or several."""
    several = list(names)
    return several[0] if len(several) == 1 else f"({', '.join(several)})" if several else "None"
