"""Device memory: what a worker has allocated, found by address, and never touched beyond it."""

from __future__ import annotations

import ctypes

from tilewright.call.device_tensor import Buffer, DeviceTensor
from tilewright.programs import fields


class DeviceMemory:
    """The allocations of one worker; every range that is copied lies in one of them."""

    def __init__(self) -> None:
        self.buffers: dict[int, Buffer] = {}
        self.tensors: dict[int, DeviceTensor] = {}
        """The tensors that are still allocated, by address."""

    def malloc(self, nbytes: int) -> Buffer:
        """Return new memory, zeroed; ValueError for a size that is none."""
        buffer = Buffer(fields.positive("nbytes", nbytes))
        self.buffers[buffer.address] = buffer
        return buffer

    def free(self, address: int) -> None:
        """Give memory back; ValueError for an address that is not the start of any."""
        if address not in self.buffers:
            raise ValueError(f"nothing is allocated at {address:#x}: free takes what malloc returned, once")
        self.tensors.pop(address, None)
        self.buffers.pop(address).free()

    def free_all(self) -> None:
        """Give everything back."""
        for address in [*self.buffers]:
            self.free(address)

    def free_tensor(self, tensor: DeviceTensor) -> None:
        """Give a tensor's memory back, once; ValueError where another tensor lies there by now."""
        held = self.tensors.get(tensor.data_ptr)
        if held is None:
            return
        if held.buffer is not tensor.buffer:
            raise ValueError(f"the memory at {tensor.data_ptr:#x} belongs to a newer tensor: this one was freed before")
        self.free(tensor.data_ptr)

    def copy(self, target: int, source: int, nbytes: int, *, device: int) -> None:
        """Copy bytes between addresses, of which `device` must lie in an allocation with all of its bytes."""
        inside = (b for b in self.buffers.values() if b.address <= device and device + nbytes <= b.address + b.nbytes)
        if nbytes < 0 or next(inside, None) is None:
            raise ValueError(f"{nbytes} bytes from {device:#x} on are not within one allocation of this worker")
        ctypes.memmove(target, source, nbytes)
