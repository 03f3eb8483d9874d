"""Bindings: what the names of a function stand for."""

from __future__ import annotations

from typing import Any

from tilewright.records import mutable
from tilewright.source import Span


@mutable
class Binding:
    """What a name stands for: a run-time value, a Python value that is known, or a tuple of such."""

    value: Any
    span: Span
    problem: str = ""
    """Why it stands for nothing here, where that is so."""
    help: str = ""


def ended(name: str) -> tuple[str, str]:
    """Return what is wrong with a loop variable that is read after its loop, and what to do."""
    return f"'{name}' is a loop variable and ends with its loop", "keep its last value under another name"


def one_sided(name: str, line: int) -> tuple[str, str]:
    """Return what is wrong with a name that only one branch binds, at a line, and what to do."""
    help = f"line {line} binds it on one path only: bind it before the branch, or in every branch"
    return f"'{name}' is not bound on every path that leads here", help
