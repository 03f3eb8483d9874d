"""Launches: a grid and arguments as the words that native code takes.

Everything is checked before anything runs. Launches on plain tensors that share no memory go to the dispatcher once
some have gone well. How code is called for other pointers, which variant runs and with which buffers, is kept for the
next launch on the same ones.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from tilewright import settings
from tilewright.backends.host import HostProgram
from tilewright.call.backoff import Backoff
from tilewright.call.entrance import reroute
from tilewright.call.frameworks import is_tensor
from tilewright.call.launch import context, room
from tilewright.call.torch_state import is_traced
from tilewright.call.unread import hide, unread
from tilewright.errors import InternalError
from tilewright.frontend.signature import Known, TensorMeta
from tilewright.native.context import Context
from tilewright.pto.declared import Declared
from tilewright.pto.errors import PtoArgumentError, PtoValueError
from tilewright.pto.groups import UNKNOWN, Groups, Reach, grouped
from tilewright.pto.pointers import OPERATOR, PointerTaker, Words
from tilewright.pto.programs import Programs
from tilewright.pto.scalars import ScalarTaker
from tilewright.pto.signature import Kind, Signature

if TYPE_CHECKING:
    from tilewright.call.dispatcher import Parameter
    from tilewright.call.targets import Callee, Learned, Slot
    from tilewright.call.warm import Warm

KNOWN = 256
"""How many sets of pointers one kernel remembers, and how many grids."""

Pick: TypeAlias = Callable[[Words], Words]

_COMPILED = "kernel.compile({}={!r})[grid, stream]"
"""How a kernel is launched with a constant of one's own."""


class Plan(NamedTuple):
    """How code is called for some pointers, whatever the grid and the scalars are."""

    native: HostProgram
    extra: Words
    """Words that follow from the pointers."""
    pick: Pick
    """Picks the words of the code from those of the launch and the extra ones."""
    callee: Callee | None
    """The code as dispatchers call it, where no two pointers share memory."""


class Launch:
    """Launches of one compiled kernel on so many blocks, called with its arguments."""

    def __init__(self, launcher: Launcher, grid: int) -> None:
        self._launcher = launcher
        self._grid = grid
        self._backoff = Backoff()
        self._warm: Warm | None = None

    @unread(OPERATOR)
    def __call__(self, *args: Any, **named: Any) -> None:
        """Run the kernel; it has run when this returns."""
        words, plan = self._launcher.run(self._grid, args, named)
        if plan.callee is not None:
            self._backoff.look(partial(self._learn, args, words, plan.callee))

    def _learn(self, args: Sequence[Any], words: Words, callee: Callee) -> bool:
        """Return whether launches like one go without Python from now on, and have not before."""
        from tilewright.call.guards import Guards
        from tilewright.call.warm import Warm, is_native

        if not is_native():
            raise ImportError
        if self._warm is None:
            slow = partial(Launch.__call__, self)
            self._warm = Warm(self._launcher.parameters(), slow, partial(reroute, self), leading=1)
        return self._warm.learn(self._launcher.learned(args, words, callee), Guards)


