"""Shortcuts: the way into an entry that leaves Python out, once calls like it have been checked.

What calls code without Python lies in a layer above, which provides it. A shortcut takes the calls it has learned and
passes every other on to `Entry.__call__`, which checks everything: it lets nothing through that would be refused there.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from tilewright.backends.host import HostProgram
from tilewright.call.arguments import Arguments
from tilewright.core.enums import ParamDirection
from tilewright.core.program import Function
from tilewright.forks import Lock, undivided
from tilewright.programs.providers import provided
from tilewright.records import record

SOON, LATE = 3, 100
"""The call that is worth a shortcut: where LLVM is loaded, and where making one may have to load it."""

LONGEST = 64
"""Up to how many calls that no shortcut takes go by between two looks at one: each look may cost what a call does."""


@record
class Learned:
    """A call that went well: how it was written, and its arguments, those it left out among them."""

    positional: int
    named: Mapping[str, Any]
    arguments: Arguments

    @property
    def is_whole(self) -> bool:
        """Whether it gave every argument."""
        return self.positional + len(self.named) == len(self.arguments.given)


class Way(Protocol):
    """Calls of one entry without Python."""

    def is_current(self) -> bool:
        """Return whether it still takes calls: what it was made under has not changed."""
        ...

    def add(self, call: Learned) -> bool:
        """Take calls like one from now on; return whether it did not before, and can."""
        ...

    def builtin(self) -> Callable[..., Any]:
        """Return what to call."""
        ...


Slow: TypeAlias = Callable[..., Any]
Provider: TypeAlias = Callable[[HostProgram, Function, Sequence[ParamDirection], Slow], Way | None]
"""Makes the way into an entry, with what takes all other calls behind it; None where there cannot be one."""


class Shortcut:
    """What one entry's calls have taught: `enter` lets calls go elsewhere first."""

    def __init__(
        self,
        native: HostProgram | None,
        entry: Function,
        slow: Slow,
        enter: Callable[[Callable[..., Any]], None],
    ) -> None:
        self._native = native
        self._entry = entry
        self._slow = slow
        self._enter = enter
        self._wait = SOON if sys.modules.get("llvmlite") is not None else LATE
        self._calls = 0
        self._way: Way | None = None
        self._is_entered = False

    def learn(self, call: Learned, directions: Sequence[ParamDirection]) -> None:
        """Let calls like one that went well go without Python, where that is worth it and nobody else is at it."""
        self._calls += 1
        if self._native is None or self._calls < self._wait or not _lock.acquire(blocking=False):
            return
        learned = False
        try:
            learned = self._learn(self._native, call, directions)
        except ImportError:  # neither LLVM nor code that it has made before
            self._native = None
        finally:
            _lock.release()
        self._calls, self._wait = 0, 1 if learned else min(2 * self._wait, LONGEST)

    @undivided()
    def _learn(self, native: HostProgram, call: Learned, directions: Sequence[ParamDirection]) -> bool:
        """Return whether calls like this one go without Python from now on, and have not before."""
        if self._way is None or not self._way.is_current():
            self._way, self._is_entered = self._made(native, directions), False
        if self._way is None:
            self._native = None  # there is none to be had
            return False
        learned = self._way.add(call)
        if learned and not self._is_entered:
            self._enter(self._way.builtin())
            self._is_entered = True
        return learned

    def _made(self, native: HostProgram, directions: Sequence[ParamDirection]) -> Way | None:
        provider: Provider | None = provided("shortcut")
        return None if provider is None else provider(native, self._entry, directions, self._slow)


def reroute(thing: object, call: Callable[..., Any]) -> None:
    """Let calls of an object go to `call`, which has no `self`, before its own `__call__`."""
    kind = type(thing)
    plain = kind.__mro__[1] if _MARK in vars(kind) else kind
    body = {"__call__": call, "__doc__": plain.__doc__, "__module__": plain.__module__, _MARK: True}
    made: Any = type(plain)  # its metaclass, where it has one
    thing.__class__ = made(plain.__name__, (plain,), body)


_MARK = "_takes_a_shortcut"
_lock = Lock()
