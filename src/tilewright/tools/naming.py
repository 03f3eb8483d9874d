"""Names on a command line: those there are, the nearest to one there is not, and files not to write over."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from tilewright.errors import TilewrightError


class CommandError(TilewrightError):
    """A command that names something there is not, or cannot do what it says."""

    status = 1
    """What the command ends with."""


def check_known(name: str, names: Iterable[str], noun: str, otherwise: str, is_better: bool = False) -> None:
    """Raise CommandError unless `name` is one of `names`, with the nearest of them or else another help."""
    found = list(names)
    if name not in found:
        near = [] if is_better else _near(name, found)
        help = f"did you mean {' or '.join(near)}?" if near else otherwise
        raise CommandError(f"no {noun} is called {name}\n    help: {help}")


def _near(name: str, names: Sequence[str]) -> list[str]:
    """Return the name that one is nearly, or else some that begin so, or else one that is a little like it."""
    begin = [each for each in names if name and each.startswith(name)][:3]
    return get_close_matches(name, names, 1, cutoff=0.85) or begin or get_close_matches(name, names, 1)


def check_least(option: str, number: int, least: int) -> None:
    """Raise CommandError for an option that is less than it may be."""
    if number < least:
        raise CommandError(f"{option} must be {least} or more, got {number}")


def checked_output(path: str, source: str) -> str:
    """Return where to write something; CommandError where that is the file it was made from."""
    if os.path.exists(path) and os.path.samefile(path, source):
        raise CommandError(f"{path} is what is read: it would be written over\n    help: name another file behind -o")
    return path
