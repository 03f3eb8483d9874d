"""Targets: a program and a call that it ran as an entry of the dispatcher, for all calls like that one.

Element types, ranks and fixed extents of tensors, and numbers that are part of the code, are words of the key. Axes
that go by a name must agree and are left out of it, and so are numbers that stay parameters of the program. Of a call
that leaves outputs out every extent counts: what is made follows from them.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Sequence
from functools import partial
from os import PathLike
from typing import Any

from tilewright.arrays import np
from tilewright.backends.abi import scalar_word, tensor_word_count, word_count
from tilewright.backends.host import HostProgram
from tilewright.call import words as code
from tilewright.call.argument import CPU, is_array
from tilewright.call.guards import Guards
from tilewright.call.tables import Target, dtype_word, is_itself
from tilewright.call.thread_limit import thread_count
from tilewright.call.tracing import recorder_of
from tilewright.call.words import (
    CONFIGURED,
    IN_PLACE,
    LAUNCH_WORDS,
    MAX_PARAMS,
    OF_NUMPY,
    OF_TORCH,
    RESULT_WORDS,
    RETURNING,
)
from tilewright.call.written_calls import Configured
from tilewright.core.enums import ParamDirection
from tilewright.core.expr import Symbol
from tilewright.core.program import Function
from tilewright.core.types import ScalarType, TensorType, Type
from tilewright.dtypes import FP32, INDEX, DataType, round_scalar
from tilewright.frontend.signature import DynDim, Given, Known, TensorMeta
from tilewright.imported import imported
from tilewright.records import entity, record


@entity
class Callee:
    """A program's entry as dispatchers call it."""

    native: HostProgram
    entry: Function

    def fills(self, name: str) -> bool:
        """Return whether the entry surely writes all of an output."""
        filled = self.native.code.filled.get(self.entry.name, ())
        return any(self.entry.params[position].name_hint == name for position in filled)

    def finish(self, number: int, buffers: int, numbers: Sequence[int]) -> None:
        """Free what a run has made, and raise what it did wrong, with the numbers it names."""
        self.native.finish(self.entry.name, number, buffers, numbers)


@record
class Slot:
    """One parameter of a call: what was given, and what the program has it for."""

    given: Given
    type: Type | None
    """None where the program has no such parameter."""
    dims: Sequence[str | None] = ()
    """The names of the axes that it takes as they come."""
    bounds: tuple[int, int] | None = None
    """The numbers that it may be where it is no part of the code."""
    made: Any = None
    """The output that was made for a call that leaves it out, and whether the program surely writes all of it."""
    is_filled: bool = False
    device: str = CPU
    """Whose memory it is, where it is a tensor."""
    default: Known | None = None
    """What the dispatcher finds in its place where a call leaves it out, and the program is given another."""


