"""Faults: system calls that fail, or end the process, at a step that a test chooses."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from itertools import count
from typing import Any

CALLS = (
    "open",
    "close",
    "read",
    "write",
    "fstat",
    "stat",
    "utime",
    "mkdir",
    "rmdir",
    "replace",
    "unlink",
    "listdir",
    "scandir",
)
"""The functions of `os` that the cache uses."""

Call = Callable[..., Any]
Fault = Callable[[Call, tuple[Any, ...], dict[str, Any]], Any]
"""What happens instead of a call."""


@contextmanager
def faulty(at: int, fault: Fault, names: tuple[str, ...] = CALLS) -> Generator[list[str], None, None]:
    """Let the call number `at`, and no other, go wrong; give the names of the calls, in order."""
    seen: list[str] = []

    def wrapped(name: str, call: Call) -> Call:
        def counted(*args: Any, **kwargs: Any) -> Any:
            seen.append(name)
            return fault(call, args, kwargs) if len(seen) == at + 1 else call(*args, **kwargs)

        return counted

    real: dict[str, Call] = {name: getattr(os, name) for name in names}
    for name, call in real.items():
        setattr(os, name, wrapped(name, call))
    try:
        yield seen
    finally:
        for name, call in real.items():
            setattr(os, name, call)


def at_every_step(turn: Callable[[int], list[str]]) -> list[str]:
    """Let `turn` go wrong at one call after the other, until it is through before; return the calls of that turn."""
    for at in count():
        calls = turn(at)
        if len(calls) <= at:
            return calls
    return []


def failing(code: int) -> Fault:
    """Fail with an error; a file is closed all the same, as the system does."""

    def fail(call: Call, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if call.__name__ == "close":
            call(*args)
        raise OSError(code, os.strerror(code))

    return fail


def dying_before(call: Call, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    os._exit(9)


def dying_after(call: Call, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    try:
        call(*args, **kwargs)
    finally:
        os._exit(9)


def dying_within(call: Call, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Write half of what was asked for; other calls do nothing by halves."""
    if call.__name__ == "write":
        call(args[0], args[1][: len(args[1]) // 2])
    os._exit(9)
