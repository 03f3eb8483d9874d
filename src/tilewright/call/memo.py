"""The memo: calls found and run by Python, where machine code cannot be emitted.

A call that was checked once is known by how it was written and by what its arguments are: element types, shapes,
strides and torch's own keys of tensors, and numbers. Whether one is like the last, torch's own guards tell at a fifth
of what reading its tensors costs. Calls exactly like it are launched by the words it had, with other addresses, once
everything that can change between two such calls has been looked at. All others go to the fallback.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from types import FunctionType
from typing import Any, cast

from tilewright import settings
from tilewright.arrays import np
from tilewright.backends.abi import scalar_word
from tilewright.call.argument import Argument
from tilewright.call.dispatcher import LIMIT, Parameter, surroundings, watched_by_all
from tilewright.call.frameworks import argument_of, is_tensor
from tilewright.call.guards import Guards
from tilewright.call.ready_calls import MISSED, Ready, ReadyTensor
from tilewright.call.tables import Target
from tilewright.call.targets import Learned, scalar_key
from tilewright.call.torch_state import is_traced
from tilewright.call.written_calls import CONFIG, Configured, Written
from tilewright.core.region import overlaps_itself
from tilewright.core.types import ScalarType, Type
from tilewright.dtypes import round_scalar
from tilewright.imported import imported
from tilewright.native.context import context_words
from tilewright.native.interrupts import look_address
from tilewright.native.threads import parallel_address


class Memo:
    """The calls of one callable as Python finds them; `function` is whose defaults stand in for arguments."""

    def __init__(
        self,
        parameters: Sequence[Parameter],
        fallback: Callable[..., Any],
        function: FunctionType | None = None,
        configurable: bool = False,
    ) -> None:
        self._parameters = parameters
        self._fallback = fallback
        self._function = function
        self._configurable = configurable
        self._configured: Configured | None = None
        """How configurations are read, None before a call with one was learned."""
        self._known: dict[Any, Ready] = {}
        self._last: tuple[Callable[[Sequence[Any]], bool], Ready | None] = (_nothing, None)
        """The call that was made last, and whether some arguments are like its own."""
        self._surroundings, self._holds = surroundings(), Guards(watched_by_all()).hold
        self._threads = settings.num_threads()
        self._asked = sys.modules["torch"].get_num_threads if settings.follows_torch() else lambda: self._threads
        self._context = context_words(parallel_address(self._threads), look_address(), self._threads)
        self.hits = 0

    def is_current(self) -> bool:
        """Return whether the settings are those it was made under."""
        return self._surroundings == surroundings()

    def entrance(self) -> Callable[..., Any]:
        """Return the function to call."""
        fallback, function = self._fallback, self._function
        holds, asked, threads = self._holds, self._asked, self._threads

        def call(*args: Any, **named: Any) -> Any:
            is_alike, ready = self._last
            given: Sequence[Any] = args
            if named or not is_alike(args):
                ready, given = self._looked_up(args, named)
            if ready is None or not holds() or asked() != threads or not ready.holds():
                return fallback(*args, **named)
            if function is not None and function.__defaults__ is not ready.defaults:
                return fallback(*args, **named)
            found = ready.launched(given if ready.is_plain else ready.values(given))
            if found is MISSED:
                return fallback(*args, **named)
            self.hits += 1
            return found

        return call

    def known(self, call: Learned, target: Target, written: Written) -> Target | None:
        """Return the entry that a program has for a call, or None."""
        found = self._found(written.args, written.named, _options(written.config))
        is_same = found is not None and found.callee is call.callee and self._has_its_defaults(found)
        return found.target if found is not None and is_same else None

    def put(self, call: Learned, target: Target, written: Written) -> None:
        """Let calls written like one find its program."""
        ready = self._ready(call, target, written.args, written.named)
        if ready is not None:
            if len(self._known) >= LIMIT:
                self._known.clear()
            self._configured = self._configured or written.config
            self._known[_key(written.args, written.named), _options(written.config)] = ready

    def _looked_up(self, args: Sequence[Any], named: Mapping[str, Any]) -> tuple[Ready | None, Sequence[Any]]:
        """Return a call like one that is unlike the last, None where there is none, and its arguments."""
        options: Sequence[int] | None = ()
        if self._configurable and CONFIG in named:
            named = {**named}
            options = self._read(named.pop(CONFIG))
        given = (*args, *named.values()) if named else args
        ready = None if options is None else self._found(args, named, options)
        if ready is None or is_traced() or _is_recorded(given):
            return None, given
        self._last = _nothing if named or options else _likeness(args), ready
        return ready, given

    def _read(self, config: Any) -> Sequence[int] | None:
        """Return the options of a call's configuration, None where only Python can read it."""
        if config is None:
            return ()
        return None if self._configured is None else self._configured.read(config)

    def _found(self, args: Sequence[Any], named: Mapping[str, Any], options: Sequence[int]) -> Ready | None:
        try:
            return self._known.get((_key(args, named), tuple(options)))
        except (AttributeError, TypeError, RuntimeError):  # what only looks like a tensor, or has no hash
            return None

    def _around_run(self, threads: int) -> Sequence[int]:
        """Return the context of a program that runs on so many threads, or on as many as the settings say."""
        return context_words(parallel_address(threads), look_address(), threads) if threads else self._context

    def _has_its_defaults(self, ready: Ready) -> bool:
        return self._function is None or self._function.__defaults__ is ready.defaults

    def _ready(self, call: Learned, target: Target, args: Sequence[Any], named: Mapping[str, Any]) -> Ready | None:
        """Return a call that can be made again, None where code cannot address its arguments, or a timeline has it."""
        if target.recorder is not None:
            return None
        made = [slot.made is not None for slot in call.slots]
        placed = [(k, parameter) for k, parameter in enumerate(self._parameters) if parameter.is_placed]
        places = [k for k, parameter in placed if not (any(made) and parameter.is_output)]
        names = [parameter.name for parameter in self._parameters]
        order = [*places[: len(args)], *(names.index(name) for name in named)]
        sources = [order.index(k) if k in order else -1 for k in range(len(names))]
        defaults = self._function.__defaults__ if self._function is not None else None
        found = Ready(target, call.callee, sources, defaults, (), (), self._around_run(target.threads))
        tensors: list[ReadyTensor] = []
        words: list[int] = []
        for k, value in enumerate(found.values([*args, *named.values()])):
            if is_tensor(value):
                argument, is_written = argument_of(value, names[k]), bool(call.written >> k & 1)
                if not _is_regular(value, argument, is_written):
                    return None
                low, high = (end - argument.address for end in argument.reach)
                size, is_array = argument.dtype.get_byte(), type(value) is np.ndarray
                tensors.append(ReadyTensor(k, len(words), size, low, high, is_written, is_array))
                words += argument.words
            elif type(value) in (int, float, bool):
                words.append(_number_word(call.slots[k].type, value))
            elif scalar_key(value) is None:
                return None
        for place, word in target.scalars:
            words[place] = word
        return replace(found, tensors=tensors, words=words)


