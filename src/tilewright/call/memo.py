"""The memo: calls found and run by Python, where machine code cannot be emitted.

A call that was checked once is known by how it was written and by what its arguments are: element types, shapes,
strides and torch's own keys of tensors, and numbers. Calls exactly like it are launched by the words it had, with other
addresses, once everything that can change between two such calls has been looked at. All others go to the fallback.
"""

from __future__ import annotations

import os
import struct
import sys
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any, TypeAlias

from tilewright import settings
from tilewright.arrays import np
from tilewright.backends.abi import word_count
from tilewright.call.argument import Argument
from tilewright.call.dispatcher import LIMIT, Parameter, surroundings
from tilewright.call.frameworks import argument_of, is_tensor
from tilewright.call.launch import room
from tilewright.call.tables import Target, environment
from tilewright.call.targets import Callee, Learned, scalar_key
from tilewright.call.torch_state import gradient_objection, is_traced
from tilewright.core.region import overlaps_itself
from tilewright.native.context import Context, context_words
from tilewright.native.interrupts import look_address
from tilewright.native.threads import parallel_address
from tilewright.records import entity

Written: TypeAlias = "tuple[Sequence[Any], Mapping[str, Any]]"
"""A call as it was written: its arguments by position, and by name."""

_MISSED = object()


@entity
class _Tensor:
    """One tensor of a call: its parameter, where its address goes, and where its bytes lie from there."""

    parameter: int
    place: int
    size: int
    low: int
    high: int
    is_written: bool


@entity
class _Ready:
    """A call that can be made again: where its arguments come from, its words, and what must hold."""

    target: Target
    callee: Callee
    sources: Sequence[int]
    """By parameter: the number of an argument; -1 for a default, or an output to be made."""
    defaults: Sequence[Any]
    tensors: Sequence[_Tensor]
    words: Sequence[int]

    def values(self, given: Sequence[Any]) -> list[Any]:
        """Return the arguments by parameter, with new outputs where they are left out."""
        values = [given[k] if k >= 0 else default for k, default in zip(self.sources, self.defaults, strict=True)]
        for make, place, number in self.target.makers:
            values[place] = make() if number < 0 else make().zero_()
        return values

    def filled(self, values: Sequence[Any]) -> list[int] | None:
        """Return the words of a launch, None where memory is not what it must be."""
        words = list(self.words)
        reaches: list[tuple[int, int, bool]] = []
        for tensor in self.tensors:
            address = _address(values[tensor.parameter], tensor)
            if address is None or address % tensor.size:
                return None
            words[tensor.place] = address
            reaches.append((address + tensor.low, address + tensor.high, tensor.is_written))
        for position, (low, high, is_written) in enumerate(reaches):
            for other, (start, end, _) in enumerate(reaches):
                if is_written and other != position and low < end and start < high:
                    return None
        return words


