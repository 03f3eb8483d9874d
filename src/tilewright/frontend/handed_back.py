"""What a helper hands back: the end of reading it, at a `return` that is surely reached."""

from __future__ import annotations

from typing import Any


class HandedBack(Exception):
    """A `return` on its way to the call that a helper is written out for."""

    def __init__(self, value: Any) -> None:
        self.value = value
