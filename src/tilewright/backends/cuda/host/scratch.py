"""Scratch: memory of the device that the blocks of one launch have for themselves, for tensors made inside a kernel.

What all blocks ask for at one place lies side by side, so that nobody has to know how much they will ask for in all.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tilewright.backends.cpu.compute.addresses import times
from tilewright.backends.cpu.emit.function import FunctionEmitter
from tilewright.backends.cuda.host import launch_code
from tilewright.backends.cuda.host.capture import extents
from tilewright.backends.cuda.ttir import extents as between
from tilewright.backends.cuda.ttir.kernel import Kernel
from tilewright.backends.cuda.ttir.parameters import ALIGNED, Parameters
from tilewright.backends.cuda.ttir.text import I8, Value, pointer_to
from tilewright.backends.cuda.ttir.values import Extent
from tilewright.native import llvm
from tilewright.native.llvm import FALSE, PTR, i64

_LATER = llvm.Value(PTR, "scratch")
"""Stands for the address while the kernel is written."""
_LINE = 128
"""What the size of a piece is a multiple of."""


class Scratch:
    """The memory that a kernel being written has asked for."""

    def __init__(self, params: Parameters, block: Value, count: llvm.Value) -> None:
        self.params, self.block, self.count = params, block, count
        self.pieces: list[Sequence[Extent]] = []
        """What has been asked for: so many lines, each as often as the program is told by its parameters."""

    def reserve(self, k: Kernel, sizes: Sequence[Extent]) -> Value:
        """Return the address of as many bytes of the running block's own as the product of some extents."""
        base = self.params.add(pointer_to(I8), _LATER, ALIGNED)
        before: Extent = 0
        for piece in self.pieces:
            before = between.plus(k.t, before, _bytes(k, piece))
        before = between.times(k.t, before, extents(self.params, [self.count])[0])
        self.pieces.append(sizes)
        own = between.times(k.t, self.block, _bytes(k, sizes))
        start = between.held(k.t, between.plus(k.t, before, own))
        return k.t.op(f"tt.addptr {base}, {start} : {base.type}, i64", base.element)

    def settle(self, e: FunctionEmitter) -> None:
        """Emit the allocation of what was asked for; it is given back behind the last launch of the call."""
        if not self.pieces:
            return
        launch_code.add_to(e.b.module)
        note = i64(e.program.note("there is no memory on the GPU for the tensors made inside this kernel", e.at.span))
        each = i64(0)
        for piece in self.pieces:
            each = e.b.op("add", each, self._asked(e, piece))
        bytes_ = times(e, self.count, each)
        memory = e.b.call(PTR, "device_memory", e.context, bytes_, FALSE, note)
        e.leave_after_an_error()
        self.params.settle(_LATER, memory)

    def _asked(self, e: FunctionEmitter, sizes: Sequence[Extent]) -> llvm.Value:
        """Emit how many bytes a piece has, as the kernel counts them."""
        found = i64(prod(size for size in sizes if isinstance(size, int)))
        for size in sizes:
            if not isinstance(size, int):
                found = times(e, found, self.params.word_of(size))
        return e.b.op("and", e.b.op("add", found, i64(_LINE - 1)), i64(-_LINE))


def _bytes(k: Kernel, sizes: Sequence[Extent]) -> Extent:
    """Return how many bytes a piece has: as many as asked for, or a few more."""
    found: Extent = prod(size for size in sizes if isinstance(size, int))
    for size in sizes:
        if not isinstance(size, int):
            found = between.times(k.t, found, size)
    return between.times(k.t, between.counted(k.t, found, _LINE), _LINE)
