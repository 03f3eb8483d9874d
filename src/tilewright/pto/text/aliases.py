"""Aliases and locations, which MLIR's tools print around a text: `!T = ...`, `#a = ...` and `... loc("x":1:1)`.

Aliases stand outside of modules and hold from there on. Locations are dropped, with the aliases of locations, which
may also stand behind what uses them: errors show the text that is read, not the one it was made from.
"""

from __future__ import annotations

from tilewright.pto.errors import PtoRedefinitionError
from tilewright.pto.text.attributes import attribute
from tilewright.pto.text.cursor import Cursor
from tilewright.pto.text.lexer import Tokens


def drop_locations(tokens: Tokens) -> None:
    """Remove every `loc(...)` and `#name = loc(...)`; one that is not closed stays, for the parser to name."""
    texts = tokens.texts
    if "loc" not in texts:
        return
    kept: list[int] = []
    at = 0
    while at < len(texts):
        end = _after_location(texts, at)
        if end == at:
            kept.append(at)
            at += 1
            continue
        if len(kept) > 1 and texts[kept[-1]] == "=" and texts[kept[-2]].startswith("#"):
            del kept[-2:]
        at = end
    tokens.starts[:] = [tokens.starts[each] for each in kept]
    texts[:] = [texts[each] for each in kept]


def _after_location(texts: list[str], at: int) -> int:
    """Return the token behind the location at `at`, which is `at` where none stands there."""
    if texts[at] != "loc" or texts[at + 1] != "(":
        return at
    depth, end = 0, at + 1
    while texts[end]:
        depth += {"(": 1, ")": -1}.get(texts[end], 0)
        end += 1
        if not depth:
            return end
    return at


def read_aliases(cursor: Cursor) -> None:
    """Read the aliases that stand here: what they are called and what for."""
    while cursor.token[:1] in ("!", "#") and cursor.following == "=":
        at, name = cursor.at, cursor.take()
        if name in cursor.aliases or name in cursor.spelled:
            raise PtoRedefinitionError(f"`{name}` is already defined", spans=(cursor.span(at, at),))
        cursor.expect("=")
        if name.startswith("!"):
            cursor.spelled[name] = cursor.type()
        else:
            cursor.aliases[name] = attribute(cursor)
