"""Accesses: what a kernel being written does to global memory, in order.

Threads of a block run side by side, and nothing but a barrier orders what they do to global memory: one is written
between a store and whatever touches the same tensor after it, and between a load and a store to what it read.
"""

from __future__ import annotations

from tilewright.backends.cuda.ttir.facts import Facts
from tilewright.backends.cuda.ttir.text import Text
from tilewright.backends.cuda.ttir.values import ANY, Tensor


def _meets(root: object, touched: set[object]) -> bool:
    return bool(touched) and (root is ANY or root in touched or ANY in touched)


class Accesses:
    """The tensors that a kernel has touched since its last barrier, and what schedules go by."""

    def __init__(self, t: Text) -> None:
        self.t = t
        self.read: set[object] = set()
        self.written: set[object] = set()
        self.facts = Facts()

    def reads(self, tensor: Tensor) -> None:
        """Order a load after the stores to the same tensor."""
        if _meets(tensor.root, self.written):
            self.barrier()
        self.read.add(tensor.root)
        self.facts.loaded.add(tensor.root)

    def writes(self, tensor: Tensor) -> None:
        """Order a store after the loads and stores of the same tensor."""
        if _meets(tensor.root, self.written | self.read):
            self.barrier()
        self.written.add(tensor.root)
        self.facts.stored.add(tensor.root)

    def barrier(self) -> None:
        """Write that all threads of the block wait for each other, and for what they did to memory."""
        self.t.do("gpu.barrier")
        self.read, self.written = set(), set()
