"""Messages: what an author is told while a kernel is read, once it is certain.

A function may be translated several times before all its types are known. What `pl.static_print` says and what warnings
warn of waits until then, so that each is told once, and with the types it has in the end.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import field
from typing import TypeAlias

from tilewright.errors import KernelError, KernelWarning
from tilewright.records import mutable
from tilewright.source import Span

Message: TypeAlias = Callable[[], None]
"""Prints or warns when it is called."""

_TOLD: dict[str | tuple[str, type[Warning], int], int] = {}
"""What has been warned of, which a kernel that is read again does not repeat."""


def caution(kind: type[KernelWarning], function: str, message: str, spans: Sequence[Span], help: str) -> Message:
    """Return what warns of something at its place in a function, once for each text."""
    mistake = KernelError(message, spans=spans, help=help)
    mistake.function = function
    text, place = str(mistake), spans[0]
    return lambda: warnings.warn_explicit(text, kind, place.filename, place.line, registry=_TOLD)


@mutable
class Messages:
    """The messages of one program that are waiting."""

    waiting: list[Message] = field(default_factory=list[Message])
    depth: int = 0

    @contextmanager
    def held(self) -> Generator[int, None, None]:
        """Let messages wait until the outermost block ends; give how many there were, for `forget`."""
        self.depth += 1
        try:
            yield len(self.waiting)
        except BaseException:
            with suppress(KernelWarning):  # a mistake comes before a warning
                self._end()
            raise
        self._end()

    def tell(self, message: Message) -> None:
        """Let a message wait."""
        self.waiting.append(message)

    def forget(self, count: int) -> None:
        """Drop all messages but the first `count`: what they were about is translated again."""
        del self.waiting[count:]

    def _end(self) -> None:
        self.depth -= 1
        if self.depth == 0:
            ready, self.waiting = self.waiting, []
            for message in ready:
                message()
