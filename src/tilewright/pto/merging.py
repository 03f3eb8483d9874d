"""Merging: the modules of several kernels as one."""

from __future__ import annotations

from typing import Any

from tilewright.pto.compiled import CompiledKernelHandle
from tilewright.pto.handle import KernelHandle
from tilewright.pto.module import Module


def merge_jit_modules(*handles: KernelHandle | CompiledKernelHandle) -> Module:
    """Return a module with the module of each kernel inside it; ValueError where two kernels have one name."""
    if not handles:
        raise ValueError("pto.merge_jit_modules takes at least one kernel")
    merged: dict[str, Module] = {}
    for handle in handles:
        given: Any = handle
        if not isinstance(given, (KernelHandle, CompiledKernelHandle)):
            raise TypeError(f"pto.merge_jit_modules takes @pto.jit kernels, got {type(given).__name__}")
        name, module = handle.ir_function_name, handle.mlir_module()
        if merged.setdefault(name, module) is not module:
            raise ValueError(f"pto.merge_jit_modules got two kernels called `{name}`: give one another name")
    return Module(list(merged.values()))
