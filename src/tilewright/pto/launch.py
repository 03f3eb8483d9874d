"""Launches: a grid and arguments as the words that native code takes.

Everything is checked before anything runs. What was worked out for some words, which variant runs and with which
buffers, is kept for the next launch with the same ones, so a launch on known buffers is the taking of its arguments and
one call. The words of a launch are only read by the code: threads share them.
"""

from __future__ import annotations

import ctypes
import operator
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from tilewright import settings
from tilewright.backends.host import HostProgram
from tilewright.call.tables import environment
from tilewright.errors import InternalError, PtoArgumentError
from tilewright.native.context import Context, context_words
from tilewright.native.interrupts import look_address
from tilewright.native.threads import parallel_address
from tilewright.pto.declared import Declared
from tilewright.pto.groups import UNKNOWN, Groups, Reach, grouped
from tilewright.pto.pointers import PointerTaker, Words
from tilewright.pto.programs import Programs
from tilewright.pto.scalars import ScalarTaker
from tilewright.pto.signature import Kind, Signature

KNOWN = 256
"""How many sets of words one kernel remembers."""

Taker: TypeAlias = PointerTaker | ScalarTaker
Pick: TypeAlias = Callable[[Words], Words]

_Context: Any = ctypes.c_int64 * len(Context)
_CHECKED, _THREADS = (f"{settings.PREFIX}{name}".encode() for name in ("CHECKED", "NUM_THREADS"))


_COMPILED = "kernel.compile({}={!r})[grid, stream]"
"""How a kernel is launched with a constant of one's own."""


class Ready(NamedTuple):
    """A launch that can start: its code, its words, and whose they are."""

    call: Any
    room: Any
    native: HostProgram


class Plan(NamedTuple):
    """How code is called for some pointers, whatever the grid and the scalars are."""

    call: Any
    native: HostProgram
    room: Any
    extra: Words
    """Words that follow from the pointers."""
    pick: Pick
    """Picks the words of the code from those of the launch and the extra ones."""

    def ready(self, key: Words) -> Ready:
        """Return the launch for the words of its arguments."""
        return Ready(self.call, self.room(*self.pick(key + self.extra)), self.native)


class Launcher:
    """Launches of one compiled kernel."""

    def __init__(self, declared: Declared, signature: Signature, programs: Programs) -> None:
        self._declared = declared
        self._programs = programs
        self._parameters = signature.runtime
        self._constants = signature.constants
        self._takers: list[Taker] = [
            PointerTaker(declared, p) if p.kind is Kind.POINTER else ScalarTaker(declared, p) for p in signature.runtime
        ]
        widths = [2 if p.kind is Kind.POINTER else 1 for p in signature.runtime]
        self._places = [1 + sum(widths[:position]) for position in range(len(widths))]
        """Where the words of each argument start, behind the grid."""
        self._width = 1 + sum(widths)
        self._pointer_places = {place for place, width in zip(self._places, widths, strict=True) if width == 2}
        self._pointers = picker([n for place in sorted(self._pointer_places) for n in (place, place + 1)])
        self._known: dict[Words, Ready] = {}
        self._plans: dict[Words, Plan] = {}
        self._checked: bytes | None = None

    def __call__(self, grid: int, *args: Any, **named: Any) -> None:
        """Run the kernel on `grid` blocks; it has run when this returns."""
        takers = self._takers
        if named:
            raise self._named(named)
        if len(args) != len(takers):
            raise self._wrong_count(len(args))
        words = [grid]
        for taker, value in zip(takers, args):  # noqa: B905
            words += taker(value)
        key = tuple(words)
        ready = self._known.get(key)
        if ready is None or _environment.get(_CHECKED) != self._checked:
            ready = self._prepared(key)
        context = _Context(*_surroundings(ready.native))
        ready.call(ready.room, context)
        if context[1] or context[2]:
            ready.native.finish(self._programs.func.name, context[1], context[2])

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

    def _prepared(self, key: Words) -> Ready:
        """Return the launch for some words, and keep it."""
        checked = _environment.get(_CHECKED)
        if checked != self._checked or len(self._known) >= KNOWN or len(self._plans) >= KNOWN:
            self._known, self._plans, self._checked = {}, {}, checked
        known, plans = self._known, self._plans
        pointers = self._pointers(key)
        plan = plans.get(pointers)
        if plan is None:
            plan = plans[pointers] = self._planned(pointers)
        ready = known[key] = plan.ready(key)
        return ready

    def _planned(self, pointers: Words) -> Plan:
        """Return how to call code for pointers, compiled where there is none."""
        sizes = [taker.itemsize for taker in self._takers if isinstance(taker, PointerTaker)]
        pairs = zip(pointers[::2], pointers[1::2], sizes, strict=True)
        groups = grouped([Reach(at, count * size if count != UNKNOWN else UNKNOWN, size) for at, count, size in pairs])
        program = self._programs.get(None if groups is None else groups.shared)
        if program.native is None:
            raise InternalError(f"@{self._programs.func.name} has no native code")
        extra = (1,) if groups is None else groups.words
        places = [0, *(self._separate() if groups is None else self._together(groups))]
        call = program.native.calls[self._programs.func.name]
        return Plan(call, program.native, ctypes.c_int64 * len(places), extra, picker(places))

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


def picker(places: Sequence[int]) -> Pick:
    """Return what takes the items at some places out of a tuple, as a tuple."""
    if len(places) > 1:
        return operator.itemgetter(*places)
    return lambda words: tuple(words[place] for place in places)


# threads

_environment = environment()
_modules = sys.modules
_contexts: dict[object, tuple[int, ...]] = {}


def _surroundings(native: HostProgram) -> tuple[int, ...]:
    """Return the context of a launch, its chunks run in parallel as the settings and torch ask for it now."""
    asked, torch = _environment.get(_THREADS), _modules.get("torch")
    count = getattr(torch, "get_num_threads", None)
    key = (asked, torch is None, count() if count is not None else 0)
    found = _contexts.get(key)
    if found is None:
        parallel = parallel_address(settings.num_threads(), native.emit)
        found = _contexts[key] = context_words(parallel, look_address(native.emit))
    return found
