"""Compiled kernels: what `handle.compile()` returns."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from tilewright.forks import computed_once
from tilewright.frontend.brief import brief
from tilewright.pto.declared import Declared
from tilewright.pto.grids import launch_spec
from tilewright.pto.module import Func, Module
from tilewright.pto.options import Options
from tilewright.pto.signature import Signature
from tilewright.pto.specialization import SpecializationKey

if TYPE_CHECKING:
    from tilewright.core.program import Program
    from tilewright.jit.variants import Store
    from tilewright.programs.program import CompiledProgram
    from tilewright.pto.launch import Launcher
    from tilewright.pto.programs import Shared


class CompiledKernelHandle:
    """One specialization of a kernel, launched as `compiled[grid, stream](*args)`.

    It keeps its code whatever becomes of the file or the function it came from.
    """

    def __init__(
        self,
        declared: Declared,
        options: Options,
        signature: Signature,
        key: SpecializationKey,
        module: Module,
        func: Func,
        text: str,
        label: str,
        store: Store[CompiledProgram],
    ) -> None:
        self._declared = declared
        self._options = options
        self._signature = signature
        self._key = key
        self._module = module
        self._func = func
        self._text = text
        self._label = label
        from tilewright.pto.programs import Programs  # nobody who only declares kernels pays for it

        self.programs = Programs(module, func, options.target, key, store)

    @brief
    def __getitem__(self, spec: Any) -> Callable[..., None]:
        """Return what launches the kernel on `[grid, stream]`."""
        return self.launcher.on(launch_spec(self._declared, spec))

    @computed_once
    def launcher(self) -> Launcher:
        """What launches the kernel, called with the number of blocks and the arguments."""
        from tilewright.pto.launch import Launcher

        return Launcher(self._declared, self._signature, self.programs)

    # looking at it

    @property
    def ir_function_name(self) -> str:
        """The symbol of the kernel in its module."""
        return self._func.name

    @property
    def specialization_key(self) -> SpecializationKey:
        """What this specialization is told from others by."""
        return self._key

    @property
    def constexpr_bindings(self) -> Mapping[str, object]:
        """The value of each constant it was compiled for."""
        return MappingProxyType(dict(self._key.constexprs))

    def mlir_text(self) -> str:
        """Return the PTO text: as it was written where the kernel has a source."""
        return self._text

    def mlir_module(self) -> Module:
        """Return the PTO module."""
        return self._module

    def verify(self) -> bool:
        """Return True; KernelError shows what is wrong with the module, where something is."""
        verify_module(self._module)
        return True

    def emit(self, path: str | os.PathLike[str]) -> Path:
        """Write the PTO text to a file and return its path."""
        written = Path(path)
        written.parent.mkdir(parents=True, exist_ok=True)
        written.write_text(self._text, encoding="utf-8", newline="")
        return written

    def build_metadata(self) -> dict[str, object]:
        """Return how it was compiled: target, backend, level, synchronization, source and parameters."""
        return {
            "name": self._declared.name,
            "ir_function_name": self.ir_function_name,
            **self._options.metadata(),
            "source": self._label,
            "source_kind": self._key.kind,
            "digest": self._key.digest,
            "parameters": {p.name: str(p.annotation) for p in self._signature.runtime},
            "constexprs": dict(self._key.constexprs),
        }

    def lowered(self, shared: Shared = None) -> Program:
        """Return the kernel as a program of the tile IR, for pointers that share memory as `shared` says."""
        return self.programs.lowered(shared)

    def program(self, shared: Shared = None) -> CompiledProgram:
        """Return the native program, for pointers that share memory as `shared` says, with all its stages."""
        return self.programs.get(shared)

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        constants = "".join(f", {name}={value!r}" for name, value in self._key.constexprs)
        return f"CompiledKernelHandle({self._declared.name!r}{constants}, {self._key.digest[:12]})"


def verify_module(module: Module) -> None:
    """Raise KernelError for a module that breaks a rule."""
    from tilewright.pto.verify import verify

    verify(module)
