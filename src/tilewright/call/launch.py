"""Launches: bound arguments as words, a native entry called on them, and its results as the caller knows arrays."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

from tilewright.arrays import np
from tilewright.backends.abi import Number, scalar_result, scalar_word, tensor_result, word_count
from tilewright.backends.host import HostProgram
from tilewright.backends.interface import Backend, Entries, StandIn
from tilewright.call.argument import CPU, Argument
from tilewright.call.binding import Bound
from tilewright.call.devices import check_taken
from tilewright.call.frameworks import NUMPY, Framework, array_of, framework_of
from tilewright.call.packed import is_packed, pack
from tilewright.call.producers import PRODUCERS
from tilewright.call.thread_limit import thread_count
from tilewright.call.tracing import CURRENT, Tracing
from tilewright.core.region import Array, Region, whole
from tilewright.core.types import ScalarType, TensorType
from tilewright.dtypes import to_torch
from tilewright.errors import ExecutionError
from tilewright.imported import imported
from tilewright.keep.shared_code import kept_region
from tilewright.native.context import INTERRUPTED, NUMBERS, Context, context_words
from tilewright.native.interrupts import look_address
from tilewright.native.support import keep_with
from tilewright.native.threads import parallel_address
from tilewright.records import record

keep_with(kept_region)


@record
class Bytes:
    """The bytes of a tensor of a GPU, as others take them: each element is a row of them."""

    argument: Argument

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Where they lie."""
        shape, strides = (*self.argument.shape, self.argument.dtype.get_byte()), (*self.argument.strides, 1)
        return {
            "version": 3,
            "typestr": "|u1",
            "data": (self.argument.address, False),
            "shape": shape,
            "strides": strides,
        }


def copied(made: Argument) -> Any:
    """Return a tensor of torch with what a program has made; ExecutionError where there is no torch."""
    torch: Any = imported("torch")
    if torch is None:
        help = "import torch, or pass an output"
        raise ExecutionError("what a GPU holds is copied by torch, which is not loaded", help=help)
    lent = torch.as_tensor(Bytes(made), device=made.device)
    return lent.clone(memory_format=torch.contiguous_format).view(to_torch(made.dtype)).reshape(made.shape)


def on_host(value: Argument | Number) -> Argument | Number:
    """Return a tensor where the host can read it: one of a GPU copied, by torch; numbers and others as they are."""
    if not isinstance(value, Argument) or value.device == CPU:
        return value
    return Argument.of_array(array_of(copied(value).cpu()))


Runner = Callable[[Bound], "tuple[Any, ...]"]
"""Runs an entry on bound arguments: outputs are written in place, and what it returns is as the caller knows it."""


def runner_of(loaded: Entries) -> Runner:
    """Return what runs the entries of loaded code, on memory that its back end takes."""
    if isinstance(loaded, HostProgram):
        return runner_on(loaded.code.backend, partial(run_native, loaded))
    assert isinstance(loaded, StandIn)
    return runner_on(loaded.code.backend, partial(run_interpreted, loaded.run))


def runner_on(backend: Backend, run: Runner) -> Runner:
    """Return what runs something on memory that a back end takes, and refuses it other memory."""
    return partial(_run_where_it_can, backend, run)


def _run_where_it_can(backend: Backend, run: Runner, bound: Bound) -> tuple[Any, ...]:
    params = [param.name_hint for param in bound.entry.params]
    named = zip(params, bound.values, strict=True)
    check_taken({name: value.device for name, value in named if isinstance(value, Argument)}, backend)
    results = run(bound)
    for given, value in zip(bound.given, bound.values, strict=True):
        if isinstance(value, Argument) and value.device != CPU and framework_of(given) is PRODUCERS:
            PRODUCERS.release(given, value.device)
    return results


