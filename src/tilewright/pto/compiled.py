"""Compiled kernels: what `handle.compile()` returns."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

from tilewright.call.launch_items import NumberedItems
from tilewright.forks import computed_once
from tilewright.frontend.references import Uncopied
from tilewright.frontend.tracebacks import brief
from tilewright.pto.grids import launch_spec
from tilewright.pto.specialization import Inspected, Specialization

if TYPE_CHECKING:
    from tilewright.call.guards import Guards
    from tilewright.core.program import Program
    from tilewright.jit.variants import Store
    from tilewright.programs.program import CompiledProgram
    from tilewright.pto.launch import Launcher
    from tilewright.pto.programs import Shared


class CompiledKernelHandle(Inspected, Uncopied):
    """One specialization of a kernel, launched as `compiled[grid, stream](*args)`.

    It keeps its code whatever becomes of the file or the function it came from.
    """

    def __init__(self, specialization: Specialization, store: Store[CompiledProgram]) -> None:
        from tilewright.pto.programs import Programs  # nobody who only declares kernels pays for it

        self._specialization = made = specialization
        self._known = NumberedItems(self, partial(CompiledKernelHandle.__getitem__, self))
        self.programs = Programs(made.module, made.func, made.options.target, made.key, store)

    @property
    def specialization(self) -> Specialization:
        """What it was compiled from."""
        return self._specialization

    @brief
    def __getitem__(self, spec: Any) -> Callable[..., None]:
        """Return what launches the kernel on `[grid, stream]`."""
        found = self._known.find(spec)
        if found is None:
            grid = launch_spec(self._specialization.declared, spec)
            self._known.put(grid, found := self.launcher.on(grid))
        return found

    @computed_once
    def launcher(self) -> Launcher:
        """What launches the kernel, called with the number of blocks and the arguments."""
        from tilewright.pto.launch import Launcher

        return Launcher(self._specialization.declared, self._specialization.signature, self.programs)

    def guards(self) -> Guards:
        """Return no test at all: its text is what it was."""
        from tilewright.call.guards import Guards

        return Guards()

    def for_grids(self, are_apart: bool) -> Program:
        """Return the kernel as a function to be written out, which takes a number of blocks and the arguments."""
        from tilewright.pto.templates import template_of

        return template_of(self.lowered() if are_apart else self.programs.meeting())

    def lowered(self, shared: Shared = None) -> Program:
        """Return the kernel as a program of the tile IR, for pointers that share memory as `shared` says."""
        return self.programs.lowered(shared)

    def program(self, shared: Shared = None) -> CompiledProgram:
        """Return the native program, for pointers that share memory as `shared` says, with all its stages."""
        return self.programs.get(shared)

    def __reduce__(self) -> NoReturn:
        """Raise TypeError: code is found again by compiling the kernel."""
        name = self.specialization_key.name
        raise TypeError(f"{self!r} cannot be pickled: pickle the kernel `{name}` itself, and compile it there")

    def __repr__(self) -> str:
        key = self.specialization_key
        constants = "".join(f", {name}={value!r}" for name, value in key.constexprs)
        return f"CompiledKernelHandle({key.name!r}{constants}, {key.digest[:12]})"
