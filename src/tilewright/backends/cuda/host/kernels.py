"""Kernels of a program: their texts, each of them once, and what Triton is told about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from tilewright.backends.cpu.emit.unit import Unit
from tilewright.backends.cuda.ttir.kernel import Kernel
from tilewright.backends.cuda.ttir.parameters import Parameters
from tilewright.native.llvm import spelled
from tilewright.records import mutable, record

PER_THREAD = 32
"""Elements of its largest tile that a thread has, where that leaves a block of 4 to 32 warps."""
OF_PRODUCTS = 128
"""Elements of a product that a thread accumulates; with more it runs out of registers."""


@record
class KernelText:
    """A kernel: its name, its text for aligned parameters and for others, its warps and the stages of its loops."""

    name: str
    aligned: str
    other: str
    warps: int
    stages: int

    @staticmethod
    def of(name: str, k: Kernel, params: Parameters) -> KernelText:
        """Return a kernel that has been written."""
        name = spelled(name)
        aligned, other = (k.t.module(name, params.texts(is_aligned=is_aligned)) for is_aligned in (True, False))
        threads = k.multiplies // OF_PRODUCTS if k.multiplies else k.largest // PER_THREAD
        warps = min(max(1 << (max(threads, 1) // 32).bit_length() >> 1, 4), 8 if k.multiplies else 32)
        return KernelText(name, aligned, other, warps, stages=3)


@record
class Launch:
    """A place of a program that starts a kernel: which, for which line, over which grid and with which arguments."""

    kernel: int
    line: str
    grid: str
    arguments: Sequence[str]


@mutable
class Kernels(Unit):
    """A program being written, with the kernels that its functions start."""

    kernels: list[KernelText] = field(default_factory=list[KernelText])
    launches: list[Launch] = field(default_factory=list[Launch])

    def kernel(self, text: KernelText) -> int:
        """Return the number of a kernel, the same for equal ones."""
        if text not in self.kernels:
            self.kernels.append(text)
        return self.kernels.index(text)
