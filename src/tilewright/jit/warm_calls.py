"""Warm calls of kernels: those that find their program without its session."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from tilewright.call.written_calls import CONFIG, Written
from tilewright.frontend.kernels import Kernel
from tilewright.jit.calls import Call
from tilewright.jit.compiled import Compiled

if TYPE_CHECKING:  # the fast path, which a first call does without
    from types import FunctionType

    from tilewright.call.guards import Guards
    from tilewright.call.targets import Learned
    from tilewright.call.warm import Warm


class WarmCalls:
    """What takes a kernel's calls before its session does, learned from those that the session ran.

    `slow` is the kernel's call through Python; `enter` lets its calls go elsewhere first, or with None no longer.
    """

    def __init__(self, kernel: Kernel, slow: Callable[..., Any], enter: Callable[[Any], None]) -> None:
        self.kernel = kernel
        self._slow = slow
        self._enter = enter
        self._warm: Warm | None = None
        self._left = 0
        """How many calls were taken by what is forgotten."""

    @property
    def count(self) -> int:
        """How many calls were taken."""
        return self._left + (self._warm.hits if self._warm is not None else 0)

    @property
    def can_be(self) -> bool:
        """Whether the kernel has only parameters that a dispatcher can place."""
        return all(p.is_positional or p.is_chosen for p in self.kernel.parameters)

    def learn(self, call: Call, found: Compiled, result: Any, written: Written, outputs: Collection[str]) -> None:
        """Take calls like one, which was `written` so and gave `result`, from now on, where that is possible."""
        learned = self.learned(call, found, result)
        if learned is not None:
            learned = replace(learned, config=written.config, trace=written.trace)
            self._warmed(outputs).learn(learned, partial(self.guards, found), written)

    def learned(self, call: Call, found: Compiled, result: Any) -> Learned | None:
        """Return a call as the dispatcher learns it, None where it cannot take calls like it."""
        return found.learned(call, result)

    def guards(self, found: Compiled) -> Guards | None:
        """Return what to test before a program is run, as everything is now; None where only Python can."""
        return found.guards()

    @property
    def defaulting(self) -> FunctionType:
        """The function whose defaults stand for the arguments that a call leaves out."""
        return self.kernel.function

    def forget(self) -> None:
        """Let all calls come to the session again."""
        if self._warm is not None:
            self._left += self._warm.hits
            self._warm.leave()
        self._warm = None

    def _warmed(self, outputs: Collection[str]) -> Warm:
        from tilewright.call.dispatcher import Parameter
        from tilewright.call.warm import Warm

        if self._warm is None:
            named = [p.is_keyword and not p.is_chosen and p.name != CONFIG for p in self.kernel.parameters]
            parameters = [
                Parameter(p.name if is_named else "", p.name in outputs, is_placed=p.is_positional)
                for p, is_named in zip(self.kernel.parameters, named, strict=True)
            ]
            self._warm = Warm(parameters, self._slow, self._enter, self.defaulting, configurable=True)
        return self._warm
