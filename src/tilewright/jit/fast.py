"""The fast path: calls of one kernel that never enter Python.

It exists once a kernel has been called again with arguments it knows. The kernel's class is then one whose `__call__`
is the dispatcher's builtin; every call the dispatcher does not take comes back to `JITFunction.__call__`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tilewright.frontend.signature import Alike, Given, TensorMeta
from tilewright.jit import native
from tilewright.jit.calls import Call
from tilewright.jit.native import surroundings as surroundings

if TYPE_CHECKING:
    from tilewright.jit.compiled import Compiled


class FastPath:
    """The programs of one kernel that the native dispatcher reaches."""

    def __init__(self, parameters: int, slow: Callable[..., Any]) -> None:
        self._parameters = parameters
        self._slow = slow
        self._native: native.Native | None = None
        self._programs: list[Compiled] = []
        self._surroundings = native.surroundings()

    @staticmethod
    def is_available() -> bool:
        """Return whether this process can run the dispatcher."""
        return native.is_available()

    @property
    def hits(self) -> int:
        """How many calls the dispatcher has taken."""
        return self._native.hits if self._native is not None else 0

    def is_current(self) -> bool:
        """Return whether the settings are those it was made under."""
        return self._surroundings == native.surroundings()

    def add(self, call: Call, compiled: Compiled) -> bool:
        """Let the dispatcher find a program for a call's arguments; return whether it finds any."""
        target = compiled.target([(name, as_passed(call, name)) for name in call.described])
        if target is None:
            return self._native is not None
        if self._native is None:
            self._native = native.Native(self._parameters, self._slow, self._failed)
        if compiled not in self._programs:
            self._programs.append(compiled)
        written = sum(1 << k for k, name in enumerate(call.described) if name in compiled.written)
        self._native.put(self._programs.index(compiled), target, written)
        return True

    def builtin(self) -> Callable[..., Any]:
        """Return what a kernel's calls go to first."""
        assert self._native is not None
        return self._native.builtin()

    def _failed(self, number: int, buffers: int, program: int) -> None:
        """Raise what a program did wrong, after freeing what it had made."""
        compiled = self._programs[program].program
        (entry,) = compiled.program.entries
        assert compiled.native is not None
        compiled.native.finish(entry.name, number, buffers)


def as_passed(call: Call, name: str) -> Given:
    """Return what is known about an argument, an output that is like an input by its own shape."""
    given = call.described[name].given
    source = call.described[given.source].given if isinstance(given, Alike) else given
    return source if isinstance(source, TensorMeta) else given
