"""Kernels as a few lines of text, for what a type checker would have its own opinion of."""

from __future__ import annotations

import linecache
from itertools import count
from math import prod
from textwrap import dedent, indent
from typing import Any

import numpy as np

import tilewright.language as pl

_NUMBERS = count()
Array = np.ndarray[Any, Any]


def jitted(body: str, parameters: str = "x: pl.Tensor, out: pl.Out[pl.Tensor]", **names: Any) -> Any:
    """Return the `@pl.jit` kernel of some lines, which see `pl`, `np` and `names`."""
    text = f"@pl.jit\ndef kernel({parameters}):\n{indent(dedent(body).strip(), '    ')}\n    return out\n"
    filename = f"<kernel {next(_NUMBERS)}>"
    linecache.cache[filename] = len(text), None, text.splitlines(keepends=True), filename
    space: dict[str, Any] = {"pl": pl, "np": np, **names}
    exec(compile(text, filename, "exec"), space)
    return space["kernel"]


def in_core(*lines: str) -> str:
    """Return lines inside a kernel scope."""
    return "with pl.at(level=pl.Level.CORE_GROUP):\n" + indent(dedent("\n".join(lines)).strip(), "    ")


def ramp(*shape: int) -> Array:
    """Return an array whose elements are all different."""
    return np.reshape(np.arange(prod(shape), dtype=np.float32), shape)
