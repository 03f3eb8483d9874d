"""Reloads: long rows that are loaded once to be folded, and again for what is made of them.

The first load asks the cache to keep a row, the second to forget it, which leaves the cache to what is being written:
memory is busier so than where the row waits in registers. Nothing that a kernel loads may be what it writes.
"""

from __future__ import annotations

import re

LEAST = 1 << 13
"""Bytes of a row that is loaded twice, at least."""

_LOAD = re.compile(r"^    (%\d+) = (tt\.load %\d+[^:\n]*) (: tensor<1x\d+x!tt\.ptr<f32>>[^\n]*)$", re.MULTILINE)


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
    return text