class Launcher:
    """Launches of one compiled kernel."""

    def __init__(self, declared: Declared, signature: Signature, programs: Programs) -> None:
        hide()
        self._declared = declared
        self._programs = programs
        self._parameters = signature.runtime
        self._constants = signature.constants
        self._takers: list[PointerTaker | ScalarTaker] = [
            PointerTaker(declared, p) if p.kind is Kind.POINTER else ScalarTaker(declared, p) for p in signature.runtime
        ]
        widths = [2 if p.kind is Kind.POINTER else 1 for p in signature.runtime]
        self._places = [1 + sum(widths[:position]) for position in range(len(widths))]
        """Where the words of each argument start, behind the grid."""
        self._width = 1 + sum(widths)
        self._pointer_places = {place for place, width in zip(self._places, widths, strict=True) if width == 2}
        self._pointers = picker([n for place in sorted(self._pointer_places) for n in (place, place + 1)])
        self._plans: dict[Words, Plan] = {}
        self._launches: dict[int, Launch] = {}
        self._callee: Callee | None = None
        self._checked = settings.checked()

    def on(self, grid: int) -> Launch:
        """Return the launches on so many blocks."""
        found = self._launches.get(grid)
        if found is None:
            if len(self._launches) >= KNOWN:
                self._launches.clear()
            found = self._launches[grid] = Launch(self, grid)
        return found

    def run(self, grid: int, args: Sequence[Any], named: Mapping[str, Any]) -> tuple[Words, Plan]:
        """Run the kernel on `grid` blocks; return its words, and how its code was called."""
        if named:
            raise self._named(named)
        if len(args) != len(self._takers):
            raise self._wrong_count(len(args))
        if is_traced() and any(map(is_tensor, args)):
            message = "torch traces or transforms this launch, and cannot look into it"
            raise self._declared.refusal(PtoValueError, message, help=OPERATOR)
        key = (grid, *(word for taker, value in zip(self._takers, args, strict=True) for word in taker(value)))
        plan = self._planned(self._pointers(key))
        words = plan.pick(key + plan.extra)
        around = context(plan.native)
        plan.native.calls[self._programs.func.name](room(words), around)
        if around[Context.ERROR] or around[Context.BUFFERS]:
            plan.native.finish(self._programs.func.name, around[Context.ERROR], around[Context.BUFFERS])
        return key, plan

    def _named(self, named: Mapping[str, Any]) -> PtoArgumentError:
        """Return the error for arguments by name: constants belong to `compile`, and the rest has an order."""
        name = next(iter(named))
        if any(p.name == name for p in self._constants):
            message = f"`{name}` is a constant of the kernel, not an argument of a launch"
            return self._declared.refusal(PtoArgumentError, message, help=f"{_COMPILED.format(name, named[name])}(...)")
        order = ", ".join(p.name for p in self._parameters)
        message = f"a launch takes its arguments by position, got `{name}` by name"
        return self._declared.refusal(PtoArgumentError, message, help=f"kernel[grid, stream]({order})")

    def _wrong_count(self, count: int) -> PtoArgumentError:
        names = ", ".join(p.name for p in self._parameters)
        message = f"a launch takes {len(self._parameters)} arguments ({names}), got {count}"
        return self._declared.refusal(PtoArgumentError, message)

    # how code is called

    def _planned(self, pointers: Words) -> Plan:
        """Return how to call code for pointers, compiled where there is none."""
        checked = settings.checked()
        if checked != self._checked or len(self._plans) >= KNOWN:
            self._plans, self._checked = {}, checked
        plans = self._plans
        found = plans.get(pointers)
        if found is None:
            found = plans[pointers] = self._plan(pointers)
        return found

    def _plan(self, pointers: Words) -> Plan:
        from tilewright.call.targets import Callee

        sizes = [taker.itemsize for taker in self._takers if isinstance(taker, PointerTaker)]
        pairs = zip(pointers[::2], pointers[1::2], sizes, strict=True)
        groups = grouped([Reach(at, count * size if count != UNKNOWN else UNKNOWN, size) for at, count, size in pairs])
        program = self._programs.get(None if groups is None else groups.shared)
        if program.native is None:
            raise InternalError(f"@{self._programs.func.name} has no native code")
        if groups is not None:
            return Plan(program.native, groups.words, picker([0, *self._together(groups)]), None)
        if self._callee is None or self._callee.native is not program.native:
            self._callee = Callee(program.native, program[self._programs.func.name].function)
        return Plan(program.native, (1,), picker([0, *self._separate()]), self._callee)

    def _separate(self) -> Iterable[int]:
        """Yield which words code takes where each pointer has a buffer: address, extent and stride, or a number."""
        for place in self._places:
            yield from (place, place + 1, self._width) if place in self._pointer_places else (place,)

    def _together(self, groups: Groups) -> Iterable[int]:
        """Yield which words code takes where pointers share buffers: those, then offsets and numbers."""
        buffers = 3 * len(groups.buffers)
        yield from range(self._width, self._width + buffers)
        offsets = iter(range(self._width + buffers, self._width + len(groups.words)))
        for place in self._places:
            yield next(offsets) if place in self._pointer_places else place

    # as the dispatcher has it

    def parameters(self) -> list[Parameter]:
        """Return the parameters of launches."""
        from tilewright.call.dispatcher import Parameter

        return [Parameter(is_pointer=p.kind is Kind.POINTER) for p in self._parameters]

    def learned(self, args: Sequence[Any], words: Words, callee: Callee) -> Learned:
        """Return a launch that went well, which any on as plain tensors and on other numbers are like."""
        from tilewright.call.targets import Learned

        slots = [self._slot(k, value, words) for k, value in enumerate(args)]
        written = sum(1 << k for k, p in enumerate(self._parameters) if p.kind is Kind.POINTER)
        return Learned(callee, slots, (), written, leading=words[:1])

    def _slot(self, position: int, value: Any, words: Words) -> Slot:
        from tilewright.call.targets import Slot, open_bounds

        taker, place = self._takers[position], self._places[position]
        if isinstance(taker, PointerTaker):
            return Slot(TensorMeta((words[place + 1],), taker.dtype), None, [f"{position}"])
        return Slot(Known(value), taker.type, bounds=open_bounds(taker.type.dtype, value, None))


def picker(places: Sequence[int]) -> Pick:
    """Return what takes the items at some places out of a tuple, as a tuple."""
    if len(places) > 1:
        return operator.itemgetter(*places)
    return lambda words: tuple(words[place] for place in places)
