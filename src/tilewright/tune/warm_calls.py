"""Warm calls of tuned kernels: what was chosen stands in the launch of a program, and nowhere in its key.

The dispatcher takes a stand-in for each parameter that is left to be chosen, and the entry that it finds brings the
value. What the choice depends on is always part of the key, axes that the program would take as they come too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import FunctionType
from typing import TYPE_CHECKING, Any

from tilewright.call.thread_limit import thread_limit
from tilewright.core.types import ScalarType
from tilewright.frontend.kernels import Kernel
from tilewright.frontend.signature import Known
from tilewright.jit.calls import Call
from tilewright.jit.compiled import Compiled
from tilewright.jit.warm_calls import WarmCalls
from tilewright.tune.plan import Plan

if TYPE_CHECKING:
    from tilewright.call.guards import Guards
    from tilewright.call.targets import Learned, Slot

NOTHING = ...
"""Stands for a parameter without a default; no dispatcher takes it for an argument."""


class TunedWarmCalls(WarmCalls):
    """The calls of a tuned kernel that do without its session."""

    def __init__(self, kernel: Kernel, plan: Plan, slow: Callable[..., Any], enter: Callable[[Any], None]) -> None:
        super().__init__(kernel, slow, enter)
        self._plan = plan
        self._stand_in: FunctionType | None = None
        self._followed: object = None
        """The defaults of the kernel that the stand-in's were made from."""

    @property
    def defaulting(self) -> FunctionType:
        """A function whose defaults stand for the kernel's own, and for what is chosen."""
        if self._stand_in is None:
            self._stand_in = FunctionType((lambda: None).__code__, {})
        return self._stand_in

    def learned(self, call: Call, found: Compiled, result: Any) -> Learned | None:
        """Return a call as the dispatcher learns it, None where it cannot take calls like it."""
        learned = found.learned(call, result)
        if learned is None:
            return None
        names = list(call.described)
        slots = dict(zip(names, learned.slots, strict=True))
        words = {name: _stand_in(slots[name]) for name in self._plan.names}
        self._follow(words)
        fixed = self._fixed(names, learned.slots)
        changed = [self._slot(name, slot, words, fixed) for name, slot in slots.items()]
        return replace(learned, slots=changed, threads=thread_limit())

    def guards(self, found: Compiled) -> Guards | None:
        """Return what to test before a program is run, None where defaults have changed meanwhile."""
        made = super().guards(found)
        function, fields = self.kernel.function, made.fields if made is not None else ()
        own = [value for owner, name, value in fields if owner is function and name == "__defaults__"]
        return made if own and all(value is self._followed for value in own) else None

    def _follow(self, words: Mapping[str, int | None]) -> None:
        """Let the stand-in's defaults be what the kernel's are now."""
        now = self.kernel.function.__defaults__
        own = {p.name: p.default if p.is_optional else NOTHING for p in self.kernel.parameters}
        defaults = tuple({**own, **words}.values())
        if self._followed is not now or defaults != self.defaulting.__defaults__:
            self.forget()  # what was learned goes by other defaults
            self._stand_in, self._followed = None, now
            self.defaulting.__defaults__ = defaults

    def _slot(self, name: str, slot: Slot, words: Mapping[str, int | None], fixed: set[str]) -> Slot:
        if name in words:
            return replace(slot, default=Known(words[name]), bounds=None)
        dims = [None if dim in fixed else dim for dim in slot.dims]
        return replace(slot, dims=dims, bounds=None if self._plan.key.has(name) else slot.bounds)

    def _fixed(self, names: Sequence[str], slots: Sequence[Slot]) -> set[str]:
        """Return the names of the dynamic axes that a choice depends on."""
        found: set[str] = set()
        for name, slot in zip(names, slots, strict=True):
            axes = self._plan.key.axes(name, len(slot.dims)) if slot.dims else ()
            found |= {dim for axis in axes if (dim := slot.dims[axis]) is not None}
        return found


def _stand_in(slot: Slot) -> int | None:
    """Return what takes as many words of a launch as a value that was chosen, and is copied at once."""
    return 0 if isinstance(slot.type, ScalarType) else None
