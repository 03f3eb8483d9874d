"""Suggestions: the name somebody probably meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

_MOST = 2000
"""How many names are looked at: comparing takes time."""


def nearest(word: str, known: Iterable[str], sigil: str = "") -> str:
    """Return help that names the closest of `known`, or some of them, or nothing where there are none."""
    words = list(dict.fromkeys(known))[-_MOST:]
    close = get_close_matches(word[:80], words, n=1)
    if close:
        return f"did you mean `{sigil}{close[0]}`?"
    listed = ", ".join(f"`{sigil}{name}`" for name in sorted(words)[:8])
    return f"there are {listed}{', ...' if len(words) > 8 else ''}" if words else ""
