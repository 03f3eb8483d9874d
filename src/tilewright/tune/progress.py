"""Progress: a line on the terminal while a kernel is tuned, nothing where nobody looks."""

from __future__ import annotations

import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tilewright.tune.config import Config

if TYPE_CHECKING:
    from rich.status import Status


class Progress:
    """What is shown of one kernel's tuning."""

    def __init__(self, name: str, status: Status | None) -> None:
        self._name = name
        self._status = status

    def compiling(self, config: Config, number: int, total: int) -> None:
        """Show which configuration is compiled."""
        self._show(f"compiling {number} of {total}: {config.text}")

    def measuring(self, times: Sequence[Sequence[float]]) -> None:
        """Show the times so far."""
        rounds = max(map(len, times))
        left = sum(len(each) == rounds for each in times)
        self._show(f"measuring, round {rounds}, {left} of {len(times)} left, {1e6 * min(map(min, times)):.1f} us")

    def _show(self, text: str) -> None:
        if self._status is not None:
            from rich.text import Text

            self._status.update(Text(f"tuning {self._name}: {text}"))


@contextmanager
def shown(name: str) -> Generator[Progress]:
    """Show the tuning of a kernel inside; the line is gone afterwards."""
    if not sys.stderr.isatty():
        yield Progress(name, None)
        return
    from rich.console import Console

    with Console(stderr=True).status("") as status:
        yield Progress(name, status)
