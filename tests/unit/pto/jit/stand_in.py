"""A stand-in for lowering: kernels that copy, whatever their text says, called as lowered ones are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tilewright.language as pl
from tilewright.core.program import Program
from tilewright.pto.module import Func, Module
from tilewright.pto.types import Ptr, Scalar

LOWERED: list[tuple[str, tuple[int, ...] | None]] = []
"""The functions that were lowered, and how their pointers share memory."""


def lower(module: Module, func: Func, *, target: str, shared: tuple[int, ...] | None = None) -> Program:
    """Return a program that copies `grid` elements from the first pointer to the last.

    It starts at the element that the sum of all integer scalars says. Every pointer in between gets the same elements.
    """
    LOWERED.append((func.name, shared))
    lines = list(_separate(func) if shared is None else _together(func, shared))
    program = pl.parse("\n".join(lines))
    assert isinstance(program, Program)
    return program


def _head(func: Func, params: list[str], dynamic: list[str]) -> Iterator[str]:
    yield "import tilewright.language as pl"
    yield from (f'{name} = pl.dynamic("{name}")' for name in dynamic)
    yield "@pl.program"
    yield f"class {func.name}:"
    yield "    @pl.function(type=pl.FunctionType.Orchestration)"
    yield f"    def {func.name}(self, grid: pl.Scalar[pl.INDEX], {', '.join(params)}):"


def _scalars(func: Func) -> str:
    names = [a.name for a in func.arguments if isinstance(a.type, Scalar) and a.type.name == "index"]
    return " + ".join(["0", *names])


def _scalar(argument: Any) -> str:
    return f"{argument.name}: pl.Scalar[pl.{argument.type.dtype.symbol}]"


def _piece(name: str) -> str:
    """Return the parameters of a pointer into shared memory: its offset and its bytes."""
    return f"{name}: pl.Scalar[pl.INDEX], {name}_bytes: pl.Scalar[pl.INDEX]"


def _separate(func: Func) -> Iterator[str]:
    pointers = [a for a in func.arguments if isinstance(a.type, Ptr)]
    params = [
        f"{a.name}: pl.InOut[pl.Tensor[[N_{a.name}], pl.{a.type.element.dtype.symbol}]]"
        if isinstance(a.type, Ptr)
        else _scalar(a)
        for a in func.arguments
    ]
    yield from _head(func, params, [f"N_{a.name}" for a in pointers])
    yield "        for i in pl.range(grid):"
    for other in pointers[1:]:
        yield f"            pl.write({other.name}, [i], pl.read({pointers[0].name}, [i + {_scalars(func)}]))"
    yield "            pass" if len(pointers) < 2 else ""


def _together(func: Func, shared: tuple[int, ...]) -> Iterator[str]:
    pointers = [a for a in func.arguments if isinstance(a.type, Ptr)]
    groups = range(len(set(shared)))
    buffers = [f"buffer_{n}: pl.InOut[pl.Tensor[[N_{n}], pl.UINT8]]" for n in groups]
    params = [_piece(a.name) if isinstance(a.type, Ptr) else _scalar(a) for a in func.arguments]
    yield from _head(func, [*buffers, *params], [f"N_{n}" for n in groups])
    first = pointers[0]
    assert isinstance(first.type, Ptr)
    size = first.type.element.nbytes
    yield f"        for i in pl.range(grid * {size}):"
    source = f"pl.read(buffer_{shared[0]}, [{first.name} + i + ({_scalars(func)}) * {size}])"
    for other, group in zip(pointers[1:], shared[1:], strict=True):
        yield f"            pl.write(buffer_{group}, [{other.name} + i], {source})"
    yield "            pass" if len(pointers) < 2 else ""
