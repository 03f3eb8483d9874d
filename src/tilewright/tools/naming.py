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


def check_known(
    name: str, names: Iterable[str], noun: str, otherwise: str, is_better: bool = False, prefix: str = ""
) -> None:
    """Raise CommandError unless `name` is one of `names`, with the nearest of them or else another help.

    A prefix that most names have makes none of them nearer.
    """
    found = list(names)
    if name not in found:
        short = {each.removeprefix(prefix): each for each in found}
        near = [] if is_better else [short[each] for each in _near(name.removeprefix(prefix), list(short))]
        help = f"did you mean {' or '.join(near)}?" if near else otherwise
        raise CommandError(f"no {noun} is called {name}\n    help: {help}")


def _near(name: str, names: Sequence[str]) -> list[str]:
    """Return names that one lacks a letter of, or one it is nearly, or some that begin so, or one a little like it."""
    begin = sorted((each for each in names if name and each.startswith(name)), key=len)[:3]
    lacks = [each for each in begin if len(each) == len(name) + 1]
    return lacks or get_close_matches(name, names, 1, cutoff=0.85) or begin or get_close_matches(name, names, 1)


def check_least(option: str, number: int, least: int) -> None:
    """Raise CommandError for an option that is less than it may be."""
    if number < least:
        raise CommandError(f"{option} must be {least} or more, got {number}")


def checked_output(path: str, source: str) -> str:
    """Return where to write something; CommandError where that is the file it was made from."""
    if os.path.exists(path) and os.path.samefile(path, source):
        raise CommandError(f"{path} is what is read: it would be written over\n    help: name another file behind -o")
    return path
