"""Families: kernels written both ways, as `@pl.jit` functions and by hand as `@pl.program` classes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import tilewright.language as pl
from tilewright.core.program import Program


@dataclass(frozen=True)
class Pair:
    """A kernel, the arguments it is made for, and the program that someone wrote out for them."""

    kernel: pl.JITFunction
    args: tuple[Any, ...]
    by_hand: Program


@dataclass(frozen=True)
class Family:
    """Kernels of one kind."""

    name: str
    pairs: list[Pair] = field(default_factory=list[Pair])

    def by_hand(self, kernel: pl.JITFunction, *args: Any) -> Callable[[Program], Program]:
        """Return the decorator of a program that says what `kernel` says for `args`."""

        def paired(program: Program) -> Program:
            self.pairs.append(Pair(kernel, args, program))
            return program

        return paired
