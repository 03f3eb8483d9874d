"""Specializations: a kernel for some constants, and what it says about itself."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tilewright.frontend.launchable import Launchable
from tilewright.named_tuples import NamedTuple
from tilewright.pto.declared import Declared
from tilewright.pto.module import Func, Module
from tilewright.pto.options import Options
from tilewright.pto.signature import Signature


class SpecializationKey(NamedTuple):
    """Everything that two compilations of a kernel may differ in; it means the same in every process."""

    kind: str
    """`source` or `traced`."""
    path: str | None
    digest: str
    """Of the text."""
    name: str
    entry: bool
    target: str
    kernel_kind: str | None
    backend: str
    mode: str
    insert_sync: bool | None
    abi: tuple[tuple[str, str, str], ...]
    constexprs: tuple[tuple[str, object], ...]


@dataclass(frozen=True, eq=False)
class Specialization:
    """What is compiled, and where it comes from."""

    declared: Declared
    options: Options
    signature: Signature
    key: SpecializationKey
    module: Module
    func: Func
    text: str
    label: str
    """What messages call its source."""


class Inspected(Launchable):
    """What can be asked of a kernel: of one that is compiled, or of one that compiles with its defaults to answer."""

    @property
    @abstractmethod
    def specialization(self) -> Specialization:
        """What it is compiled from."""

    @property
    def ir_function_name(self) -> str:
        """The symbol of the kernel in its module."""
        return self.specialization.func.name

    @property
    def specialization_key(self) -> SpecializationKey:
        """What this specialization is told from others by."""
        return self.specialization.key

    @property
    def constexpr_bindings(self) -> Mapping[str, object]:
        """The value of each constant it is compiled for."""
        return MappingProxyType(dict(self.specialization.key.constexprs))

    @property
    def text_digest(self) -> str:
        """What tells its text, as it is by now, from all others: of other kernels, or for another machine."""
        key = self.specialization.key
        return f"@{self.specialization.func.name} for {key.target}, {key.digest}"

    def mlir_text(self) -> str:
        """Return the PTO text: as it was written where the kernel has a source."""
        return self.specialization.text

    def mlir_module(self) -> Module:
        """Return the PTO module."""
        return self.specialization.module

    def verify(self) -> bool:
        """Return True; KernelError shows what is wrong with the module, where something is."""
        verify_module(self.mlir_module(), self.specialization.options.target)
        return True

    def emit(self, path: str | os.PathLike[str]) -> Path:
        """Write the PTO text to a file and return its path."""
        text, written = self.mlir_text(), Path(path)
        written.parent.mkdir(parents=True, exist_ok=True)
        written.write_text(text, encoding="utf-8", newline="")
        return written

    def build_metadata(self) -> dict[str, object]:
        """Return how it is compiled: target, backend, level, synchronization, source and parameters."""
        made = self.specialization
        return {
            "name": made.declared.name,
            "ir_function_name": made.func.name,
            **made.options.metadata(),
            "source": made.label,
            "source_kind": made.key.kind,
            "digest": made.key.digest,
            "parameters": {p.name: str(p.annotation) for p in made.signature.runtime},
            "constexprs": dict(made.key.constexprs),
        }

    def __str__(self) -> str:
        return self.mlir_text()


def verify_module(module: Module, target: str) -> None:
    """Raise KernelError for a module that breaks a rule, of `target` where it names no architecture."""
    from tilewright.pto.verify import verify

    verify(module, target)


def merge_jit_modules(*handles: Inspected) -> Module:
    """Return a module with the module of each kernel inside it; ValueError where two kernels have one name."""
    if not handles:
        raise ValueError("pto.merge_jit_modules takes at least one kernel")
    merged: dict[str, Module] = {}
    for handle in handles:
        given: Any = handle
        if not isinstance(given, Inspected):
            raise TypeError(f"pto.merge_jit_modules takes @pto.jit kernels, got {type(given).__name__}")
        name, module = handle.ir_function_name, handle.mlir_module()
        if merged.setdefault(name, module) is not module:
            raise ValueError(f"pto.merge_jit_modules got two kernels called `{name}`: give one another name")
    from tilewright.pto.text.printer import print_module  # it knows every op

    whole = Module(list(merged.values()))
    whole.text = print_module(whole)
    return whole
