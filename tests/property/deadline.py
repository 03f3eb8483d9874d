"""Deadlines: a function that runs in a process of its own, which is ended when it takes too long.

Native code hears no signal before it is done, so whoever tries programs that may not end tries them elsewhere.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from types import TracebackType
from typing import Any, Generic, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

STARTING = 120.0
"""Seconds that a process may take to start, on a machine that others use too."""


class DidNotEnd(AssertionError):
    """A call took longer than it may, or took its process with it."""


class Elsewhere(Generic[P, R]):
    """A function in another process, called as `within(seconds, ...)`; one that raises ends its process."""

    def __init__(self, function: Callable[P, R]) -> None:
        self._function = function
        self._process: Any = None
        self._ours: Any = None

    def __enter__(self) -> Elsewhere[P, R]:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._end()

    def within(self, seconds: float, *args: P.args, **kwargs: P.kwargs) -> R:
        """Return what the function returns; DidNotEnd where that is not known after so many seconds."""
        ours = self._started()
        ours.send((args, kwargs))
        try:
            if ours.poll(seconds):
                return ours.recv()
        except EOFError:
            self._process.join()
            code = self._process.exitcode
            self._end()
            raise DidNotEnd(f"its process ended with {code}") from None
        self._end()
        raise DidNotEnd(f"it has not ended after {seconds:.0f} s")

    def _started(self) -> Any:
        if self._ours is None:
            context = multiprocessing.get_context("spawn")
            self._ours, theirs = context.Pipe()
            self._process = context.Process(target=_serve, args=(self._function, theirs), daemon=True)
            self._process.start()
            theirs.close()
            if not self._ours.poll(STARTING):
                self._end()
                raise DidNotEnd("its process does not start")
            self._ours.recv()  # where there is nothing to receive, the process has said why
        return self._ours

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
        self._process = self._ours = None


def _serve(function: Callable[..., Any], calls: Any) -> None:
    calls.send("ready")
    while True:
        try:
            args, kwargs = calls.recv()
        except EOFError:
            return
        calls.send(function(*args, **kwargs))
