"""Readers: what PTO text is held to before anybody gets it."""

from __future__ import annotations

from collections.abc import Callable

READERS: list[Callable[[str], object]] = []
"""What reads text and raises for what is wrong with it, each asked in turn; one that is asked may sign in others.

`tilewright.pto` signs in what verifies text, and the language what loads that.
"""
TAKERS: list[Callable[[str, str, str], bool]] = []
"""What knows whether an op on tiles takes some elements, signed in and asked likewise."""


def takes(op: str, read: str, written: str) -> bool:
    """Return whether an op on tiles reads such elements and writes such others, as far as anybody here knows."""
    return all(knows(op, read, written) for knows in TAKERS)
