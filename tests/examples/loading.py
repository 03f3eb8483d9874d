"""The examples, loaded: what every file of `examples/` holds."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias, cast

import torch

import tilewright.language as pl
from tilewright import ir
from tilewright.core.program import Program
from tilewright.frontend.kernels import KernelKind
from tilewright.runtime import CompiledProgram, RunConfig

EXAMPLES = Path(__file__).parents[2] / "examples"

Kernel: TypeAlias = "pl.JITFunction | Program"
"""What a file shows: `@pl.jit` functions, or programs written out as classes."""


@dataclass(frozen=True)
class Example:
    """One file of `examples/`: every kernel in it computes the same `reference`."""

    name: str
    kernels: dict[str, Kernel]
    make_inputs: Callable[[int], tuple[Any, ...]]
    reference: Callable[..., Any]
    main: Callable[[], None]

    def expected(self, inputs: tuple[Any, ...]) -> tuple[torch.Tensor, ...]:
        return several(self.reference(*inputs))

    def jit(self, name: str) -> pl.JITFunction:
        """Return one of its `@pl.jit` functions."""
        kernel = self.kernels[name]
        assert isinstance(kernel, pl.JITFunction)
        return kernel

    def program(self, kernel: Kernel) -> Program:
        """Return a kernel's program; that of a `@pl.jit` function is made for the first inputs."""
        return kernel if isinstance(kernel, Program) else kernel.specialize(*self.make_inputs(0)).program

    def compiled(self, kernel: Kernel, platform: str) -> CompiledProgram:
        """Return a kernel compiled; a `@pl.jit` function for the first inputs."""
        if isinstance(kernel, Program):
            return ir.compile(kernel, platform=platform)
        return kernel.compile(*self.make_inputs(0), config=RunConfig(platform=platform))


def load(path: Path) -> Example:
    spec = importlib.util.spec_from_file_location(f"examples_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    kernels = {name: value for name, value in vars(module).items() if _is_kernel(value)}
    return Example(path.stem, kernels, module.make_inputs, module.reference, module.main)


def _is_kernel(value: object) -> bool:
    return isinstance(value, Program) or (isinstance(value, pl.JITFunction) and value.kind is KernelKind.ENTRY)


def several(result: object) -> tuple[Any, ...]:
    return cast("tuple[Any, ...]", result) if isinstance(result, tuple) else (result,)


def on(platform: str, kernel: Kernel) -> Callable[..., Any]:
    """Return a kernel to be called with tensors."""
    if isinstance(kernel, Program):
        return ir.compile(kernel, platform=platform)
    return partial(kernel, config=RunConfig(platform=platform))


LOADED = {path.stem: load(path) for path in sorted(EXAMPLES.glob("*.py"))}
