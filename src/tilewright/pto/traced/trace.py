"""Tracing: a Python function as a PTO module, in one pass over its text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import FunctionType

from tilewright.errors import KernelError
from tilewright.frontend.names import Resolver
from tilewright.pto.module import Attribute, Enumerated, Module
from tilewright.pto.traced import directives, handles, pipes, scalar_module, simt, structs, vectors, views
from tilewright.pto.traced.body_builder import BodyBuilder
from tilewright.pto.traced.callees import traced
from tilewright.pto.traced.tracer import Program
from tilewright.pto.types import Type

HANDLERS = (directives, handles, pipes, scalar_module, simt, structs, vectors, views)
"""The files that say what calls mean whose form does not."""


@dataclass(frozen=True)
class Traced:
    """A traced kernel: its module, and what its text read from outside itself."""

    module: Module
    resolvers: tuple[Resolver, ...]
    """One for each function that was read, the kernel's own first; `resolver.leaves()` are the values it used."""


def trace(
    function: FunctionType,
    parameters: Sequence[tuple[str, Type]],
    constants: Mapping[str, object] | None = None,
    *,
    name: str | None = None,
    target: str = "a5",
    backend: str = "vpto",
    kernel_kind: str | None = None,
    entry: bool = True,
) -> Traced:
    """Return the module that a function's body describes; KernelError at the author's own line where it cannot be.

    `parameters` are those that a launch passes, with their types; `constants` the values of the others. The body is
    read and never run. A module has the target in its attributes, and its entry is marked as the backend has it.
    """
    symbol = name or function.__name__
    program = Program(target)
    program.symbol(symbol)
    try:
        func = traced(BodyBuilder.of(function, program), symbol, dict(parameters), constants)
    except KernelError as error:
        error.function = error.function or symbol
        raise
    if entry:
        func.attributes = {"pto.kernel" if backend == "vpto" else "pto.entry": None}
    resolvers = tuple(program.resolvers.values())
    for resolver in resolvers:
        resolver.close()
    module = Module([*program.funcs.values(), func], _attributes(target, kernel_kind), span=func.span)
    module.source = func.span.source
    return Traced(module, resolvers)


def _attributes(target: str, kernel_kind: str | None) -> dict[str, Attribute]:
    attributes: dict[str, Attribute] = {"pto.target_arch": target}
    if kernel_kind is not None:
        attributes["pto.kernel_kind"] = Enumerated("kernel_kind", kernel_kind)
    return attributes