def _number_word(type_: Type | None, value: Any) -> int:
    """Return what a program is launched with for a number, unless the code was made for another."""
    return scalar_word(type_.dtype, round_scalar(value, type_.dtype)) if isinstance(type_, ScalarType) else 0


def _options(config: Configured | None) -> tuple[int, ...]:
    return () if config is None else tuple(config.identities)


_exact = struct.Struct("d").pack


def _key(args: Sequence[Any], named: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return how a call was written, and all that its arguments are but where they lie."""
    torch, tensors = _torch_kinds()
    key: list[Any] = [len(args), *named]
    for value in (*args, *named.values()) if named else args:
        kind = cast("type[object]", type(value))
        if kind in tensors:
            key += kind, value.dtype, value.shape, value.stride(), torch._C._dispatch_keys(value).raw_repr()
        elif kind is np.ndarray:
            key += kind, value.dtype, value.shape, value.strides, value.flags.num
        else:
            key += kind, _exact(value) if kind is float else value
    return tuple(key)


def _torch_kinds() -> tuple[Any, tuple[type[Any], ...]]:
    """Return torch, and its tensors that are nothing but memory; without it there are none."""
    torch: Any = imported("torch")
    return torch, () if torch is None else (torch.Tensor, torch.nn.Parameter)


def _is_recorded(values: Sequence[Any]) -> bool:
    """Return whether torch records derivatives of what happens to some values; tangents are watched elsewhere."""
    torch: Any = imported("torch")
    if torch is None or not torch.is_grad_enabled():
        return False
    return any([getattr(value, "requires_grad", False) for value in values])


def _is_regular(value: Any, argument: Argument, is_written: bool) -> bool:
    """Return whether a program can address an argument as it lies in memory, and may write it."""
    is_plain = type(value) in (np.ndarray, *_torch_kinds()[1])
    is_spread = not overlaps_itself(argument.shape, argument.strides, argument.dtype.get_byte())
    return is_plain and argument.is_addressable and (is_spread or not is_written)


def _nothing(_: Sequence[Any]) -> bool:
    return False


def _likeness(args: Sequence[Any]) -> Callable[[Sequence[Any]], bool]:
    """Return whether arguments are torch tensors like some, none recorded and nobody looking on, by torch's guards."""
    torch: Any = imported("torch")
    if torch is None or not all(type(arg) is torch.Tensor and not arg.requires_grad for arg in args):
        return _nothing
    guards = _torch_guards(torch)
    if guards is None:
        return _nothing
    count, check = len(args), guards(*args, dynamic_dims_sizes=None, dynamic_dims_strides=None).check
    return lambda others: len(others) == count and check(*others)


@cache
def _torch_guards(torch: Any) -> Any:
    """Return the guards that torch compiles with, None where they do not tell apart what has to be."""
    try:
        guards = torch._C._dynamo.guards.TensorGuards
        with torch.inference_mode(False), torch.enable_grad():
            return guards if _tells_apart(torch, guards) else None
    except (AttributeError, RuntimeError, TypeError):
        return None


def _tells_apart(torch: Any, guards: Any) -> bool:
    tensor = torch.zeros(2, 3)
    check = guards(tensor, dynamic_dims_sizes=None, dynamic_dims_strides=None).check
    odd = [torch.zeros(3, 2), torch.zeros(3, 2).t(), tensor.double(), tensor.to("meta"), torch._neg_view(tensor)]
    odd += [tensor.to_sparse(), torch.nn.Parameter(tensor), tensor.clone().requires_grad_(), 1, None]
    return check(torch.ones(2, 3)) and not any(map(check, odd))
