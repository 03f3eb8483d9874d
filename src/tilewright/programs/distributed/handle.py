"""Runs under way: what `submit` gives."""

from __future__ import annotations

from concurrent.futures import Future
from concurrent.futures import TimeoutError as _Late


class DistributedRunHandle:
    """A run that may be going on; whoever asks for its result gets the same, its error among them."""

    def __init__(self, future: Future[None]) -> None:
        self._future = future

    @property
    def done(self) -> bool:
        """Whether it has ended, well or not."""
        return self._future.done()

    def result(self, timeout: float | None = None) -> None:
        """Wait for its end; TimeoutError after so many seconds, or what the run itself raised."""
        if timeout is not None and timeout < 0:
            raise ValueError(f"timeout is 0 seconds or more, got {timeout}")
        try:
            return self._future.result(timeout)
        except _Late:
            if self._future.done():
                raise
            raise TimeoutError(f"the run has not ended within {timeout} s") from None

    wait = result

    def __repr__(self) -> str:
        return f"<run, {'done' if self.done else 'under way'}>"
