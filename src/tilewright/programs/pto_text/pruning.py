"""Pruning: which lines of a function of PTO text something uses."""

from __future__ import annotations

import re
from collections.abc import Sequence

_NAME = re.compile(r"%[\w.]+")
_MADE = re.compile(r"\s*(%[\w.]+) = (?:arith|builtin|pto)\.(?!atomic)")
"""A line that does nothing beside what it gives."""
_VIEWED = re.compile(r"\s*(%[\w.]+) = pto\.(alloc_tile|treshape|subview|bitcast)(?: (%[\w.]+))?")
"""A line that makes a tile, or another view of one."""
_WRITTEN = re.compile(r"\s*pto\.(?:\w.* outs\(|set_validshape )(%[\w.]+(?:, %[\w.]+)?)(?! : !pto\.partition)")
"""A line that writes a tile or two, and nothing else."""


def names_in(line: str) -> list[str]:
    """Return the values that a line names, in order."""
    return _NAME.findall(line)


def wanted(lines: Sequence[str], kept: list[int]) -> tuple[list[int], set[str]]:
    """Return those of some lines whose effect something uses, and the names that are used."""
    before, used = len(kept) + 1, set[str]()
    while len(kept) < before:  # what nothing uses may be all that reads a tile
        before = len(kept)
        kept = _read(lines, kept)
        kept, used = _used(lines, kept)
    return kept, used


def _used(lines: Sequence[str], kept: list[int]) -> tuple[list[int], set[str]]:
    """Drop what only makes values that nothing uses; return the names that something uses, too."""
    used, found = set[str](), list[int]()
    for number in reversed(kept):
        made = _MADE.match(lines[number])
        if made is None or made[1] in used:
            used.update(name for name in names_in(lines[number]) if made is None or name != made[1])
            found.append(number)
    return found[::-1], used


def _read(lines: Sequence[str], kept: list[int]) -> list[int]:
    """Drop what only writes tiles that nothing reads but what writes them."""
    roots = _roots([lines[number] for number in kept])
    own, read, written = {name for name, root in roots.items() if name == root}, set[str](), dict[int, set[str]]()
    for number in kept:
        found = _WRITTEN.match(lines[number])
        written[number] = {roots.get(name, name) for name in names_in(found[1])} if found is not None else set[str]()
        if _VIEWED.match(lines[number]) is None:
            read |= {roots.get(name, name) for name in names_in(lines[number])} - written[number]
    unread = own - read
    return [number for number in kept if not written[number] & unread or written[number] & own - unread]


def _roots(lines: Sequence[str]) -> dict[str, str]:
    """Return the buffer of each tile that is one, or that is a view of one."""
    roots: dict[str, str] = {}
    for line in lines:
        found = _VIEWED.match(line)
        if found is not None and found[2] == "alloc_tile":
            roots[found[1]] = found[1]
        elif found is not None and found[3] in roots:
            roots[found[1]] = roots[found[3]]
    return roots
