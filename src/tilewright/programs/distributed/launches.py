"""Launches: what a rank calls in a turn, to be called again on other tensors of the same shapes."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tilewright.arrays import np
from tilewright.backends.abi import scalar_word, tensor_words, word_count
from tilewright.backends.host import HostProgram
from tilewright.call.launch import error_numbers, room
from tilewright.core.program import Function
from tilewright.core.region import Array, Region
from tilewright.core.types import ScalarType
from tilewright.errors import ExecutionError
from tilewright.interpret.hosts import Dispatch, Window, WindowBuffer
from tilewright.native.batches import BATCH
from tilewright.native.context import INTERRUPTED, NUMBERS, Context, context_words
from tilewright.native.interrupts import look_address
from tilewright.native.loader import load
from tilewright.native.threads import parallel_address
from tilewright.programs.distributed.progress import Ended
from tilewright.programs.distributed.windows import Placed
from tilewright.records import mutable


@mutable
class Launch:
    """A native function with its words; those that name the caller's memory are set before each run."""

    native: HostProgram
    function: Function
    words: Any
    around: Any
    moving: list[tuple[int, int, int]]
    """Which word is the address of which argument of the host, and how far behind its start."""
    held: Sequence[object] = ()

    def __post_init__(self) -> None:
        """Look up what every run needs."""
        self.call = self.native.calls[self.function.name]
        self.places = ctypes.addressof(self.words), ctypes.addressof(self.around)

    def place(self, bases: Sequence[int]) -> None:
        """Let the words name the memory of a call."""
        for word, argument, offset in self.moving:
            self.words[word] = bases[argument] + offset

    def begin(self) -> None:
        """Make ready for a run, the last of which may have been stopped."""
        self.around[Context.ERROR] = 0

    def stop(self) -> None:
        """Let the function end within a millisecond or so, whether it runs already or begins later in this run."""
        self.around[Context.ERROR] = self.around[Context.ERROR] or INTERRUPTED

    def __call__(self) -> None:
        """Run it; ExecutionError for what it did wrong."""
        self.call(*self.places)
        self.finish()

    def finish(self) -> None:
        """Free what a run made, and raise what it did wrong; Ended where it was stopped."""
        around = self.around
        if around[Context.ERROR] or around[Context.BUFFERS]:
            number, buffers = around[Context.ERROR], around[Context.BUFFERS]
            around[Context.ERROR] = around[Context.BUFFERS] = 0
            self.native.finish(
                self.function.name, 0 if number == INTERRUPTED else number, buffers, error_numbers(around)
            )
            if number == INTERRUPTED:
                raise Ended("it was stopped while it ran")


class Batch:
    """Native functions of one rank that follow each other, called together."""

    def __init__(self, launches: Sequence[Launch]) -> None:
        self.launches = launches
        entries = [(each.native.address(each.function.name), *each.places) for each in launches]
        self._list = (ctypes.c_int64 * (3 * len(entries)))(*(word for entry in entries for word in entry))
        self._place = ctypes.addressof(self._list)
        loaded = load(launches[0].native.emit(BATCH))
        self._call = loaded.function("batch", ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)

    def __call__(self) -> None:
        """Run them; ExecutionError for what the first of them did wrong."""
        count = len(self.launches)
        told = self._call(self._place, count)
        if told != count:
            for launch in self.launches[: (told & _COUNT) + 1]:
                launch.finish()


_COUNT = (1 << 63) - 1


@mutable
class Work:
    """A function of Python's, on views of the host's arguments."""

    body: Callable[[list[Any]], Any]
    args: list[Any]
    """Numbers, and of arrays what they look like: argument, offset, shape, strides and element type."""
    bases: Sequence[int] = ()

    def place(self, bases: Sequence[int]) -> None:
        """Let it work on the memory of a call."""
        self.bases = bases

    def begin(self) -> None:
        """Do nothing: it cannot be stopped."""

    def stop(self) -> None:
        """Do nothing: Python runs to its end."""

    def __call__(self) -> None:
        """Run it."""
        self.body([self._array(*arg) if isinstance(arg, tuple) else arg for arg in self.args])  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]

    def _array(self, position: int, offset: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: Any) -> Array:
        reach = sum((n - 1) * step for n, step in zip(shape, strides, strict=True)) + np.dtype(dtype).itemsize
        memory: Any = (ctypes.c_char * (reach if 0 not in shape else 0)).from_address(self.bases[position] + offset)
        return np.ndarray(shape, dtype, memory, 0, strides)


def worked(action: Dispatch, body: Callable[[list[Any]], Any], args: Sequence[Any]) -> Work:
    """Return a function of Python's made ready, on views of the host's `args`."""
    given: list[Any] = []
    for value in action.args:
        if isinstance(value, Window):
            raise ExecutionError(
                f"`{action.function}` runs on the host, where windows have no part", spans=[action.span]
            )
        found = _argument(value.data, args) if isinstance(value, Region) else None
        given.append(value if found is None else (*found, value.data.shape, value.data.strides, value.data.dtype))
    return Work(body, given)


def launched(
    action: Dispatch, native: HostProgram, function: Function, parts: Mapping[WindowBuffer, Placed],
    args: Sequence[Any], threads: int,
) -> Launch:  # fmt: skip
    """Return a dispatch made ready, on windows and on views of the host's `args`."""
    words: list[int] = []
    moving: list[tuple[int, int, int]] = []
    held: list[object] = []
    for param, value in zip(function.params, action.args, strict=True):
        if isinstance(value, Window):
            array = parts[value.buffer].array(action.rank, value)
            words += tensor_words(array.ctypes.data, array.shape, _steps(array))
        elif isinstance(value, Region):
            found = _argument(value.data, args)
            if found is None:
                held.append(value.data)
            else:
                moving.append((len(words), *found))
            words += tensor_words(value.data.ctypes.data, value.data.shape, _strided(value.data, param.name_hint))
        else:
            assert isinstance(param.type, ScalarType)
            words.append(scalar_word(param.type.dtype, value))
    windows = [value for value in action.args if isinstance(value, Window)]
    waits = parts[windows[0].buffer].waits(action.rank) if windows else 0  # who has no window is met by nobody
    around = context_words(parallel_address(threads, native.emit), look_address(native.emit), threads, waits)
    results = word_count(*function.return_types)
    return Launch(native, function, room(words, results), room(around, len(NUMBERS)), moving, held)


def _steps(array: Array) -> list[int]:
    return [stride // array.itemsize for stride in array.strides]


def _strided(array: Array, name: str) -> list[int]:
    """Return strides in elements; ExecutionError where neighbours along the last axis lie apart."""
    if array.ndim and array.shape[-1] > 1 and array.strides[-1] != array.itemsize:
        raise ExecutionError(f"`{name}`: neighbours along the last axis lie apart", help="pass a contiguous tensor")
    return _steps(array)


def _argument(array: Array, args: Sequence[Any]) -> tuple[int, int] | None:
    """Return which argument of the host a view is part of, and how far behind its start it begins."""
    at = array.ctypes.data
    for position, arg in enumerate(args):
        if isinstance(arg, Region) and np_within(arg.data, at):
            return position, at - arg.data.ctypes.data
    return None


def np_within(array: Array, at: int) -> bool:
    """Return whether an address lies in the memory of an array."""
    low = array.ctypes.data
    reach = sum((extent - 1) * stride for extent, stride in zip(array.shape, array.strides, strict=True))
    return low <= at <= low + max(reach, 0)
