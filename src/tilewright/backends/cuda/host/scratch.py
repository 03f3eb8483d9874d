"""Scratch: memory of the device that the blocks of one launch have for themselves, for tensors made inside a kernel.

What all blocks ask for at one place lies side by side, so that nobody has to know how much they will ask for in all.
"""

from __future__ import annotations

from tilewright.backends.cpu.compute.addresses import times
from tilewright.backends.cpu.emit.function import FunctionEmitter
from tilewright.backends.cuda.host import launch_code
from tilewright.backends.cuda.host.capture import extents
from tilewright.backends.cuda.ttir import extents as between
from tilewright.backends.cuda.ttir.kernel import Kernel
from tilewright.backends.cuda.ttir.parameters import ALIGNED, Parameters
from tilewright.backends.cuda.ttir.text import I8, Value, pointer_to
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
        self.size = 0

    def reserve(self, k: Kernel, size: int) -> Value:
        """Return the address of so many bytes of the running block's own."""
        size = -(-size // _LINE) * _LINE
        base = self.params.add(pointer_to(I8), _LATER, ALIGNED)
        before = between.times(k.t, self.size, extents(self.params, [self.count])[0])
        start = between.held(k.t, between.plus(k.t, before, between.times(k.t, self.block, size)))
        self.size += size
        return k.t.op(f"tt.addptr {base}, {start} : {base.type}, i64", base.element)

    def settle(self, e: FunctionEmitter) -> None:
        """Emit the allocation of what was asked for; it is given back behind the last launch of the call."""
        if not self.size:
            return
        launch_code.add_to(e.b.module)
        note = i64(e.program.note("there is no memory on the GPU for the tensors made inside this kernel", e.at.span))
        bytes_ = times(e, self.count, i64(self.size))
        memory = e.b.call(PTR, "device_memory", e.context, bytes_, FALSE, note)
        e.leave_after_an_error()
        self.params.settle(_LATER, memory)