@record
class Staged:
    """The arguments of one run: their words, with packed copies of arrays that code cannot address."""

    bound: Bound
    used: Sequence[Argument | Number]
    words: Sequence[int]

    @staticmethod
    def of(bound: Bound) -> Staged:
        """Return a call's arguments as code takes them."""
        used = addressable(bound)
        words: list[int] = []
        for param, value in zip(bound.entry.params, used, strict=True):
            if isinstance(value, Argument):
                words += value.words
            else:
                assert isinstance(param.type, ScalarType)
                words.append(scalar_word(param.type.dtype, value))
        return Staged(bound, used, words)

    def room(self) -> Any:
        """Return the words of a call, and room for those of its results."""
        return room(self.words, word_count(*self.bound.entry.return_types))

    def write_back(self) -> None:
        """Bring what the program wrote into copies to the caller's arrays."""
        write_back(self.bound, self.used)

    def results(self, room: Any) -> tuple[Any, ...]:
        """Return what an entry returns, read from behind the words of its arguments."""
        found: list[Any] = []
        at = len(self.words)
        for type_ in self.bound.entry.return_types:
            words: list[int] = room[at : at + word_count(type_)]
            at += len(words)
            is_number = isinstance(type_, ScalarType)
            found.append(scalar_result(type_.dtype, words[0]) if is_number else self._tensor(type_, words))
        return tuple(found)

    def _tensor(self, type_: Any, words: Sequence[int]) -> Any:
        """Return a result: the argument whose memory it is, or a copy of what the program made."""
        assert isinstance(type_, TensorType)
        address, shape, strides = tensor_result(words)
        for given, used in zip(self.bound.given, self.used, strict=True):
            if isinstance(used, Argument) and (used.address, used.shape) == (address, shape):
                return given
        size = type_.dtype.get_byte()
        device = device_of(self.bound)
        made = Argument(address, shape, tuple(size * step for step in strides), type_.dtype, device, None)
        return self.bound.framework.wrap(np.array(made.array)) if device == CPU else copied(made)


def addressable(bound: Bound) -> list[Argument | Number]:
    """Return a call's arguments with packed copies of arrays that code cannot address."""
    steps = [bound.entry.stepped.get(param.name_hint, 1) for param in bound.entry.params]
    every = zip(bound.values, bound.given, steps, strict=True)
    return [_addressable(v, given, step) if isinstance(v, Argument) else v for v, given, step in every]


def write_back(bound: Bound, used: Sequence[Argument | Number]) -> None:
    """Bring what a program wrote into copies to the caller's arrays."""
    for position, (value, copy) in enumerate(zip(bound.values, used, strict=True)):
        if isinstance(value, Argument) and isinstance(copy, Argument) and bound.is_written(position):
            if copy is not value:
                _framework(bound.given[position]).copy(copy, value)
    repack(bound)


def repack(bound: Bound) -> None:
    """Bring what a program wrote to the caller's packed tensors."""
    for position, (given, value) in enumerate(zip(bound.given, bound.values, strict=True)):
        if bound.is_written(position) and is_packed(given):
            pack(value.array, given)


def _addressable(argument: Argument, given: Any, step: int) -> Argument:
    """Return an argument, or a copy that code can address: where it cannot read the argument itself."""
    if argument.lies_in_steps(step):
        return argument
    return _framework(given).packed(argument) if step == 1 else _spread(argument, step)


def _spread(argument: Argument, step: int) -> Argument:
    """Return a copy whose neighbours along the last axis lie so many elements apart."""
    held = argument.array
    room = np.empty((*held.shape[:-1], held.shape[-1] * step), held.dtype)
    room[..., ::step] = held
    return Argument.of_array(room[..., ::step])


def _framework(given: Any) -> Framework:
    return framework_of(given) or NUMPY


def room(words: Sequence[int], more: int = 0) -> Any:
    """Return words as code reads them, with room for some more behind them."""
    return _room_type(len(words) + more)(*words)


@cache
def _room_type(count: int) -> Any:
    return ctypes.c_int64 * count  # which ctypes makes anew, at the price of a class, where nobody keeps it


