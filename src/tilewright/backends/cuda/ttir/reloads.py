"""Reloads: long rows that are loaded once to be folded, and again for what is made of them.

The first load asks the cache to keep a row, the second to forget it, which leaves the cache to what is being written:
memory is busier so than where the row waits in registers. What else is loaded behind the fold, and has not to wait for
it, comes with the first load: such rows are the same for many blocks, and near. Nothing that a kernel loads may be what
it writes.
"""

from __future__ import annotations

import re

LEAST, WAITING = 1 << 13, 2
"""Bytes of a row that is loaded twice, at least, and rows that wait in registers beside it, at most."""

_LOAD = re.compile(r"^    (%\d+) = (tt\.load %\d+[^:\n]*) (: tensor<1x\d+x!tt\.ptr<f32>>[^\n]*)$", re.MULTILINE)
_FOLD = re.compile(r'    %\d+ = "tt\.reduce"')
_NAME = re.compile(r"%\w+")
_PLAIN = re.compile(r"    %\w+ = (?:tt\.(?:load|make_range|splat|expand_dims|addptr|broadcast)|arith\.) ?")
_SHARED = re.compile(r"    %\d+ = tt\.load %\d+ : tensor<")


def reloaded(text: str) -> str:
    """Return the text of a kernel whose loads of floats are made again for what uses them behind the first fold."""
    for name, load, types in _LOAD.findall(text):
        use = re.compile(rf"^    %\d+ = (?!\"tt)[^\n]*{name}\b", re.MULTILINE)
        fold = re.search(r'^    %\d+ = "tt\.reduce"', text, re.MULTILINE)
        if fold is None or (later := use.search(text, fold.start())) is None or text.find(f"{name} = ") > fold.start():
            continue
        again = f"%again{name[1:]}"
        before, after = text[: later.start()], text[later.start() :]
        first = f"{load} evictionPolicy = evict_last {types}"
        second = f"    {again} = {load} evictionPolicy = evict_first {types}\n"
        text = before.replace(f"{load} {types}", first, 1) + second + re.sub(rf"{name}\b", again, after)
    return _loaded_before(text) if "%again" in text else text


def _loaded_before(text: str) -> str:
    """Return a text whose first loads behind a fold are before it, where neither they nor their places need it."""
    lines = text.splitlines(keepends=True)
    fold = next(number for number, line in enumerate(lines) if _FOLD.match(line))
    behind: dict[str, tuple[int, list[str]]] = {}
    """The values that are made behind the fold without what it folds to: their lines, and of what they are made."""
    late = {lines[fold].split()[0]}
    for number in range(fold + 1, len(lines)):
        name, *used = _NAME.findall(lines[number]) or [""]
        if late & {*used} or not _PLAIN.match(lines[number]):
            late.add(name)
        else:
            behind[name] = number, used
    wanted = [name for name, (number, _) in behind.items() if _SHARED.match(lines[number])][:WAITING]
    moved: set[int] = set()
    while wanted:
        number, used = behind[wanted.pop()]
        moved.add(number)
        wanted += [name for name in used if name in behind]
    early = [lines[number] for number in sorted(moved)]
    return "".join([*lines[:fold], *early, *(lines[n] for n in range(fold, len(lines)) if n not in moved)])
