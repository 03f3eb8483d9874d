"""Signatures: what a function of the program is written for, and how the written one is called."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.backends.abi import MOST_STEP
from tilewright.backends.cpu.emit.arena import Part
from tilewright.backends.cpu.emit.values import Binding, Tensor, static
from tilewright.core.program import Function
from tilewright.core.types import Type
from tilewright.native.llvm import Value
from tilewright.records import record

FEW = MOST_STEP
"""How far apart elements may lie for a function to know it."""


@record
class Signature:
    """What a function is written for: the last strides of its tensors, and which share memory with an earlier one.

    A stride that the call does not know, or that is too long to be worth a function of its own, is zero.
    `is_concurrent` says whether it adds to memory that other threads may add to at the same time, `in_rounds` whether
    blocks wait for each other in it, `in_shares` whether a block changes only the rows that fall to it, `in_rows`
    whether it does only the rows of each tile that do.
    """

    steps: tuple[int, ...]
    shared: tuple[int, ...]
    is_concurrent: bool = False
    in_rounds: bool = False
    in_shares: bool = False
    in_rows: bool = False

    @staticmethod
    def plain(function: Function) -> Signature:
        """Return the signature of a call with separate tensors that lie as the function says."""
        steps = tuple(function.stepped.get(param.name_hint, 1) for param in function.params)
        return Signature(steps, tuple(range(len(steps))))

    @staticmethod
    def of(
        bindings: Sequence[Binding], is_concurrent: bool, in_rounds: bool, in_shares: bool, in_rows: bool
    ) -> Signature:
        """Return the signature of a call with these arguments."""
        steps = tuple(_step(b) if isinstance(b, Tensor) and b.strides else 1 for b in bindings)
        roots = [b.root if isinstance(b, Tensor) else object() for b in bindings]
        shared = tuple(next(i for i, r in enumerate(roots) if r is root) for root in roots)
        return Signature(steps, shared, is_concurrent, in_rounds, in_shares, in_rows)


def _step(tensor: Tensor) -> int:
    """Return the last stride of a tensor as far as a function is written for it."""
    known = static(tensor.strides[-1])
    return known if known is not None and -1 <= known <= FEW else 0


@record
class Emitted:
    """A function that has been written: how to call it, and what it gives.

    `returned` says for each result which parameter it is, None for one that is made; `results` are the types of those
    that are made, in order, and `turned_results` whether their last stride may be other than one.
    """

    function: Function
    name: str
    arena: int
    returned: tuple[int | None, ...]
    results: tuple[Type, ...]
    turned_results: tuple[bool, ...]


@record
class Prepared:
    """A call that can be made: what it calls, with which words, and where its results go."""

    callee: Emitted
    bindings: list[Binding]
    words: list[Value]
    parts: list[Part]
    rooms: list[Value]

    def known(self) -> list[Binding | None]:
        """Return the results that are arguments; None for one that is made."""
        return [None if p is None else self.bindings[p] for p in self.callee.returned]
