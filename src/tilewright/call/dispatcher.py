"""Dispatchers: the builtin function of one callable that finds and calls compiled programs without Python.

It takes the calls it knows; `fallback` takes the rest, and adds what it finds. The machine code is the same for all
dispatchers and made once in a process.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

from tilewright import settings
from tilewright.arrays import np
from tilewright.call.builtin import builtin
from tilewright.call.guards import field_offset, slot_offset
from tilewright.call.tables import Lookup, StateWords, Target, address, environment, numpy_dtypes, watch_words, words
from tilewright.call.targets import Callee, Learned
from tilewright.call.torch_layout import forward_level, torch_layout, uses_cuda
from tilewright.call.words import IN_PLACE, State
from tilewright.call.written_calls import CONFIG, Configured
from tilewright.frontend.value_keys import MISSING
from tilewright.imported import imported
from tilewright.native.interrupts import look_address
from tilewright.native.threads import openmp, parallel_address
from tilewright.records import record

LIMIT = 1024
"""How many return-style and configured calls one dispatcher knows, each with its shapes and options."""


@record
class Parameter:
    """One parameter of a callable: the name that calls may give it by, or none."""

    name: str = ""
    is_output: bool = False
    is_pointer: bool = False
    is_placed: bool = True
    """Whether it takes arguments that are given by position."""


class Dispatcher:
    """The programs of one callable as machine code finds them.

    `function` is whose defaults stand in for arguments; programs have so many `leading` words before those. Calls may
    be `configurable`, by a keyword that is no parameter's.
    """

    def __init__(
        self,
        parameters: Sequence[Parameter],
        fallback: Callable[..., Any],
        function: FunctionType | None = None,
        leading: int = 0,
        configurable: bool = False,
    ) -> None:
        self._callees: list[Callee] = []
        self._lookup = Lookup()
        self._surroundings = surroundings()
        self._bounded = 0
        self._keep: list[Any] = [fallback, self._failed]
        self._builtin: Callable[..., Any] | None = None
        self.state: Any = StateWords()
        self.state.keep = self._keep, self._lookup
        filled: dict[State, int] = {
            State.PARAMS: len(parameters),
            State.LEADING: leading,
            State.CONFIG_NAME: id(sys.intern(CONFIG)) if configurable else 0,
            State.FALLBACK: id(fallback),
            State.FAILED: id(self._keep[1]),
            State.NDARRAY: id(np.ndarray),
            State.NUMPY_DTYPES: address(numpy_dtypes()),
            State.FLOAT: id(float),
            State.INT: id(int),
            State.BOOL: id(bool),
            State.STR: id(str),
            State.NONE: id(None),
            State.TRUE: id(True),
            **self._places(parameters, function),
            **_torch(),
            **_threads(),
            **self._watches(),
        }
        for place, word in filled.items():
            self.state[place] = word - (1 << 64) if word >> 63 else word

    @property
    def hits(self) -> int:
        """How many calls were taken."""
        return int(self.state[State.HITS])

    def is_current(self) -> bool:
        """Return whether the settings are those it was made under."""
        return self._surroundings == surroundings()

    def entrance(self) -> Callable[..., Any]:
        """Return the function to call, which keeps the tables alive; ImportError where its code cannot be made."""
        if self._builtin is None:
            self._builtin = builtin(self.state)
        return self._builtin

    def known(self, call: Learned, target: Target, *_: object) -> Target | None:
        """Return the entry that a program has for a target's key, or None."""
        is_new = call.callee not in self._callees
        return None if is_new else self._lookup.known(self._callees.index(call.callee), target.masked)

    def put(self, call: Learned, target: Target, *_: object) -> None:
        """Let calls like one find its program."""
        if call.callee not in self._callees:
            self._callees.append(call.callee)
        if target.key[0] != IN_PLACE:
            self._bounded += 1
            if self._bounded > LIMIT:
                self._lookup.forget(self.state)
                self._bounded = 1
        if call.config is not None and not self.state[State.CONFIG_TYPE]:
            self._read(call.config)
        self.state[State.WRITTEN] |= call.written
        self._lookup.put(self._callees.index(call.callee), target, self.state)

    def _read(self, config: Configured) -> None:
        """Let machine code read configurations of a class, where it has only slots."""
        places = [slot_offset(config.kind, name) for name in config.names]
        found = [place for place in places if place is not None]
        if len(found) == len(places):
            self._keep += [config.kind, table := words(found)]
            self.state[State.OPTIONS], self.state[State.OPTION_TABLE] = len(found), address(table)
            self.state[State.CONFIG_TYPE] = id(config.kind)

    def _failed(self, number: int, buffers: int, callee: int, *numbers: int) -> None:
        """Raise what a program did wrong, after freeing what it had made."""
        self._callees[callee].finish(number, buffers, numbers)

    def _places(self, parameters: Sequence[Parameter], function: FunctionType | None) -> dict[State, int]:
        """Return by what names, places and defaults arguments go."""
        names = [sys.intern(parameter.name) for parameter in parameters]
        table = words([id(name) if name else 0 for name in names])
        whole = [place for place, parameter in enumerate(parameters) if parameter.is_placed]
        inputs = [place for place in whole if not parameters[place].is_output]
        orders = words(inputs), words(whole)
        self._keep += [names, table, function, *orders]
        return {
            State.NAMES: address(table),
            State.DEFAULTS: 0 if function is None else id(function) + field_offset(FunctionType, "__defaults__"),
            State.OUTPUTS: sum(1 << place for place, parameter in enumerate(parameters) if parameter.is_output),
            State.POINTERS: sum(1 << place for place, parameter in enumerate(parameters) if parameter.is_pointer),
            State.INPUTS: len(inputs),
            State.INPUT_TABLE: address(orders[0]),
            State.PLACES: len(whole),
            State.PLACE_TABLE: address(orders[1]),
        }

    def _watches(self) -> dict[State, int]:
        """Return what is watched for all entries: the settings, and whether torch has come."""
        watched = watched_by_all()
        return {State.WATCHES: len(watched), State.WATCH_TABLE: address(watch_words(watched, self._keep))}


