"""Kept kernels: what the programs of a kernel are found by in other processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tilewright import settings
from tilewright.backends.interface import find
from tilewright.frontend.kernels import Kernel
from tilewright.frontend.signature import metas_of
from tilewright.jit.calls import Call
from tilewright.jit.compiled import Compiled
from tilewright.jit.explanations import shown
from tilewright.keep.digest import function_bytes
from tilewright.keep.fingerprint import python
from tilewright.keep.manifest import listed
from tilewright.keep.programs import KeptPrograms
from tilewright.keep.reads import ReadSet
from tilewright.keep.relocate import FunctionSpans
from tilewright.programs import loading
from tilewright.programs.code_options import code_options

if TYPE_CHECKING:
    from tilewright.frontend.entries import Specialization
    from tilewright.programs.config import RunConfig
    from tilewright.programs.program import CompiledProgram


class KeptCall:
    """The program for one call of a kernel, between processes."""

    def __init__(self, kernel: Kernel, call: Call, config: RunConfig | None) -> None:
        self._kernel = kernel
        self._call = call
        options = code_options(config)
        self._programs = KeptPrograms(kernel.name, find(options[0]), [*settings.code_settings(), *options], loading)
        self._manifest = self._programs.key(self._known)

    def _known(self) -> list[object]:
        """Return what is known before anything is read: the kernel's own code, and its arguments."""
        arguments = [(name, _plain(one.kind), list(one.extents)) for name, one in self._call.described.items()]
        return [python(), function_bytes(self._kernel.function), arguments]

    def find(self) -> Compiled | None:
        """Return a program for the call whose reads all still hold, or None."""
        found = self._programs.find(self._manifest, lambda reads: FunctionSpans(reads.resolvers), self._kernel)
        if found is None:
            return None
        parameters = found.listed.parameters
        (entry,) = found.program.program.entries
        metas = metas_of(entry, parameters, self._call.given)
        return Compiled(found.program, parameters, metas, found.reads, found.listed.returns)

    def made(
        self, made: Specialization, reads: ReadSet, returns: tuple[str, ...] | None,
        compile: Callable[[], CompiledProgram],
    ) -> Compiled:  # fmt: skip
        """Return the program of a specialization, kept by now; RunOnlyError where nothing may be compiled."""
        arguments = ", ".join(f"{name}: {shown(one)}" for name, one in self._call.described.items())
        key = self._programs.key(lambda: _said(made))
        program = self._programs.made(key, FunctionSpans(reads.resolvers), compile, f" for ({arguments})")
        if key:
            self._programs.list(self._manifest, listed(key, made.parameters, returns, reads))
        return Compiled(program, made.parameters, made.metas, reads, returns)


def _said(made: Specialization) -> list[object]:
    """Return what a program says, and every function it was made from."""
    from tilewright.core.serialize import serialize

    return [serialize(made.program), list(made.syntax)]


def _plain(kind: object) -> object:
    """Return a kind with types by name, as another process spells them."""
    if isinstance(kind, type):
        return kind.__qualname__
    return tuple(map(_plain, kind)) if isinstance(kind, tuple) else kind  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
