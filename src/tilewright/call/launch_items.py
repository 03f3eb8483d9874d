"""Launch items: what `thing[number, None]` gives, found by machine code where it is asked for again and again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.call.rerouting import reroute

MOST = 64
"""How many items an object remembers, and machine code looks through."""


class NumberedItems:
    """The items of an object that it gives for `[number, None]`, the same ones each time.

    Once calls of one go to machine code, so does looking for it; `fallback` is the object's own `__getitem__`.
    """

    def __init__(self, thing: object, fallback: Callable[[Any], Any]) -> None:
        self._thing = thing
        self._fallback = fallback
        self._known: dict[int, Callable[..., Any]] = {}
        self._hastened: set[int] = set()

    def find(self, spec: Any) -> Callable[..., Any] | None:
        """Return the item that goes by a number, None where there is none yet."""
        if spec.__class__ is not tuple or len(spec) != 2 or spec[1] is not None or spec[0].__class__ is not int:
            return None
        found = self._known.get(spec[0])
        if found is not None and getattr(found, "is_warm", False) and spec[0] not in self._hastened:
            self._hasten(spec[0])
        return found

    def put(self, number: int, item: Callable[..., Any]) -> None:
        """Remember an item."""
        if len(self._known) >= MOST:
            self._known.clear()
            self._hastened.clear()
        self._known[number] = item

    def _hasten(self, number: int) -> None:
        """Let machine code find one more item, and the fallback all that it does not know."""
        from tilewright.call.builtin import item_builtin
        from tilewright.call.tables import item_words

        self._hastened.add(number)
        state = item_words({each: self._known[each] for each in self._hastened}, self._fallback)
        reroute(self._thing, item_builtin(state), "__getitem__")
