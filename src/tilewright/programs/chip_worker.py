"""Chip workers: one processor's worker, which programs run on by themselves inside `with ChipWorker(...)`."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from contextvars import Token
from itertools import count
from typing import Any

from tilewright.call.device_tensor import Buffer, DeviceTensor, bytes_of, checked_shape, element_type
from tilewright.call.frameworks import argument_of, array_of
from tilewright.dtypes import DataType
from tilewright.programs import fields
from tilewright.programs.chip_program import CURRENT, DEFAULT_RUNTIME, Dispatched, Executor, checked_runtime
from tilewright.programs.config import RunConfig
from tilewright.programs.logs import LogLevel, note
from tilewright.programs.platforms import is_same_place
from tilewright.programs.program import CompiledProgram
from tilewright.programs.worker import RegistrationHandle, Worker


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


class ChipWorker(Worker):
    """A worker on this machine: its memory is memory of this process, and programs run as they do without it.

    It is ready once it is made, unless `auto_init` is False. Closing it frees what is still allocated; `init` opens it
    again. Inside `with` it is where programs run whose platform, device and runtime are its own.
    """

    def __init__(
        self,
        config: RunConfig | None = None,
        *,
        level: int = 2,
        runtime: str = DEFAULT_RUNTIME,
        enable_sdma: bool = False,
        auto_init: bool | None = None,
    ) -> None:
        config = RunConfig() if config is None else config
        self.level = level
        self.platform = config.platform
        self.device_id = config.device_id
        self.runtime = checked_runtime(runtime)
        self.enable_sdma = enable_sdma
        self.initialized = False
        self._memory = DeviceMemory()
        self._seen: dict[int, object] = {}
        """The code of each program that has run here, which keeps its identity."""
        self._numbers = count()
        self._tokens: list[Token[Executor | None]] = []
        if auto_init is None or auto_init:
            self.init()

    # its life

    def init(self) -> None:
        """Make it ready, where it is not."""
        self.initialized = True

    def close(self) -> None:
        """Free what is still allocated; whoever uses it before `init` is called again gets a RuntimeError."""
        self._memory.free_all()
        self.initialized = False

    def __enter__(self) -> ChipWorker:
        self.init()
        self._tokens.append(CURRENT.set(self))
        return self

    def __exit__(self, *_: object) -> None:
        CURRENT.reset(self._tokens.pop())
        self.close()

    def __repr__(self) -> str:
        return f"<ChipWorker {self.platform}:{self.device_id}, {'open' if self.initialized else 'closed'}>"

    @property
    def aicpu_dlopen_count(self) -> int:
        """How many distinct programs have run here."""
        return len(self._seen)

    @property
    def host_dlopen_count(self) -> int:
        """How many of them needed something of the host's loaded beside their own code: none does."""
        return 0

    # programs

    def run(self, compiled: CompiledProgram, *args: Any, config: RunConfig | None = None) -> Any:
        """Return what a program returns; ValueError where it is for another platform or runtime."""
        self._check(compiled)
        result = compiled(*args, config=config)
        self._note(compiled)
        return result

    def register(self, compiled: CompiledProgram) -> RegistrationHandle:
        """Return a program to be called here again and again; the same errors as `run`."""
        self._check(compiled)
        return RegistrationHandle(self, compiled, next(self._numbers))

    def dispatched(self, compiled: Dispatched) -> None:
        """Note a program that runs inside `with`, where it is for this worker."""
        if not self._objection(compiled):
            self._note(compiled)

    def _note(self, compiled: Dispatched) -> None:
        if id(compiled.loaded) not in self._seen:
            note("runtime", LogLevel.INFO, f"{self!r} has run program number {len(self._seen) + 1}")
        self._seen.setdefault(id(compiled.loaded), compiled.loaded)

    def _objection(self, compiled: Dispatched) -> str:
        if not is_same_place(self.platform, compiled.platform):
            return f"is for platform {compiled.platform!r}, and this worker for {self.platform!r}"
        if compiled.runtime_name != self.runtime:
            return f"is for runtime {compiled.runtime_name!r}, and this worker for {self.runtime!r}"
        return ""

    def _check(self, compiled: CompiledProgram) -> None:
        self._check_open()
        if objection := self._objection(compiled):
            raise ValueError(f"{compiled.declared.name} {objection}")

    def _check_open(self) -> None:
        if not self.initialized:
            raise RuntimeError("this worker is closed: call its init() first")

    # memory

    @property
    def _owned_tensors(self) -> dict[int, DeviceTensor]:
        """The tensors that are still allocated; the PTO family's tests count them."""
        return self._memory.tensors

    def malloc(self, nbytes: int, *, worker_id: int = 0) -> int:
        """Return the address of new memory, zeroed."""
        self._check_open()
        self._check_id(worker_id)
        return self._memory.malloc(nbytes).address

    def free(self, ptr: int) -> None:
        """Give back what `malloc` returned; ValueError for any other address."""
        self._check_open()
        self._memory.free(ptr)

    def copy_to(self, dst_dev: int, src_host: int, nbytes: int) -> None:
        """Copy bytes from an address of the caller's; ValueError where they would not fit into one allocation."""
        self._check_open()
        self._memory.copy(dst_dev, src_host, nbytes, device=dst_dev)

    def copy_from(self, dst_host: int, src_dev: int, nbytes: int) -> None:
        """Copy bytes to an address of the caller's; ValueError where one allocation does not hold them all."""
        self._check_open()
        self._memory.copy(dst_host, src_dev, nbytes, device=src_dev)

    def alloc_tensor(self, shape: Sequence[int], dtype: Any, *, init: Any = None, worker_id: int = 0) -> DeviceTensor:
        """Return a new tensor, zeroed, or with the elements of `init`, which has its shape and element type."""
        self._check_open()
        self._check_id(worker_id)
        extents = checked_shape(shape)
        if init is not None:
            _check_initial(extents, element_type(dtype), init)
        buffer = self._memory.malloc(bytes_of(extents, dtype))
        made = DeviceTensor(buffer.address, shape, dtype, buffer=buffer)
        if init is not None:
            array_of(made)[...] = array_of(init)
        self._memory.tensors[buffer.address] = made
        return made

    def free_tensor(self, tensor: DeviceTensor, *, worker_id: int = 0) -> None:
        """Give a tensor's memory back; a second time does nothing, unless another tensor lies there by then."""
        self._check_id(worker_id)
        self._memory.free_tensor(tensor)

    def _check_id(self, worker_id: int) -> None:
        if worker_id != 0:
            raise ValueError(f"a ChipWorker is one worker, whose worker_id is 0, got {worker_id!r}")


def _check_initial(shape: tuple[int, ...], dtype: DataType, init: Any) -> None:
    """Raise ValueError where a tensor cannot start as `init`, of another shape or element type."""
    found = argument_of(init, "init")
    if found.shape != shape:
        raise ValueError(f"a tensor of shape {list(shape)} cannot start as one of {list(found.shape)}")
    if found.dtype != dtype:
        raise ValueError(f"a tensor of {dtype} cannot start as one of {found.dtype}")
