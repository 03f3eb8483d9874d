"""Workers: what runs programs and holds memory for them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tilewright.call.device_tensor import DeviceTensor

if TYPE_CHECKING:
    from tilewright.programs.config import RunConfig
    from tilewright.programs.program import CompiledProgram


class Worker(ABC):
    """Runs compiled programs, and allocates memory that they take as it is."""

    @abstractmethod
    def malloc(self, nbytes: int, *, worker_id: int = 0) -> int:
        """Return the address of new memory."""

    @abstractmethod
    def free(self, ptr: int) -> None:
        """Give back what `malloc` returned."""

    @abstractmethod
    def copy_to(self, dst_dev: int, src_host: int, nbytes: int) -> None:
        """Copy bytes of the caller's into memory of the worker."""

    @abstractmethod
    def copy_from(self, dst_host: int, src_dev: int, nbytes: int) -> None:
        """Copy bytes of the worker's memory to the caller."""

    @abstractmethod
    def alloc_tensor(self, shape: Sequence[int], dtype: Any, *, init: Any = None, worker_id: int = 0) -> DeviceTensor:
        """Return a new tensor, with the elements of `init` where that is given."""

    @abstractmethod
    def free_tensor(self, tensor: DeviceTensor, *, worker_id: int = 0) -> None:
        """Give a tensor's memory back; a second time does nothing."""

    @abstractmethod
    def run(self, compiled: CompiledProgram, *args: Any, config: RunConfig | None = None) -> Any:
        """Return what a program returns."""

    @abstractmethod
    def register(self, compiled: CompiledProgram) -> RegistrationHandle:
        """Return a program as something to be called here again and again."""


class RegistrationHandle:
    """A program that a worker knows; calling it runs it there, until it is unregistered or the worker is closed."""

    def __init__(self, worker: Worker, compiled: CompiledProgram, cid: int) -> None:
        self._worker: Worker | None = worker
        self.compiled = compiled
        self.cid = cid

    @property
    def closed(self) -> bool:
        """Whether it was unregistered."""
        return self._worker is None

    def __call__(self, *args: Any, config: RunConfig | None = None) -> Any:
        """Run the program; RuntimeError once it was unregistered, or its worker closed."""
        if self._worker is None:
            raise RuntimeError(f"{self!r} was unregistered: register the program again")
        return self._worker.run(self.compiled, *args, config=config)

    def unregister(self) -> None:
        """Close this handle, and no other one of the program's."""
        self._worker = None

    def __enter__(self) -> RegistrationHandle:
        return self

    def __exit__(self, *_: object) -> None:
        self.unregister()

    def __repr__(self) -> str:
        return f"<registration {self.cid} of {self.compiled!r}>"
