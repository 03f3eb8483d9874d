"""Launches: a grid and arguments as the words that native code takes.

Everything is checked before anything runs. Launches on plain tensors that share no memory go to the dispatcher once
some have gone well. How code is called for other pointers, which variant runs and with which buffers, is kept for the
next launch on the same ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from tilewright import settings
from tilewright.backends.host import HostProgram
from tilewright.call.argument import CPU
from tilewright.call.backoff import LATE, Backoff
from tilewright.call.devices import check_one_device
from tilewright.call.frameworks import is_tensor
from tilewright.call.graph_breaks import hide, unread
from tilewright.call.launch import context, error_numbers, room
from tilewright.call.rerouting import reroute
from tilewright.call.torch_state import is_traced
from tilewright.errors import InternalError
from tilewright.frontend.signature import Known, TensorMeta
from tilewright.named_tuples import NamedTuple
from tilewright.native.context import Context
from tilewright.passes.aliases import Footprints
from tilewright.programs.platforms import platform_for
from tilewright.pto.arguments import PointerTaker, ScalarTaker, Words, device_of
from tilewright.pto.declared import Declared
from tilewright.pto.errors import OPERATOR, PtoArgumentError, PtoValueError
from tilewright.pto.groups import UNKNOWN, Groups, Reach, are_apart, grouped
from tilewright.pto.programs import Programs
from tilewright.pto.signature import Kind, Signature
from tilewright.pto.signature import Parameter as Declaration

if TYPE_CHECKING:
    from tilewright.call.dispatcher import Parameter
    from tilewright.call.files import UnchangedFile
    from tilewright.call.targets import Callee, Learned, Slot
    from tilewright.call.warm import Warm
    from tilewright.keep.reads import ReadSet

KNOWN = 256
"""How many sets of pointers one kernel remembers, and how many grids."""

_COMPILED = "kernel.compile({}={!r})[grid, stream]"
"""How a kernel is launched with a constant of one's own."""


class Plan(NamedTuple):
    """How code is called for some pointers, whatever the grid and the scalars are."""

    native: HostProgram
    groups: Groups | None
    """The buffers of pointers that share memory."""
    callee: Callee | None
    """The code as dispatchers call it, where no two pointers share memory."""

    def words(self, grid: int, given: Sequence[Words]) -> Iterator[int]:
        """Yield the words of the code: the grid, buffers that pointers share, and those of each argument.

        A pointer is a buffer of its own (address, extent and stride) or a piece of a shared one (offset and extent).
        """
        yield grid
        pieces: Iterator[Words] = iter(())
        if self.groups is not None:
            yield from self.groups.words
            pieces = iter(self.groups.pieces)
        for words in given:
            if len(words) == 1:
                yield from words
            elif self.groups is None:
                yield from (*words, 1)
            else:
                yield from next(pieces)


class Launch:
    """Launches of a kernel on so many blocks, called with its arguments.

    `current` tells which code that is by now, and what it was read from; None where nobody asks again.
    """

    def __init__(self, current: Callable[[], tuple[Launcher, ReadSet | UnchangedFile | None]], grid: int) -> None:
        self._current = current
        self._grid = grid
        self._backoff = Backoff()

    @unread(OPERATOR)
    def __call__(self, *args: Any, **named: Any) -> None:
        """Run the kernel; it has run when this returns."""
        launcher, reads = self._current()
        given, plan = launcher.run(self._grid, args, named)
        if plan.callee is not None:
            learned = partial(launcher.learned, self._grid, args, given, plan.callee)
            self._backoff.look(partial(self._new_warm, launcher), learned, reads)

    @property
    def is_warm(self) -> bool:
        """Whether machine code takes calls like some before."""
        return type(self) is not Launch

    def forget(self) -> None:
        """Let all calls come to Python again."""
        self._backoff.forget()

    def _new_warm(self, launcher: Launcher) -> Warm:
        from tilewright.call.warm import Warm

        launcher.follow(self)
        return Warm(launcher.parameters(), partial(Launch.__call__, self), partial(reroute, self), leading=1)


