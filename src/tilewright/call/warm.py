"""Warm calls: what takes the calls of one callable once calls like them have been checked.

A callable's class is then one whose `__call__` is the dispatcher's builtin. Calls that it does not know come back to
the callable's own `__call__`, the fallback, which runs them and lets the dispatcher learn: it lets nothing through that
would be refused there. Where machine code cannot be emitted, a memo in Python takes its place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

from tilewright import settings
from tilewright.call.builtin import is_available
from tilewright.call.dispatcher import Dispatcher, Parameter
from tilewright.call.guards import Guards
from tilewright.call.memo import Memo
from tilewright.call.targets import Callee, Learned
from tilewright.call.torch_layout import torch_layout
from tilewright.call.written_calls import Written
from tilewright.imported import imported
from tilewright.records import mutable

NOTHING = Written()
"""How calls were written that nobody asks about: machine code goes by their words."""


@mutable
class _Attempts:
    """How often it was tried to let a dispatcher know a program.

    Where that keeps failing, or what is tested keeps changing, each try waits for one call more than the last did.
    """

    made: int = 0
    waited: int = 0

    def is_due(self) -> bool:
        """Return whether to try at this call."""
        self.waited += 1
        if self.waited <= self.made:
            return False
        self.waited, self.made = 0, self.made + 1
        return True


class Warm:
    """The warm calls of one callable; `enter` lets its calls go elsewhere first, or with None no longer."""

    def __init__(
        self,
        parameters: Sequence[Parameter],
        fallback: Callable[..., Any],
        enter: Callable[[Callable[..., Any] | None], None],
        function: FunctionType | None = None,
        leading: int = 0,
        configurable: bool = False,
    ) -> None:
        self._parameters = parameters
        self._fallback = fallback
        self._enter = enter
        self._function = function
        self._leading = leading
        self._configurable = configurable
        self._dispatcher: Dispatcher | Memo | None = None
        self._attempts: dict[Callee, _Attempts] = {}
        self._guards: dict[Callee, Guards] = {}
        """What is tested before each program is run."""
        self._is_entered = False
        self._left = 0
        """How many calls were taken by dispatchers that are no more."""

    @property
    def hits(self) -> int:
        """How many calls were taken."""
        return self._left + (self._dispatcher.hits if self._dispatcher is not None else 0)

    def learn(self, call: Learned, guards: Callable[[], Guards | None], written: Written = NOTHING) -> bool:
        """Take calls like one, which was `written` so, from now on; return whether they are new and can be taken.

        ImportError where there is neither LLVM nor machine code that it has made before.
        """
        if self._dispatcher is not None and not self._dispatcher.is_current():
            self.leave()
        target = call.target()
        if target is None:
            return False
        if self._dispatcher is None:
            self._dispatcher = self._new_dispatcher()
        known = self._dispatcher.known(call, target, written)
        if known is not None and known.guards.hold():
            return False
        held = self._guards.get(call.callee)
        if held is None or not held.hold():
            if not self._attempts.setdefault(call.callee, _Attempts()).is_due():
                return False
            held = guards()
        if held is None:
            return False
        target.guards = self._guards[call.callee] = held
        self._dispatcher.put(call, target, written)
        if not self._is_entered:
            self._enter(self._dispatcher.entrance())
            self._is_entered = True
        return True

    def _new_dispatcher(self) -> Dispatcher | Memo:
        if is_native():
            return Dispatcher(self._parameters, self._fallback, self._function, self._leading, self._configurable)
        return Memo(self._parameters, self._fallback, self._function, self._configurable)

    def leave(self) -> None:
        """Let calls go to the callable again, and forget what they were."""
        self._left = self.hits
        self._dispatcher, self._attempts, self._guards, self._is_entered = None, {}, {}, False
        self._enter(None)


def is_native() -> bool:
    """Return whether machine code takes calls in this process.

    Where torch lays tensors out in a way that nobody knows yet, machine code cannot read them, and Python can.
    """
    knows_torch = imported("torch") is None or torch_layout() is not None
    return settings.native_dispatch() and is_available() and knows_torch