def watched_by_all() -> list[tuple[dict[Any, Any], dict[Any, Any]]]:
    """Return what must stay for all calls: the settings, whether torch has come, and that nobody looks for tangents."""
    held = environment()
    return [
        (held, {name: held.get(name, MISSING) for name in map(os.fsencode, settings.NAMES)}),
        (sys.modules, {"torch": imported("torch") or MISSING}),
        *forward_level(),
    ]


def _torch() -> dict[State, int]:
    """Return how torch lays tensors out, by the names that both have for it."""
    layout = torch_layout()
    found = {} if layout is None else vars(layout)
    words = {name: value if isinstance(value, int) else address(value) for name, value in found.items()}
    return {State[_PREFIXES.get(name, "TORCH_") + name.upper()]: word for name, word in words.items()}


_PREFIXES = {
    **dict.fromkeys(("data", "bytes", "lazy"), "STORAGE_"),
    **dict.fromkeys(("get_thread_local", "thread_plain", "thread_inference"), ""),
}


def _threads() -> dict[State, int]:
    """Return how programs run in parallel, and how to tell that this has changed."""
    count = settings.num_threads()
    asked = _max_threads() if settings.follows_torch() else 0
    return {
        State.PARALLEL: parallel_address(count),
        State.LOOK: look_address(),
        State.THREADS: count,
        State.GET_THREADS: asked,
    }


def surroundings() -> tuple[object, ...]:
    """Return what the state of every kernel depends on; a kernel whose state was made under another starts anew."""
    held = environment()
    threads = settings.num_threads()
    return (
        threads,
        settings.follows_torch(),
        id(imported("torch")),
        uses_cuda(),
        *(held.get(os.fsencode(n)) for n in settings.NAMES),
    )


def _max_threads() -> int:
    """Return the function of torch's OpenMP that tells how many threads a region would have, 0 without one."""
    runtime = openmp(imported("torch") is not None)
    return runtime.omp_get_max_threads if runtime is not None else 0