class Launcher:
    """Launches of one compiled kernel."""

    def __init__(self, declared: Declared, signature: Signature, programs: Programs) -> None:
        hide()
        self._declared = declared
        self._programs = programs
        self._parameters = signature.runtime
        self._constants = signature.constants
        self._takers: list[PointerTaker | ScalarTaker] = [
            PointerTaker(declared, p, partial(self._is_written, p))
            if p.kind is Kind.POINTER
            else ScalarTaker(declared, p)
            for p in signature.runtime
        ]
        self._plans: dict[tuple[str, Words], Plan] = {}
        self._launches: dict[int, Launch] = {}
        self._warm: WeakSet[Launch] = WeakSet()
        self._callee: Callee | None = None
        self._written: Sequence[bool] | None = None
        """Whether each pointer is written, None while nobody has passed the same memory twice."""
        self._together = 0
        """How many launches were on pointers that share memory."""
        self._settings = settings.code_settings()

    def follow(self, launch: Launch) -> None:
        """Take note of launches of this kernel that machine code may take from now on."""
        self._warm.add(launch)

    def on(self, grid: int) -> Launch:
        """Return the launches on so many blocks."""
        found = self._launches.get(grid)
        if found is None:
            if len(self._launches) >= KNOWN:
                self._launches.clear()
            found = self._launches[grid] = Launch(lambda: (self, None), grid)
        return found

    def run(self, grid: int, args: Sequence[Any], named: Mapping[str, Any]) -> tuple[list[Words], Plan]:
        """Run the kernel on `grid` blocks; return the words of its arguments, and how its code was called."""
        if named:
            raise self._named(named)
        if len(args) != len(self._takers):
            raise self._wrong_count(len(args))
        if is_traced() and any(map(is_tensor, args)):
            message = "torch traces or transforms this launch, and cannot look into it"
            raise self._declared.refusal(PtoValueError, message, help=OPERATOR)
        given = [taker(value) for taker, value in zip(self._takers, args, strict=True)]
        plan = self._planned(self._device(args), tuple(word for words in given if len(words) > 1 for word in words))
        around, name = context(plan.native), self._programs.func.name
        plan.native.calls[name](room(tuple(plan.words(grid, given))), around)
        if around[Context.ERROR] or around[Context.BUFFERS]:
            plan.native.finish(name, around[Context.ERROR], around[Context.BUFFERS], error_numbers(around))
        if plan.groups is not None:
            self._together += 1
            if self._together == LATE:
                self._plans = {}  # from now on it is worth while to know what is written
        return given, plan

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

    def _device(self, args: Sequence[Any]) -> str:
        """Return the device that pointers are on; an address is of the same one as the arrays beside it."""
        named = zip(self._parameters, args, strict=True)
        devices = {p.name: found for p, value in named if p.kind is Kind.POINTER and (found := device_of(value))}
        try:
            check_one_device(devices)
        except ValueError as error:
            raise self._declared.refusal(PtoValueError, str(error)) from None
        return next(iter(devices.values()), CPU)

    def _planned(self, device: str, pointers: Words) -> Plan:
        """Return how to call code for pointers, compiled where there is none."""
        said = settings.code_settings()
        if said != self._settings or len(self._plans) >= KNOWN:
            self._plans, self._settings = {}, said
        plans = self._plans
        found = plans.get((device, pointers))
        if found is None:
            found = plans[device, pointers] = self._plan(device, pointers)
        return found

    def _plan(self, device: str, pointers: Words) -> Plan:
        from tilewright.call.targets import Callee

        sizes = [taker.itemsize for taker in self._takers if isinstance(taker, PointerTaker)]
        pairs = zip(pointers[::2], pointers[1::2], sizes, strict=True)
        reaches = [Reach(at, count * size if count != UNKNOWN else UNKNOWN, size) for at, count, size in pairs]
        groups = grouped(reaches)
        is_worth_it = self._programs.is_lowered or self._together >= LATE
        if groups is not None and is_worth_it and are_apart(reaches, self._are_written()):
            groups = None
        program = self._programs.get(None if groups is None else groups.shared, platform_for(device))
        if program.native is None:
            raise InternalError(f"@{self._programs.func.name} has no native code")
        if groups is not None or device != CPU:
            return Plan(program.native.on(device), groups, None)
        if self._callee is None or self._callee.native is not program.native:
            self._callee = Callee(program.native, program[self._programs.func.name].function)
        return Plan(program.native, None, self._callee)

    def _are_written(self) -> Sequence[bool]:
        """Return whether each pointer is written; what was learned of launches while nobody knew is forgotten."""
        if self._written is None:
            program, name = self._programs.lowered(), self._programs.func.name
            writes = Footprints(program)[name].writes
            numbered = enumerate(self._parameters, start=1)  # the grid comes first
            self._written = [number in writes for number, p in numbered if p.kind is Kind.POINTER]
            for launch in self._warm:
                launch.forget()
        return self._written

    def _is_written(self, parameter: Declaration) -> bool:
        """Return whether the kernel writes through one of its pointers."""
        pointers = [p for p in self._parameters if p.kind is Kind.POINTER]
        return self._are_written()[pointers.index(parameter)]

    # as the dispatcher has it

    def parameters(self) -> list[Parameter]:
        """Return the parameters of launches."""
        from tilewright.call.dispatcher import Parameter

        return [Parameter(is_pointer=p.kind is Kind.POINTER) for p in self._parameters]

    def learned(self, grid: int, args: Sequence[Any], given: Sequence[Words], callee: Callee) -> Learned:
        """Return a launch that went well, which any on as plain tensors and on other numbers are like."""
        from tilewright.call.targets import Learned

        slots = [self._slot(k, value, words) for k, (value, words) in enumerate(zip(args, given, strict=True))]
        pointers = [k for k, p in enumerate(self._parameters) if p.kind is Kind.POINTER]
        known = self._written or [True] * len(pointers)
        written = sum(1 << k for k, is_written in zip(pointers, known, strict=True) if is_written)
        return Learned(callee, slots, (), written, leading=(grid,))

    def _slot(self, position: int, value: Any, words: Words) -> Slot:
        from tilewright.call.targets import Slot, open_bounds

        taker = self._takers[position]
        if isinstance(taker, PointerTaker):
            return Slot(TensorMeta((words[1],), taker.dtype), None, [f"{position}"])
        return Slot(Known(value), taker.type, bounds=open_bounds(taker.type.dtype, value, None))
