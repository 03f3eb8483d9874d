"""Steps: a plan made ready, what each rank calls in order, to be run again on other tensors of the same shapes."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tilewright.arrays import np
from tilewright.backends.abi import scalar_word, tensor_words, word_count
from tilewright.backends.host import HostProgram
from tilewright.call.launch import error_numbers, room
from tilewright.call.thread_limit import thread_count
from tilewright.core.program import Function
from tilewright.core.region import Array, Region
from tilewright.core.types import ScalarType
from tilewright.errors import ExecutionError
from tilewright.interpret.hosts import Collective, Dispatch, Plan, Window, WindowBuffer
from tilewright.native.context import NUMBERS, Context, context_words
from tilewright.native.interrupts import look_address
from tilewright.native.threads import parallel_address
from tilewright.ops.collectives import MEANINGS
from tilewright.programs.distributed.progress import Progress
from tilewright.programs.distributed.windows import Parts
from tilewright.records import mutable, record

Natives = Callable[[str], "tuple[HostProgram, Function]"]
"""Where native functions are found by name."""
Bodies = Callable[[str], "Callable[[list[Any]], Any] | None"]
"""Where functions are found that Python runs, None for others."""


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

    def __call__(self) -> None:
        """Run it; ExecutionError for what it did wrong."""
        self.call(*self.places)
        around = self.around
        if around[Context.ERROR] or around[Context.BUFFERS]:
            number, buffers = around[Context.ERROR], around[Context.BUFFERS]
            around[Context.ERROR] = around[Context.BUFFERS] = 0
            self.native.finish(self.function.name, number, buffers, error_numbers(around))


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

    def __call__(self) -> None:
        """Run it."""
        self.body([self._array(*arg) if isinstance(arg, tuple) else arg for arg in self.args])  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]

    def _array(self, position: int, offset: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: Any) -> Array:
        reach = sum((n - 1) * step for n, step in zip(shape, strides, strict=True)) + np.dtype(dtype).itemsize
        memory: Any = (ctypes.c_char * (reach if 0 not in shape else 0)).from_address(self.bases[position] + offset)
        return np.ndarray(shape, dtype, memory, 0, strides)


def _work(action: Dispatch, body: Callable[[list[Any]], Any], args: Sequence[Any]) -> Work:
    given: list[Any] = []
    for value in action.args:
        if isinstance(value, Window):
            raise ExecutionError(
                f"`{action.function}` runs on the host, where windows have no part", spans=[action.span]
            )
        found = _argument(value.data, args) if isinstance(value, Region) else None
        given.append(value if found is None else (*found, value.data.shape, value.data.strides, value.data.dtype))
    return Work(body, given)


@record
class Step:
    """One turn of a rank: what to call, once others have had so many turns."""

    run: Callable[[], None]
    needs: tuple[tuple[int, int], ...]
    wakes: bool
    """Whether others wait for it."""


@mutable
class Steps:
    """What every rank does, and the memory of the windows."""

    parts: Mapping[WindowBuffer, Parts]
    ranks: Mapping[int, list[Step]]
    launches: list[Launch | Work]
    keeps_windows: bool = False
    """Whether windows keep what they hold from one run to the next."""

    def begin(self, bases: Sequence[int]) -> None:
        """Make ready for a run on arguments that start at some addresses."""
        for parts in () if self.keeps_windows else self.parts.values():
            parts.clear()
        for step in self.launches:
            step.place(bases)

    def run(self, rank: int, progress: Progress) -> None:
        """Do what one rank has to."""
        for step in self.ranks[rank]:
            for need in step.needs:
                progress.until(*need)
            step.run()
            progress.advance(rank, step.wakes)


def steps_of(
    plan: Plan, natives: Natives, bodies: Bodies, args: Sequence[Any], parts: Mapping[WindowBuffer, Parts],
    here: Sequence[int],
) -> Steps:  # fmt: skip
    """Return what the ranks that run here do; views of the host's `args` follow where those lie."""
    made, threads = Steps(parts, {rank: [] for rank in here}, []), max(1, thread_count() // plan.size)
    awaited = {need for turns in plan.turns for turn in turns for need in turn.needs}
    for rank in here:
        for number, turn in enumerate(plan.turns[rank], 1):
            run = _step(turn.action, rank, natives, bodies, args, parts, threads)
            made.launches += [run] if isinstance(run, (Launch, Work)) else []
            made.ranks[rank].append(Step(run, turn.needs, (rank, number) in awaited))
    return made


def _step(
    action: Dispatch | Collective, rank: int, natives: Natives, bodies: Bodies, args: Sequence[Any],
    parts: Mapping[WindowBuffer, Parts], threads: int,
) -> Callable[[], None]:  # fmt: skip
    """Return what a rank calls in one turn."""
    if isinstance(action, Collective):
        return _performing(action, parts) if rank == action.domain[0] else _nothing
    body = bodies(action.function)
    return (
        _launch(action, *natives(action.function), parts, args, threads) if body is None else _work(action, body, args)
    )


def _nothing() -> None:
    """Leave the work to the first of the domain."""


def _performing(action: Collective, parts: Mapping[WindowBuffer, Parts]) -> Callable[[], None]:
    def perform() -> None:
        arrays = [
            {name: parts[window.buffer].array(rank, window) for name, window in action.windows.items()}
            for rank in action.domain
        ]
        MEANINGS[action.name](arrays, **action.options)

    return perform


def _launch(
    action: Dispatch, native: HostProgram, function: Function, parts: Mapping[WindowBuffer, Parts],
    args: Sequence[Any], threads: int,
) -> Launch:  # fmt: skip
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
    around = context_words(parallel_address(threads, native.emit), look_address(native.emit), threads)
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
