"""Writes: what a kernel does to its parameters, and whether its annotations say so."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from tilewright.core.enums import ParamDirection
from tilewright.core.types import TensorType
from tilewright.errors import DroppedWriteWarning, WrittenInputWarning
from tilewright.frontend.kernels import Kernel
from tilewright.frontend.messages import caution
from tilewright.frontend.signature import TensorMeta
from tilewright.passes.aliases import Footprints
from tilewright.source import Span

if TYPE_CHECKING:
    from tilewright.frontend.entries import Specialization


def warn_of_writes(kernel: Kernel, made: Specialization) -> None:
    """Warn of inputs that are written, and of outputs that are not, of those whose shapes callers have."""
    function, written = made.program[kernel.name], Footprints(made.program)[kernel.name].writes
    sides = zip(made.parameters, function.params, function.param_directions, strict=True)
    for position, (name, param, way) in enumerate(sides):
        if not isinstance(made.metas.get(name), TensorMeta) or _is_empty(param.type):
            continue
        if way is ParamDirection.In and position in written:
            _warn_of_input(kernel, name, param.span)
        if way is ParamDirection.Out and position not in written and not _is_told_of(kernel, name):
            _warn_of_output(kernel, name, param.span)


def _is_empty(type_: object) -> bool:
    """Return whether there is nothing to write."""
    return not isinstance(type_, TensorType) or 0 in type_.shape


def _is_told_of(kernel: Kernel, name: str) -> bool:
    """Return whether a kernel's text binds a name, which the front end tells of, or uses it, to write it at times."""
    asked: set[ast.AST] = set()
    for node in ast.walk(kernel.captured.node):
        if isinstance(node, (ast.Return, ast.Attribute)) and node.value is not None:
            asked.add(node.value)
    names = (node for node in ast.walk(kernel.captured.node) if isinstance(node, ast.Name) and node.id == name)
    return any(node not in asked for node in names)


def _warn_of_input(kernel: Kernel, name: str, span: Span) -> None:
    message = f"`{name}` is an input, and the kernel writes it: the caller's tensor changes"
    help = f"say so: annotate `{name}: pl.InOut[...]`, or pl.Out[...] where nothing of it is read"
    caution(WrittenInputWarning, kernel.name, message, [span], help)()


def _warn_of_output(kernel: Kernel, name: str, span: Span) -> None:
    message = f"`{name}` is an output, and nothing writes it: the caller's buffer stays as it was"
    help = f"write it with pl.store(..., {name}) or `{name}[:] = ...`"
    caution(DroppedWriteWarning, kernel.name, message, [span], help)()
