"""The fast path: calls of one kernel that never enter Python.

It exists once a kernel has been called again with arguments it knows. The kernel's class is then one whose `__call__`
is the dispatcher's builtin; every call the dispatcher does not take comes back to `JITFunction.__call__`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import TYPE_CHECKING, Any

from tilewright.call import native
from tilewright.call.tables import Target
from tilewright.frontend.kernels import Kernel
from tilewright.frontend.signature import Alike, Given, TensorMeta
from tilewright.jit.calls import Call

if TYPE_CHECKING:
    from tilewright.call.guards import Guards
    from tilewright.jit.compiled import Compiled


@dataclass
class Attempts:
    """How often it was tried to let a dispatcher know a program, and what it tests before it runs it."""

    guards: Guards | None = None
    made: int = 0
    waited: int = 0

    def is_due(self) -> bool:
        """Return whether to try as everything is now.

        Where that keeps failing, or what is tested keeps changing, each try waits for one call more than the last did.
        """
        if self.guards is not None and self.guards.hold():
            return False
        self.waited += 1
        if self.waited <= self.made:
            return False
        self.waited, self.made = 0, self.made + 1
        return True


class Path:
    """The programs of one kernel that a dispatcher reaches; `slow` takes the calls that it does not."""

    def __init__(self, slow: Callable[..., Any]) -> None:
        self._slow = slow
        self._attempts: dict[Compiled, Attempts] = {}
        self._surroundings = native.surroundings()

    def is_current(self) -> bool:
        """Return whether the settings are those it was made under."""
        return self._surroundings == native.surroundings()

    def is_due(self, compiled: Compiled) -> bool:
        """Return whether to try and let the dispatcher know a program as everything is now."""
        return self._attempts.setdefault(compiled, Attempts()).is_due()

    def is_known(self, compiled: Compiled) -> bool:
        """Return whether the dispatcher knows a program as everything is now."""
        guards = self._attempts[compiled].guards
        return guards is not None and guards.hold()

    def _target(self, compiled: Compiled, given: Sequence[tuple[str, Given]]) -> Target | None:
        """Return a program as an entry for a call's arguments, None where it cannot be one."""
        target = compiled.target(given)
        self._attempts.setdefault(compiled, Attempts()).guards = None if target is None else target.guards
        return target


class FastPath(Path):
    """The programs of one kernel that the native dispatcher reaches."""

    def __init__(self, kernel: Kernel, slow: Callable[..., Any]) -> None:
        super().__init__(slow)
        self._function: FunctionType = kernel.function
        self._names = [p.name if p.is_keyword and p.name != CONFIG else "" for p in kernel.parameters]
        self._native: native.Native | None = None
        self._builtin: Callable[..., Any] | None = None
        self._programs: list[Compiled] = []

    @staticmethod
    def is_available() -> bool:
        """Return whether this process can run the dispatcher."""
        return native.is_available()

    @property
    def hits(self) -> int:
        """How many calls the dispatcher has taken."""
        return self._native.hits if self._native is not None else 0

    def add(self, call: Call, compiled: Compiled) -> bool:
        """Let the dispatcher find a program for a call's arguments; return whether it finds any."""
        target = self._target(compiled, [(name, as_passed(call, name)) for name in call.described])
        if target is None:
            return self._native is not None
        if self._native is None:
            self._native = native.Native(
                len(self._names), self._slow, self._failed, names=self._names, function=self._function
            )
        if compiled not in self._programs:
            self._programs.append(compiled)
        written = sum(1 << k for k, name in enumerate(call.described) if name in compiled.written)
        self._native.put(self._programs.index(compiled), target, written)
        return True

    def entrance(self) -> Callable[..., Any]:
        """Return the function that takes calls; there is one once something was added."""
        assert self._native is not None
        if self._builtin is None:
            self._builtin = self._native.builtin()
        return self._builtin

    def _failed(self, number: int, buffers: int, program: int) -> None:
        """Raise what a program did wrong, after freeing what it had made."""
        compiled = self._programs[program].program
        (entry,) = compiled.program.entries
        assert compiled.native is not None
        compiled.native.finish(entry.name, number, buffers)


CONFIG = "config"
"""The keyword that every kernel's call takes for itself."""


def as_passed(call: Call, name: str) -> Given:
    """Return what is known about an argument, an output that is like an input by its own shape."""
    given = call.described[name].given
    source = call.described[given.source].given if isinstance(given, Alike) else given
    return source if isinstance(source, TensorMeta) else given