@record
class Learned:
    """A call that went well: the program it ran, its arguments, and the parameters that it was returned."""

    callee: Callee
    slots: Sequence[Slot]
    returns: Sequence[int]
    written: int
    """One bit for each parameter that the program writes."""
    keep: object = None
    leading: Sequence[int] = ()
    """The words before those of the arguments."""
    threads: int = 0
    """How many threads the program ran on, 0 for as many as the settings say."""
    config: Configured | None = None
    """How the call was told to run, None where it was not."""
    trace: str | PathLike[str] | None = None
    """The file of the timeline that it is on."""

    @property
    def style(self) -> int:
        """Whether it gave every argument, or whose arrays were made for it."""
        made = next((slot.made for slot in self.slots if slot.made is not None), None)
        if made is None:
            return IN_PLACE
        return RETURNING | (OF_NUMPY if is_array(made) else OF_TORCH)

    def target(self) -> Target | None:
        """Return it as an entry of the dispatcher, not guarded yet; None for arguments that are left to Python."""
        if not all(_is_like_others(slot.made) for slot in self.slots):
            return None
        key, mask, ranges, same = [self.style], [-1], list[tuple[int, int, int]](), dict[str, list[int]]()
        for slot in self.slots:
            added = _key(slot.given if slot.default is None else slot.default, slot.device)
            if added is None:
                return None
            if slot.made is not None:
                continue
            if slot.bounds is not None:
                ranges.append((len(key) + 1, *slot.bounds))
            for axis, name in enumerate(slot.dims if self.style == IN_PLACE else ()):
                if name is not None:
                    same.setdefault(name, []).append(len(key) + 1 + axis)
            mask += [-1, *[0 if slot.bounds is not None else -1] * (len(added) - 1)]
            key += added
        for places in same.values():
            for place in places:
                mask[place] = 0
        if self.config is not None:
            key, mask = [key[0] | CONFIGURED, *key[1:], *self.config.identities], mask + [-1] * len(self.config.names)
        pairs = [(places[0], other) for places in same.values() for other in places[1:]]
        known = [slot.given.value for slot in self.slots if isinstance(slot.given, Known)]  # some go by their identity
        address, threads, recorder = self.callee.native.address(self.callee.entry.name), self.threads, None
        if self.trace is not None:
            threads = threads or thread_count()
            recorder = recorder_of(self.trace, self.callee.native, threads)
            if recorder is None:
                return None
        return Target(
            key, mask, address, Guards(), self._scalars(), pairs, [self.callee, self.keep, known, self.config],
            self.returns, ranges, self._makers(), threads, recorder,
        )  # fmt: skip

    def _scalars(self) -> list[tuple[int, int]]:
        """Return which launch words are numbers of the code, and their values."""
        found = list(enumerate(self.leading))
        at = len(found)
        for slot in self.slots:
            if isinstance(slot.given, TensorMeta):
                at += tensor_word_count(len(slot.given.shape))
            elif isinstance(slot.given, Known) and isinstance(slot.type, ScalarType):
                if slot.bounds is None:
                    found.append((at, scalar_word(slot.type.dtype, round_scalar(slot.given.value, slot.type.dtype))))
                at += 1
        return found

    def _makers(self) -> list[tuple[Callable[[], Any], int, int]]:
        """Return what makes each output that was left out."""
        tensors = [number for number, slot in enumerate(self.slots) if isinstance(slot.given, TensorMeta)]
        found: list[tuple[Callable[[], Any], int, int]] = []
        for number, slot in enumerate(self.slots):
            if slot.made is not None:
                is_clear = slot.is_filled or is_cleared(slot.made)
                found.append((maker(slot.made, slot.is_filled), number, -1 if is_clear else tensors.index(number)))
        return found


def _is_like_others(made: Any) -> bool:
    """Return whether more outputs can be made like one: NumPy's and torch's can, CuPy's only by Python."""
    torch: Any = imported("torch")
    return made is None or is_array(made) or (torch is not None and isinstance(made, torch.Tensor))


def maker(output: Any, is_filled: bool) -> Callable[[], Any]:
    """Return the function that makes another output like one: of torch and the host, with anything in it.

    So are others where the program fills them.
    """
    if is_array(output):
        return partial(np.empty if is_filled else np.zeros, output.shape, output.dtype)
    torch: Any = sys.modules["torch"]
    if is_filled and output.device.type != CPU:
        return _device_memory(torch, output)
    if is_cleared(output):
        make = torch.empty if is_filled else torch.zeros
        return partial(make, tuple(output.shape), dtype=output.dtype, device=output.device)
    return partial(torch.empty_like, torch.zeros_like(output))


def _device_memory(torch: Any, output: Any) -> Callable[[], Any]:
    """Return what makes memory of a device: where there is only one, what the code that torch compiles calls."""
    like = tuple(output.shape), tuple(output.stride())
    direct = getattr(torch._C._dynamo.guards, "_empty_strided_cuda", None)
    if direct is not None and torch.cuda.device_count() == 1:
        return partial(direct, *like, output.dtype)
    return partial(torch.empty_strided, *like, dtype=output.dtype, device=output.device)


def is_cleared(output: Any) -> bool:
    """Return whether the processor has nothing to clear in outputs like one: they are zeros, or not in its memory."""
    return is_array(output) or output.device.type != CPU


