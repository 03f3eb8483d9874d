# pyright: reportUnusedFunction=false
"""Inside kernels: what tests of the PTO family look at there, by the names they use."""

from __future__ import annotations

from collections.abc import Iterator
from types import FunctionType as PythonFunction
from typing import TYPE_CHECKING

from tilewright.core.enums import Level
from tilewright.frontend.kernels import Kernel, KernelKind

if TYPE_CHECKING:
    from tilewright.jit.session import Session
    from tilewright.programs.program import CompiledProgram


class Inside(Kernel):
    """A kernel under names that are not ours to keep: nothing here is public."""

    @property
    def _session(self) -> Session:
        raise NotImplementedError

    @property
    def _func(self) -> PythonFunction:
        return self.function

    @property
    def _func_type(self) -> str:
        return self.kind.value

    @property
    def _level(self) -> Level | None:
        return self.level

    @property
    def _auto_scope(self) -> bool:
        return self.auto_scope

    @property
    def _cache(self) -> dict[object, CompiledProgram]:
        """The programs compiled so far, each by what a call is found by."""
        store = self._session.store
        return {
            (kinds, dynamic, static, number): compiled.program
            for kinds, variants in list(store.variants.items())
            for dynamic, programs in list(variants.groups.items())
            for static, found in list(programs.items())
            for number, compiled in enumerate(found)
        }

    def _param_names(self) -> list[str]:
        return [parameter.name for parameter in self.parameters]

    def _get_deps(self) -> list[Kernel]:
        """Return the kernels that this one calls by name, and those that they call, callees first."""
        found: list[Kernel] = []
        _collect(self, found, [self])
        return found


def _collect(kernel: Kernel, found: list[Kernel], around: list[Kernel]) -> None:
    for callee in _called(kernel.function):
        if not any(callee is known for known in (*found, *around)):
            _collect(callee, found, [*around, callee])
            found.append(callee)


def _called(function: PythonFunction) -> Iterator[Kernel]:
    """Yield the kernels that a function names, where it finds them: in its closure first."""
    code, cells = function.__code__, function.__closure__ or ()
    closure = {name: cell.cell_contents for name, cell in zip(code.co_freevars, cells, strict=False)}
    named = {name: function.__globals__.get(name) for name in code.co_names} | closure
    yield from (value for value in named.values() if isinstance(value, Kernel) and value.kind is not KernelKind.ENTRY)