def context(native: HostProgram) -> Any:
    """Return the context of one run."""
    threads = thread_count()
    return _context(native, parallel_address(threads, native.emit), threads)


def _context(native: HostProgram, parallel: int, threads: int) -> Any:
    """Return the context of a run whose chunks some code runs."""
    return room(context_words(parallel, look_address(native.emit), threads), len(NUMBERS))


def error_numbers(context: Any) -> list[int]:
    """Return the numbers that an error names whose number is in a context."""
    return context[NUMBERS[0] :]


def run_native(native: HostProgram, bound: Bound) -> tuple[Any, ...]:
    """Return what an entry returns; ExecutionError for what the program did wrong."""
    staged, native, tracing = Staged.of(bound), native.on(device_of(bound)), CURRENT.get()
    words, native = staged.room(), native if tracing is None else native.traced()
    if tracing is None:
        around = context(native)
        native.calls[bound.entry.name](words, around)
    else:
        around = _run_traced(tracing, native, bound.entry.name, words)
    try:
        if around[Context.ERROR]:
            native.finish(bound.entry.name, around[Context.ERROR], 0, error_numbers(around))
        staged.write_back()
        return staged.results(words)
    finally:
        native.finish(bound.entry.name, 0, around[Context.BUFFERS])


def _run_traced(tracing: Tracing, native: HostProgram, name: str, words: Any) -> Any:
    """Run an entry that a timeline shows with its chunks; return the context it ran in."""
    threads, tracing.is_noted = thread_count(), True
    if native.timeline is not None:
        tracing.trace.read(native.timeline)
    found = tracing.trace.recorder(native, threads)
    around = _context(native, found.address, threads)
    found.enter(words, around, native.address(name))
    return around


def device_of(bound: Bound) -> str:
    """Return the device that the tensors of a call are on."""
    return next((value.device for value in bound.values if isinstance(value, Argument)), CPU)


def prepared(native: HostProgram, bound: Bound) -> Callable[[], None]:
    """Return a run of an entry, to be made again and again: its code and hardly anything around it.

    Results are dropped, and so is what the program did wrong; an interrupt is not.
    """
    staged, name, native = Staged.of(bound), bound.entry.name, native.on(device_of(bound))
    words, around, call = staged.room(), context(native), native.calls[bound.entry.name]
    places = ctypes.addressof(words), ctypes.addressof(around)

    def run(held: object = (words, around, staged)) -> None:
        call(*places)
        if around[1] or around[2]:
            number, buffers = around[1:3]
            around[1:3] = 0, 0
            native.finish(name, number if number == INTERRUPTED else 0, buffers)

    return run


def run_interpreted(machine: Callable[[str, Sequence[Any]], tuple[Any, ...]], bound: Bound) -> tuple[Any, ...]:
    """Return what the interpreter returns, whose tensors are NumPy regions where code has them: the caller's mostly."""
    used = addressable(bound)
    regions = [
        _region(value, bound.is_written(position)) if isinstance(value, Argument) else value
        for position, value in enumerate(used)
    ]
    returned = machine(bound.entry.name, regions)
    write_back(bound, used)
    return tuple(_result(value, regions, bound) for value in returned)


def _region(argument: Argument, is_written: bool) -> Region:
    """Return the memory of an argument; nobody writes to what is only read, not even what it holds already."""
    data: Any = argument.array
    if not is_written:
        data = data.view()
        data.flags.writeable = False
    return whole(data)


def _result(value: Any, regions: Sequence[Any], bound: Bound) -> Any:
    """Return a result as the caller knows it: their own array where it is one, a new one otherwise."""
    if not isinstance(value, Region):
        return value
    for given, region in zip(bound.given, regions, strict=True):
        if isinstance(region, Region) and region.data is value.data:
            return given
    data: Array = value.data
    return bound.framework.wrap(data)
