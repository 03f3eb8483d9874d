"""Chips: the functions that a program has its ranks run, compiled when they are first asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import TYPE_CHECKING

from tilewright.backends.host import HostProgram
from tilewright.core.program import Function, Program
from tilewright.core.serialize import serialize
from tilewright.forks import computed_once
from tilewright.interpret.hosts import Plan, chip_program, dispatched
from tilewright.passes.aliases import Footprints
from tilewright.programs.distributed.in_place import InPlace, in_place
from tilewright.programs.distributed.spread import spread

if TYPE_CHECKING:
    from tilewright.programs.distributed.overlapped import Overlapped
    from tilewright.programs.program import CompiledProgram

Compile = Callable[["Chips", str, bool], "CompiledProgram"]
"""What makes a function that is dispatched, to distant ranks perhaps."""


class Chips:
    """What ranks run: what a program's hosts dispatch, and what they run besides where they share in reductions."""

    def __init__(self, program: Program, compile: Compile) -> None:
        self.here: dict[str, CompiledProgram] = {}
        self.distant: dict[str, CompiledProgram] = {}
        """The same functions for ranks that share no memory."""
        self._program = program
        self._compile = compile
        self._besides: dict[str, Function] = {}
        self._programs: dict[str, Program] = {}
        self._data: dict[str, bytes] = {}
        self.footprints = Footprints(program)
        """What all of them do to their parameters."""

    def own(self, is_distant: bool = False) -> Mapping[str, CompiledProgram]:
        """Return those of the program's own functions that are compiled."""
        chips = self.distant if is_distant else self.here
        return {name: chip for name, chip in chips.items() if name not in self._besides}

    def compiled(self, name: str, is_distant: bool = False) -> CompiledProgram:
        """Return a function that is dispatched, compiled when that is first asked for."""
        chips = self.distant if is_distant else self.here
        if name not in chips:
            chips[name] = self._compile(self, name, is_distant)
        return chips[name]

    def program(self, name: str) -> Program:
        """Return a function that is dispatched as a program, with all that it calls."""
        if name not in self._programs:
            self._programs[name] = chip_program(self._extended(), name)
        return self._programs[name]

    def data(self, name: str) -> bytes:
        """Return that program as bytes, the same in all processes that have it."""
        if name not in self._data:
            self._data[name] = serialize(self.program(name))
        return self._data[name]

    @computed_once
    def version(self) -> str:
        """What tells programs that dispatch other functions from this one."""
        found = blake2b(digest_size=8)
        for name in dispatched(self._program):
            found.update(self.data(name))
        return found.hexdigest()

    def function(self, name: str) -> Function:
        """Return what is dispatched by a name."""
        return self._program[name]

    def native(self, name: str, is_distant: bool = False) -> tuple[HostProgram, Function]:
        """Return the code of a function that is dispatched, and the function."""
        chip = self.compiled(name, is_distant)
        assert chip.native is not None
        return chip.native, chip.declared[name]

    def shared(self, plan: Plan) -> tuple[Plan, InPlace]:
        """Return a plan for ranks that share memory, and which of its buffers need none of their own."""
        made = spread(plan, self._program)
        self._note(made.program)
        chosen = in_place(made.plan, self._extended(), self.footprints)
        chosen.order(made.plan)
        return made.plan, chosen

    def apart(self, plan: Plan, pieces: int) -> tuple[Overlapped, InPlace]:
        """Return a plan for ranks that share no memory, and which gathers could be read where a rank has its row."""
        from tilewright.programs.distributed.overlapped import overlapped

        made = overlapped(plan, self._program, pieces)
        self._note(made.program)
        return made, in_place(plan, self._program, self.footprints)

    def _note(self, program: Program) -> None:
        """Remember what ranks run besides."""
        own = self._program.function_names
        new = {each.name: each for each in program.function_list if each.name not in {*own, *self._besides}}
        if new:
            self._besides |= new
            self.footprints = Footprints(self._extended())

    def _extended(self) -> Program:
        """Return the program, and what ranks run besides."""
        return self._program.with_functions([*self._program.function_list, *self._besides.values()])
