"""Units: a program being written for a target, as the functions in it see it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from tilewright.backends.cpu.emit.arena import Arena
from tilewright.backends.cpu.emit.durations import WORTH, Durations
from tilewright.backends.cpu.emit.handlers import Handlers
from tilewright.backends.cpu.emit.signature import Emitted, Signature
from tilewright.backends.cpu.emit.work import Estimate
from tilewright.backends.interface import Error
from tilewright.core.program import Program
from tilewright.errors import UnsupportedFeatureError
from tilewright.forks import computed_once
from tilewright.native.llvm import Module, spelled
from tilewright.native.target import Target
from tilewright.passes.aliases import Footprints
from tilewright.passes.fusion import Fusion
from tilewright.passes.groups import Sides, sides_of
from tilewright.passes.identity import returned_parameters
from tilewright.records import mutable
from tilewright.source import Span

OWN_SIZE = "ARENA-SIZE-OWN"
"""Stands for the size of a function's own arena until it has been written."""

LARGEST = 1 << 48
"""No machine has more bytes."""


@mutable
class Unit:
    """A program being written: its module, its errors, and the functions that are there already."""

    program: Program
    target: Target
    checked: bool = True
    """Whether the running program checks itself; where it does not, what would fail has no meaning."""
    polled: bool = True
    """Whether loops end once the program has failed or was interrupted."""
    worth: int = WORTH
    """How many nanoseconds turns take, at least, that other threads have a share in."""
    located: bool = False
    """Whether instructions say which line they were made for."""
    module: Module = field(init=False)
    emitted: dict[tuple[str, Signature], Emitted] = field(default_factory=dict[tuple[str, Signature], Emitted])
    errors: list[Error] = field(default_factory=list[Error])
    plans: list[Fusion] = field(default_factory=list[Fusion])
    """Which ops of its functions share a loop, in the order they were written."""
    arenas: list[tuple[str, Arena]] = field(default_factory=list[tuple[str, Arena]])
    """The memory of each function that is written, by its name."""
    names: int = 0
    handlers: Handlers[Any] | None = None
    """What emits its statements and ops, where that is not what emits those of a processor's programs."""

    def __post_init__(self) -> None:
        """Start an empty module."""
        self.module = Module(
            fused=self.target.has_fma, converts_half=self.target.has_f16c, scales=self.target.has("avx512f"),
            registers=self.target.vector_registers,
        )  # fmt: skip
        if self.located:
            from tilewright.native.places import Places  # which only those need who look

            self.module.places = Places()

    @computed_once
    def work(self) -> Estimate:
        """How much its functions do."""
        return Estimate(self.program)

    @computed_once
    def durations(self) -> Durations:
        """How long its functions take."""
        return Durations(self.program)

    @computed_once
    def footprints(self) -> Footprints:
        """What its functions do to the tensors they are given."""
        return Footprints(self.program)

    @computed_once
    def returned(self) -> dict[str, tuple[int | None, ...]]:
        """For each function, which parameter each of its results is."""
        return dict(returned_parameters(self.program.function_list))

    @computed_once
    def sides(self) -> Mapping[str, Sides]:
        """What runs at the same time in each group."""
        return sides_of(self.program)

    def note(self, message: str, span: Span, function: str = "", exact: str = "") -> int:
        """Return the number under which an error is reported: of a function, and with numbers where it names some."""
        self.errors.append(Error(message, span, function, exact))
        return len(self.errors)

    def symbol(self, prefix: str, function: str) -> str:
        """Return a new name for code of a function."""
        self.names += 1
        return f"{prefix}{self.names}_{spelled(function)}"

    def room(self, arena: Arena, span: Span) -> int:
        """Return how many bytes a function and what it calls need for their tiles."""
        whole = arena.size + arena.callees
        if whole > LARGEST:
            raise UnsupportedFeatureError(f"no machine holds tiles of {whole} bytes", spans=[span])
        return whole

    def settle(self, arena: Arena, span: Span) -> int:
        """Fill in where the arenas of callees begin, known only once a function is written; return its whole room."""
        self.module.functions[-1] = self.module.functions[-1].replace(OWN_SIZE, str(arena.size))
        if arena.plan is not None:
            self.arenas.append((_name_of(self.module.functions[-1]), arena))
        return self.room(arena, span)


def _name_of(function: str) -> str:
    """Return the name that a function's text begins with."""
    return function.partition("@")[2].partition("(")[0]
