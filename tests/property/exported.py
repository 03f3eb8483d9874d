"""Exported text in tests: what `as_pto` writes, read back, held to lint, and run."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import tilewright.language as pl
from tilewright import ir, pto
from tilewright.call.argument import is_array
from tilewright.core.expr import Symbol
from tilewright.core.program import Function
from tilewright.core.types import TensorType
from tilewright.frontend.programs import as_program
from tilewright.programs.pto_text.export import as_pto
from tilewright.pto.lint import lint
from tilewright.pto.lower import lower
from tilewright.pto.types import Ptr
from tilewright.pto.verify import verify
from tilewright.runtime import RunConfig

ROOM = 1 << 20
"""How many elements are brought for each tensor that a program makes."""


def run_exported(
    text: str,
    name: str,
    arguments: Sequence[Any],
    extents: Mapping[str, int],
    platform: str = "interpret",
    grid: int = 1,
) -> None:
    """Run a function of a text on arrays, which change in place, and numbers; fail where lint has a remark."""
    module = pto.parse(text)
    verify(module)
    assert not lint(module), (lint(module)[0].message, text)
    func = next(func for func in module.funcs() if func.name == name)
    more: list[Any] = []
    for argument in func.arguments[len(arguments) :]:
        type_ = argument.type
        is_room = isinstance(type_, Ptr)
        more.append(np.zeros(ROOM, type_.element.dtype.numpy) if is_room else extents[argument.name.removeprefix("_")])
    flat = [_flat(value) for value in arguments]
    ir.compile(lower(module, func, target="a5"), platform=platform)(grid, *flat, *more)


def _flat(value: Any) -> Any:
    """Return an array as memory holds it, conditions as bytes."""
    if not hasattr(value, "reshape"):
        return value
    return value.reshape(-1).view(np.int8) if value.dtype == np.bool_ else value.reshape(-1)


def extents_of(entry: Function, arguments: Sequence[Any]) -> dict[str, int]:
    """Return the extents that only a call knows, by name."""
    pairs = zip(entry.params, arguments, strict=True)
    tensors = [(p.type, a.shape) for p, a in pairs if isinstance(p.type, TensorType) and is_array(a)]
    both = [pair for type_, shape in tensors for pair in zip(type_.shape, shape, strict=True)]
    return {extent.name: size for extent, size in both if isinstance(extent, Symbol)}


def read_back(kernel: Any, made: Callable[[], list[Any]], platform: str) -> tuple[list[Any], list[Any]]:
    """Return arguments as a kernel leaves them on a platform, and as its PTO text does there."""
    wanted, found = made(), made()
    text = kernel.compile(*found).as_pto()
    kernel(*wanted, config=RunConfig(platform=platform))
    entry = kernel.specialize(*found).program.entries[-1]
    run_exported(text, entry.name, found, extents_of(entry, found), platform)
    return wanted, found


def read_back_text(head: str, lines: str, made: Callable[[], list[Any]], platform: str) -> tuple[list[Any], list[Any]]:
    """Return arguments as a kernel of some parameters and lines leaves them on a platform, and as its PTO text does."""
    body = textwrap.indent(textwrap.dedent(lines).strip(), "    ")
    text = f"@pl.function(type=pl.FunctionType.InCore)\ndef main({head}):\n{body}\n    return out\n"
    program = as_program(pl.parse(text))
    wanted, found = made(), made()
    ir.compile(program, platform=platform)(*wanted)
    run_exported(as_pto(program), "main", found, {}, platform)
    return wanted, found
