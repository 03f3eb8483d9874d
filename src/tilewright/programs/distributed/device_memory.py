"""Device memory: where the windows of processes lie whose ranks run on GPUs, and the tensors that they write.

Each process maps the memory of all others' GPUs; by what they say of themselves they meet in the host's memory, as
those on processors do. Kernels that wait look at the words there that end them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tilewright.backends.devices import DeviceMemory, Devices
from tilewright.core.region import Array, Region, whole
from tilewright.errors import ExecutionError
from tilewright.interpret.hosts import Plan
from tilewright.programs.distributed.device_windows import DeviceWindows, Layout, aligned, unseen
from tilewright.programs.distributed.group import Group
from tilewright.programs.distributed.segments import PAGE
from tilewright.programs.distributed.shared_memory import NearMemory

HELP = "name GPUs in device_ids that reach each other, run all ranks in one process, or pass tensors on the CPU"


class MappedMemory(NearMemory):
    """The memory of processes whose GPUs reach each other's."""

    def __init__(
        self, group: Group, devices: Devices, plan: Plan, device_id: int, callers: int, sizes: Mapping[int, int]
    ) -> None:
        super().__init__(group, 0)
        self.sizes, self._devices, self._number = sizes, devices, 0
        own = self.segments[group.rank]
        self._shown = devices.shown(own.memory[:PAGE])
        seat = devices.seat(device_id)
        places = group.exchanged(devices.identity(seat.device), "devices")
        self.seat = replace(seat, room=seat.room // places.count(places[group.rank]))
        if seat.device != callers:
            devices.reach(seat.device, callers)
        layouts = [Layout.of(plan.buffers, rank) for rank in range(group.size)]
        self._staged_at = layouts[0].size
        self.memory = self._mapped(layouts[group.rank].size + (self._staged if group.rank == 0 else 0))
        bases = [each.address for each in self.memory]
        here = {group.rank: self.memory[group.rank]}
        self.windows = DeviceWindows(
            devices, plan.buffers, layouts, {group.rank: self.seat}, here, bases, {group.rank: own.abort}
        )
        self.parts = self.windows.parts

    @property
    def _staged(self) -> int:
        """How many bytes rank 0 has for tensors that are written: two places, by turns."""
        return 2 * sum(map(aligned, self.sizes.values()))

    def _mapped(self, size: int) -> list[DeviceMemory]:
        """Return the memory of all ranks, this one's a new one."""
        own = self._devices.memory(self.seat.device, size, is_shared=True)
        handles = self.group.exchanged(own.handle, "memory of devices")
        return [own if rank == self.group.rank else self._opened(rank, each) for rank, each in enumerate(handles)]

    def _opened(self, rank: int, handle: bytes) -> DeviceMemory:
        try:
            return self._devices.opened(self.seat.device, handle)
        except ExecutionError as error:
            message = f"the GPU of rank {self.group.rank} does not reach the memory of rank {rank}"
            raise ExecutionError(message, notes=[error.message], help=HELP) from error

    def begin(self, args: Sequence[Any], timeout: float) -> Mapping[int, Array]:
        """Return where tensors that are written lie: in two places of rank 0's memory, by turns."""
        self._number += 1
        at = self.memory[0].address + self._staged_at + self._staged // 2 * (self._number % 2)
        found = dict[int, Array]()
        for position, size in self.sizes.items():
            data = args[position].data
            found[position] = unseen(at, data.shape, data.dtype)
            at += aligned(size)
            if self.group.rank == 0 and size:
                self._devices.copy(found[position], data)
        return found

    def bring(self, args: Sequence[Any], written: Mapping[int, Array]) -> None:
        """Copy what all ranks have written into arguments."""
        for position, array in written.items():
            if array.size:
                self._devices.copy(args[position].data, array)


def packed_args(args: Sequence[Any], written: Sequence[int]) -> list[Any]:
    """Return arguments as plans of processes see them: those that are written lie packed."""
    return [_packed(arg) if position in written else arg for position, arg in enumerate(args)]


def _packed(arg: Region) -> Region:
    return whole(unseen(arg.data.ctypes.data, arg.data.shape, arg.data.dtype))
