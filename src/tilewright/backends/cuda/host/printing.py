"""Printing of kernels: the memory that they write records into, which the host reads and shows behind the launch."""

from __future__ import annotations

from tilewright.backends.cpu.compute.addresses import times
from tilewright.backends.cpu.emit.function import FunctionEmitter
from tilewright.backends.cuda.host import element_code, launch_code
from tilewright.backends.cuda.host.elements import wait
from tilewright.backends.cuda.prints import Print
from tilewright.backends.cuda.ttir.parameters import Parameters
from tilewright.backends.cuda.ttir.text import I64, Value, pointer_to
from tilewright.native import llvm
from tilewright.native.llvm import PTR, TRUE, i64

LEAST, MOST = 1 << 19, 1 << 23
"""Words of a buffer, besides those that one print of each turn takes; and how many it has at most."""

_BUFFER, _ROOM = llvm.Value(PTR, "printed"), llvm.Value(llvm.I64, "room")
"""Stand for the buffer and its size while the kernel is written."""


class Printing:
    """What a kernel being written prints."""

    def __init__(self, params: Parameters, prints: list[Print]) -> None:
        self.params, self.prints, self.size = params, prints, 0
        self.buffer: tuple[llvm.Value, ...] = ()

    def add(self, own: Print) -> tuple[int, Value, Value]:
        """Return the number of a print, from one on, the buffer for its records, and how many words that holds."""
        self.prints.append(own)
        self.size += own.size
        return len(self.prints), self.params.add(pointer_to(I64), _BUFFER), self.params.add(I64, _ROOM)

    def settle(self, e: FunctionEmitter, count: llvm.Value) -> None:
        """Emit the allocation of a buffer for so many turns; it is given back behind the last launch of the call."""
        if not self.size:
            return
        launch_code.add_to(e.b.module)
        element_code.add_to(e.b.module)
        wanted = e.b.op("add", times(e, count, i64(self.size)), i64(LEAST + self.size))
        room = e.b.intrinsic("llvm.umin", wanted, i64(MOST))
        note = i64(e.program.note("there is no memory on the GPU for what this kernel prints", e.at.span))
        bytes_ = e.b.op("mul", e.b.op("add", room, i64(1)), i64(8))
        buffer = e.b.call(PTR, "device_memory", e.context, bytes_, TRUE, note)
        e.leave_after_an_error()
        self.params.settle(_BUFFER, buffer)
        self.params.settle(_ROOM, room)
        self.buffer = buffer, room

    def show(self, e: FunctionEmitter, kernel: str) -> None:
        """Emit the printing of what the kernel has written down, for which the host waits."""
        if self.buffer:
            wait(e, "device_print", f"to show what `{kernel}` prints", *self.buffer)