class Memo:
    """The calls of one callable as Python finds them; `function` is whose defaults stand in for arguments."""

    def __init__(
        self, parameters: Sequence[Parameter], fallback: Callable[..., Any], function: FunctionType | None = None
    ) -> None:
        self._parameters = parameters
        self._fallback = fallback
        self._function = function
        self._known: dict[Any, _Ready] = {}
        self._surroundings, self._around = surroundings(), _around()
        self._context = context_words(parallel_address(settings.num_threads()), look_address())
        self.hits = 0

    def is_current(self) -> bool:
        """Return whether the settings are those it was made under."""
        return self._surroundings == surroundings()

    def entrance(self) -> Callable[..., Any]:
        """Return the function to call."""

        def call(*args: Any, **named: Any) -> Any:
            found = self._taken(args, named)
            return self._fallback(*args, **named) if found is _MISSED else found

        return call

    def known(self, call: Learned, target: Target, written: Written) -> Target | None:
        """Return the entry that a program has for a call, or None."""
        found = self._found(written)
        is_same = found is not None and found.callee is call.callee and self._holds(found)
        return found.target if found is not None and is_same else None

    def put(self, call: Learned, target: Target, written: Written) -> None:
        """Let calls written like one find its program."""
        ready = self._ready(call, target, *written)
        if ready is not None:
            if len(self._known) >= LIMIT:
                self._known.clear()
            self._known[_key(*written)] = ready

    def _taken(self, args: Sequence[Any], named: Mapping[str, Any]) -> Any:
        """Return what a call gives, or that it is none of ours."""
        ready, given = self._found((args, named)), [*args, *named.values()]
        if ready is None or _around() != self._around or is_traced() or any(map(gradient_objection, given)):
            return _MISSED
        if not self._holds(ready) or not ready.target.guards.hold():
            return _MISSED
        values = ready.values(given)
        words = ready.filled(values)
        return _MISSED if words is None else self._run(ready, words, values)

    def _found(self, written: Written) -> _Ready | None:
        try:
            return self._known.get(_key(*written))
        except (AttributeError, TypeError, RuntimeError):  # what only looks like a tensor, or has no hash
            return None

    def _holds(self, ready: _Ready) -> bool:
        return self._function is None or self._function.__defaults__ is ready.target.keep[-1]

    def _run(self, ready: _Ready, words: list[int], values: Sequence[Any]) -> Any:
        callee, context = ready.callee, room(self._context)
        callee.native.calls[callee.entry.name](room(words, word_count(*callee.entry.return_types)), context)
        if context[Context.ERROR] or context[Context.BUFFERS]:
            callee.finish(context[Context.ERROR], context[Context.BUFFERS])
        self.hits += 1
        given = [values[place] for place in ready.target.returns]
        return given[0] if len(given) == 1 else tuple(given) if given else None

    def _ready(self, call: Learned, target: Target, args: Sequence[Any], named: Mapping[str, Any]) -> _Ready | None:
        """Return a call that can be made again, None where code cannot address its arguments."""
        made = [slot.made is not None for slot in call.slots]
        places = [k for k, parameter in enumerate(self._parameters) if not (any(made) and parameter.is_output)]
        names = [parameter.name for parameter in self._parameters]
        order = [*places[: len(args)], *(names.index(name) for name in named)]
        sources = [order.index(k) if k in order else -1 for k in range(len(names))]
        defaults = (self._function.__defaults__ if self._function is not None else None) or ()
        padded = [*[None] * (len(names) - len(defaults)), *defaults]
        target.keep.append(self._function.__defaults__ if self._function is not None else None)
        ready = _Ready(target, call.callee, sources, padded, (), ())
        tensors: list[_Tensor] = []
        words: list[int] = []
        for k, value in enumerate(ready.values([*args, *named.values()])):
            if is_tensor(value):
                argument, is_written = argument_of(value, names[k]), bool(call.written >> k & 1)
                if not _is_regular(value, argument, is_written):
                    return None
                low, high = (end - argument.address for end in argument.reach)
                tensors.append(_Tensor(k, len(words), argument.dtype.get_byte(), low, high, is_written))
                words += argument.words
            elif type(value) in (int, float, bool):
                words.append(0)
            elif scalar_key(value) is None:
                return None
        for place, word in target.scalars:
            words[place] = word
        return _Ready(target, call.callee, sources, padded, tensors, words)


def _around() -> tuple[object, ...]:
    """Return what all calls depend on: the settings, and torch's threads."""
    held, torch = environment(), sys.modules.get("torch")
    count = getattr(torch, "get_num_threads", None)
    return (*map(held.get, _NAMES), torch is None, None if count is None else count())


_NAMES = [os.fsencode(name) for name in settings.NAMES]
_type: Any = type
_exact = struct.Struct("d").pack


def _key(args: Sequence[Any], named: Mapping[str, Any]) -> Any:
    """Return how a call was written, and all that its arguments are but where they lie."""
    return len(args), *named, *map(_kind, args), *map(_kind, named.values())


def _kind(value: Any) -> tuple[Any, ...]:
    kind = _type(value)
    if kind is np.ndarray:
        return kind, value.dtype, value.shape, value.strides, value.flags.num
    if kind is float:
        return kind, _exact(value)
    torch: Any = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return kind, value.dtype, value.shape, value.stride(), torch._C._dispatch_keys(value).raw_repr()
    return kind, value


def _is_regular(value: Any, argument: Argument, is_written: bool) -> bool:
    """Return whether a program can address an argument as it lies in memory, and may write it."""
    torch: Any = sys.modules.get("torch")
    is_plain = type(value) is np.ndarray or (torch is not None and type(value) in (torch.Tensor, torch.nn.Parameter))
    is_spread = not overlaps_itself(argument.shape, argument.strides, argument.dtype.get_byte())
    return is_plain and argument.is_addressable and (is_spread or not is_written)


def _address(value: Any, tensor: _Tensor) -> int | None:
    """Return where an array lies now, None where its memory is gone."""
    if type(value) is np.ndarray:
        return value.__array_interface__["data"][0]
    end = value.storage_offset() * tensor.size + tensor.high
    return value.data_ptr() if end <= value.untyped_storage().nbytes() else None
