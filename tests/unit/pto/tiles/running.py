"""Running: a PTO function on a target, between guards that must survive."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy

from tilewright import ir
from tilewright.core.program import Program
from tilewright.pto.lower import lower
from tilewright.pto.module import Module
from tilewright.pto.text.parser import parse
from tilewright.pto.verify import verify

np = cast("Any", numpy)
Array = Any

KERNELS = Path(__file__).parent / "kernels"
SENTINEL = 0xA5
GUARD = 256
"""Bytes in front of and behind every buffer that no kernel may write."""


def blank(shape: int | tuple[int, ...], dtype: Any) -> Array:
    """Return an array of sentinel bytes."""
    count = int(np.prod(shape)) * np.dtype(dtype).itemsize
    return np.full(count, SENTINEL, np.uint8).view(dtype).reshape(shape)


def read(text: str, name: str = "kernel.pto") -> Module:
    """Return a module that the verifier accepts."""
    module = parse(text, name)
    verify(module, is_portable=True)
    return module


def run(
    module: Module, entry: str, platform: str, grid: int, arguments: Sequence[Any], target: str = "a5"
) -> list[Array]:
    """Return what the arrays among some arguments hold after a launch; the arguments stay as they are."""
    return launched(lowered(module, entry, target), entry, platform, grid, arguments)


def lowered(module: Module, entry: str, target: str = "a5") -> Program:
    """Return a function of a module as a program of the language."""
    return lower(module, next(f for f in module.funcs() if f.name == entry), target=target)


def launched(source: Program, entry: str, platform: str, grid: int, arguments: Sequence[Any]) -> list[Array]:
    """Return the same for a program that was lowered before."""
    program = ir.compile(source, platform=platform)
    pairs = {i: _guarded(a) for i, a in enumerate(arguments) if is_array(a)}
    program(grid, *(pairs[i][1] if i in pairs else a for i, a in enumerate(arguments)))
    for whole, _ in pairs.values():
        edges = (whole[:GUARD], whole[-GUARD:])
        assert all((edge == SENTINEL).all() for edge in edges), f"{entry} on {platform} writes outside its buffers"
    return [inner.copy() for _, inner in pairs.values()]


def is_array(value: object) -> bool:
    return isinstance(value, numpy.ndarray)


def _guarded(array: Array) -> tuple[Array, Array]:
    flat = array.reshape(-1)
    whole = np.full(flat.nbytes + 2 * GUARD, SENTINEL, np.uint8)
    inner = whole[GUARD : GUARD + flat.nbytes].view(flat.dtype)
    inner[...] = flat
    return whole, inner