def open_bounds(dtype: DataType, value: object, bounds: tuple[int, int] | None) -> tuple[int, int] | None:
    """Return the numbers that may stand for one that is a parameter of the program; None where each is told apart.

    Integers are what they are; a float is the word of a single one. What else there is has to be rounded first.
    """
    if dtype.is_int() and type(value) is int:
        low, high = int(max(dtype.limits[0], INDEX.limits[0])), int(min(dtype.limits[1], INDEX.limits[1]))
        return (low, high) if bounds is None else (max(low, bounds[0]), min(high, bounds[1]))
    if dtype == FP32 and type(value) is float and bounds is None:
        return -(1 << 63), (1 << 63) - 1
    return None


def symbols(type_: Type) -> list[str | None]:
    """Return the names of the axes that a program takes as they come."""
    shape = type_.shape if isinstance(type_, TensorType) else ()
    return [extent.name if isinstance(extent, Symbol) else None for extent in shape]


def given_back(entry: Function, returns: Sequence[str] | None) -> Sequence[str]:
    """Return the parameters that a call with every argument gives back: none where it is for its outputs."""
    has_output = any(d is ParamDirection.Out for d in entry.param_directions)
    return () if has_output or returns is None or not entry.return_types else returns


def fits(entry: Function, count: int, returns: Sequence[str] | None) -> bool:
    """Return whether the dispatcher can call an entry with so many arguments, which returns some of them.

    It gives back arguments alone, its tables have so much room, and it takes extents that are numbers or names.
    """
    params = [param.type for param in entry.params]
    if count > MAX_PARAMS or not all(isinstance(type_, (TensorType, ScalarType)) for type_ in params):
        return False
    extents = [extent for type_ in params if isinstance(type_, TensorType) for extent in type_.shape]
    has_output = any(d is ParamDirection.Out for d in entry.param_directions)
    is_given = has_output or returns is not None or not entry.return_types
    has_room = word_count(*params, *entry.return_types) <= LAUNCH_WORDS + RESULT_WORDS
    return has_room and is_given and all(isinstance(extent, (int, Symbol)) for extent in extents)


def _key(given: Given, device: str) -> list[int] | None:
    if isinstance(given, TensorMeta):
        found, lies = tensor_key(given.dtype, given.shape), _lies(given) << code.LIES
        return None if found is None else [found[0] | device_bits(device) | lies, *found[1:]]
    return scalar_key(given.value) if isinstance(given, Known) else None


def _lies(given: TensorMeta) -> int:
    """Return how a tensor lies, as the first word of its key says it."""
    return 1 if given.is_turned else given.step if given.step > 1 else 0


def device_bits(device: str) -> int:
    """Return what a device adds to the first word of a tensor's key: of the host's memory nothing."""
    kind, _, number = device.partition(":")
    return 0 if kind == CPU else _KINDS[kind] << code.DEVICE_KIND | int(number or 0) + 1 << code.DEVICE_NUMBER


_KINDS = {"cuda": 1}
"""Torch's numbers of the kinds of devices whose tensors are dispatched."""


def tensor_key(dtype: DataType, shape: Sequence[int | DynDim]) -> list[int] | None:
    """Return the words that a tensor adds to a key, None for one that is left to Python."""
    word = dtype_word(dtype.name)
    extents = [extent for extent in shape if isinstance(extent, int)]
    if word is None or len(extents) != len(shape) or len(extents) > code.MAX_RANK:
        return None
    return [code.TENSOR | len(extents) << 32 | word, *extents]


def scalar_key(value: object) -> list[int] | None:
    """Return the words that anything else adds to a key, None for what is left to Python."""
    if value is None:
        return [code.NONE]
    if type(value) is bool:
        return [code.BOOL, int(value)]
    if type(value) is float:
        return [code.FLOAT, struct.unpack("<q", struct.pack("<d", value))[0]]
    if type(value) is int and -(1 << 63) <= value < 1 << 63:
        return [code.INTEGER, value]
    return [code.ITSELF, id(value)] if is_itself(value) else None
