"""Files of kernels: the program that a Python file defines, without anybody calling it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tilewright.language as pl
from tilewright.core.program import Program
from tilewright.core.types import ScalarType
from tilewright.errors import AnnotationError, ResultCountError
from tilewright.frontend.kernels import Declared, KernelKind, KernelParameter
from tilewright.frontend.names import Resolver
from tilewright.frontend.programs import as_program
from tilewright.frontend.text import executed, only_result
from tilewright.tools.naming import check_known


def program_in(path: str, kernel: str | None = None) -> Program:
    """Return the one program of a file, or what the annotations of one of its `@pl.jit` kernels make of it."""
    names = {"pl": pl}
    module, source = executed(Path(path).read_text(encoding="utf-8"), names, path)
    kernels = [value for value in module.values() if _is_entry(value, module)]
    if not kernels and kernel is None:
        return as_program(only_result(module, source, names))
    chosen = _chosen(kernels, kernel)
    return chosen.specialize(**_open_scalars(chosen)).program


def _is_entry(value: object, module: Mapping[str, Any]) -> bool:
    """Return whether a value is a kernel that the file itself defines, for callers to start."""
    return isinstance(value, pl.JITFunction) and value.kind is KernelKind.ENTRY and value.function.__globals__ is module


def _chosen(kernels: Sequence[pl.JITFunction], name: str | None) -> pl.JITFunction:
    names = [kernel.name for kernel in kernels]
    if name is not None:
        check_known(name, names, "@pl.jit kernel", f"the file has {', '.join(names) or 'none'}")
        return kernels[names.index(name)]
    if len(kernels) > 1:
        message, second = f"Multiple @pl.jit kernels found: {', '.join(names)}", kernels[1].captured
        raise ResultCountError(message, spans=[second.span(second.node)], help=f"pick one: --kernel {names[0]}")
    return kernels[0]


def _open_scalars(kernel: pl.JITFunction) -> dict[str, Any]:
    """Return a value for every parameter that needs one: scalars stay open; AnnotationError for what nothing tells."""
    declared = zip(kernel.parameters, kernel.declared(Resolver.of(kernel.function)), strict=True)
    needed = [(parameter, says) for parameter, says in declared if not parameter.is_optional]
    for parameter, says in needed:
        if says.type is None:
            raise _untold(kernel, parameter, says)
    return {parameter.name: pl.RUNTIME for parameter, says in needed if isinstance(says.type, ScalarType)}


def _untold(kernel: pl.JITFunction, parameter: KernelParameter, says: Declared) -> AnnotationError:
    what, example = "the type", "pl.FP32"
    if says.is_tensor:
        what, example = "the shape and dtype", 'pl.Tensor[[M, 128], pl.FP32] with M = pl.dynamic("M")'
    error = AnnotationError(
        f"only a call tells {what} of `{parameter.name}`",
        spans=[parameter.span],
        help=f"annotate it, as in {example}, or print {kernel.name}.lower(...) in Python",
    )
    error.function = kernel.name
    return error
