"""Producers: arrays of CuPy, and of whoever else hands memory of a GPU over by DLPack, as arguments.

Programs run on the current stream of the GPU, which waits for what producers have started on theirs. CuPy's own stream
then waits for the program. Of other producers no stream is known: the call waits for the program itself.
"""

from __future__ import annotations

import sys
from typing import Any

from tilewright.backends.interface import serving
from tilewright.call.argument import CPU, Argument
from tilewright.call.dlpack import CUDA, handed_over
from tilewright.core.region import Array
from tilewright.dtypes import DataType, to_torch
from tilewright.imported import imported


def is_produced(value: object) -> bool:
    """Return whether a value is memory of a GPU that somebody hands over by DLPack."""
    asked: Any = getattr(value, "__dlpack_device__", None)
    return asked is not None and hasattr(value, "__dlpack__") and int(asked()[0]) == CUDA


class Producers:
    """Arrays on GPUs; new ones are CuPy's where that is loaded, and torch's otherwise."""

    def objection(self, value: Any) -> str:
        """Return that no back end takes its memory, or nothing."""
        return "" if serving("cuda") is not None else "is on a GPU, whose memory no back end takes: pass a copy"

    def argument(self, value: Any) -> Argument:
        """Return where an array lies, ready to be used on the stream that programs run on."""
        backend, device = serving("cuda"), f"cuda:{value.__dlpack_device__()[1]}"
        return handed_over(value, None if backend is None else backend.stream(device))

    def write_objection(self, argument: Argument) -> str:
        """Return whether its producer forbids writing."""
        return "is written, but its producer hands it over read-only" if argument.owner.is_sealed else ""

    def zeros(self, shape: tuple[int, ...], dtype: DataType, device: str = CPU) -> Any:
        """Return a new zero-filled array of a GPU; ValueError where neither CuPy nor torch is here to make it."""
        cupy: Any = imported("cupy")
        if cupy is not None:
            with cupy.cuda.Device(int(device.partition(":")[2] or 0)):
                return cupy.zeros(shape, dtype.numpy)
        torch: Any = imported("torch")
        if torch is None:
            raise ValueError("nobody here makes arrays on a GPU: import torch or cupy, or pass the outputs")
        return torch.zeros(shape, dtype=to_torch(dtype), device=device)

    def packed(self, argument: Argument) -> Argument:
        """Return a copy in the order of the axes."""
        made = self.zeros(argument.shape, argument.dtype, argument.device)
        self._copied(argument.owner.value, made)
        return self.argument(made)

    def copy(self, source: Argument, target: Argument) -> None:
        """Write one array into another."""
        self._copied(source.owner.value, target.owner.value)

    def wrap(self, data: Array) -> Any:
        """Return data that a program made; on a GPU they make none."""
        raise NotImplementedError

    def release(self, value: Any, device: str) -> None:
        """Let the owner of an array go on with it: its stream waits for programs, or this thread does."""
        backend = serving(device)
        if backend is not None:
            cupy: Any = imported("cupy")
            is_own = cupy is not None and isinstance(value, cupy.ndarray)
            backend.release(device, _current_stream(cupy) if is_own else None)

    def _copied(self, source: Any, target: Any) -> None:
        cupy: Any = imported("cupy")
        if cupy is not None:
            cupy.from_dlpack(target)[...] = cupy.from_dlpack(source)
            return
        torch: Any = sys.modules["torch"]
        torch.from_dlpack(target).copy_(torch.from_dlpack(source))


PRODUCERS = Producers()


def _current_stream(cupy: Any) -> int:
    return int(cupy.cuda.get_current_stream().ptr)
