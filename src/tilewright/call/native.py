"""The native way into a kernel: a builtin function that finds and calls compiled programs without Python.

It takes the calls it knows; `fallback` takes the rest, and adds what it finds. The dispatcher's code is the same for
all kernels and made once in a process.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from types import FunctionType
from typing import Any

from tilewright import settings
from tilewright.arrays import np
from tilewright.call.guards import field_offset
from tilewright.call.tables import (
    Lookup,
    StateWords,
    Target,
    address,
    environment,
    numpy_dtypes,
    watch_words,
    words,
)
from tilewright.call.torch_layout import forward_level, torch_layout
from tilewright.call.words import PYTHON, State
from tilewright.forks import Lock
from tilewright.frontend.value_keys import MISSING
from tilewright.keep.digest import digest
from tilewright.keep.fingerprint import toolchain
from tilewright.keep.store import configured
from tilewright.native.assemble import assemble
from tilewright.native.interrupts import look_address
from tilewright.native.loader import Loaded, load
from tilewright.native.target import PRESETS, llvm_files
from tilewright.native.threads import openmp, parallel_address

FASTCALL_WITH_KEYWORDS = 0x82
DISPATCHER = "dispatcher"


class _MethodDef(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


@cache
def is_available() -> bool:
    """Return whether this Python lays its objects out as the dispatcher's code expects."""
    if sys.implementation.name != "cpython" or sys.platform != "linux" or os.uname().machine != "x86_64":
        return False
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        return False
    array: Any = np.zeros((2, 3), np.float32)
    header = (ctypes.c_int64 * 9).from_address(id(array))
    number = ctypes.c_int32.from_address(header[7] + 28).value
    shape = (ctypes.c_int64 * 2).from_address(header[4])
    laid_out = header[1] == id(np.ndarray) and header[2] == array.ctypes.data and list(shape) == [2, 3]
    return laid_out and number == array.dtype.num and bool(header[8] & 0x400)


@cache
def _code() -> tuple[Loaded, _MethodDef]:
    """Return the dispatcher's code, mapped for the life of the process, and how Python knows it."""
    symbols = {name: ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0 for name in _PYTHON}
    loaded = load(_object(), symbols).pin()
    return loaded, _MethodDef(b"kernel", loaded.address("dispatch"), FASTCALL_WITH_KEYWORDS, None)


def _object() -> bytes:
    """Return the dispatcher's object code, kept like a program: whoever runs only kept programs needs no LLVM."""
    kept = configured()
    if not kept.is_on:
        return _assembled()
    key = digest(DISPATCHER, toolchain(*llvm_files()))
    found = kept.get(DISPATCHER, key)
    if found is None:
        found = _assembled()
        kept.put(DISPATCHER, key, found, DISPATCHER)
    return found


def _assembled() -> bytes:
    from tilewright.call.machine_code import dispatcher  # code that was kept does without

    return assemble(dispatcher(), PRESETS["x86-64"]).object


def _shared_code() -> tuple[Loaded, _MethodDef]:
    with _lock:
        return _code()


_PYTHON = tuple(name for name, _, _ in PYTHON)
_lock = Lock()


@dataclass
class Native:
    """One kernel's entries as the dispatcher sees them."""

    parameters: int
    fallback: Callable[..., Any]
    failed: Callable[[int, int, int], Any]
    state: Any = field(init=False)
    lookup: Lookup = field(default_factory=Lookup)
    keep: list[Any] = field(default_factory=list[Any])
    names: Sequence[str] = ()
    """The names that calls may give arguments by, in order; nothing for a parameter that is not to be named."""
    function: FunctionType | None = None
    """Whose defaults stand for arguments that calls leave out."""

    def __post_init__(self) -> None:
        """Fill in what all entries share."""
        self.state = StateWords()
        self.state.keep = self.keep, self.lookup
        filled: dict[State, int] = {
            State.PARAMS: self.parameters,
            State.FALLBACK: id(self.fallback),
            State.FAILED: id(self.failed),
            State.NDARRAY: id(np.ndarray),
            State.NUMPY_DTYPES: address(numpy_dtypes()),
            State.FLOAT: id(float),
            State.INT: id(int),
            State.BOOL: id(bool),
            State.STR: id(str),
            State.NONE: id(None),
            State.TRUE: id(True),
            **self._call_styles(),
            **self._torch(),
            **self._threads(),
            **self._surroundings(),
        }
        for place, word in filled.items():
            self.state[place] = word - (1 << 64) if word >> 63 else word
        self.keep += [self.fallback, self.failed]

    def builtin(self) -> Callable[..., Any]:
        """Return the function to call, which keeps this kernel's tables alive."""
        _, method = _shared_code()
        new = ctypes.pythonapi.PyCFunction_NewEx
        new.restype, new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
        return new(ctypes.addressof(method), self.state, None)

    def put(self, number: int, target: Target, written: int) -> None:
        """Let calls find a program by its number, which writes the parameters of these bits."""
        self.state[State.WRITTEN] |= written
        self.lookup.put(number, target, self.state)

    def _call_styles(self) -> dict[State, int]:
        """Return by what names and defaults arguments go."""
        names = [sys.intern(name) for name in self.names] or [""] * self.parameters
        table = words([id(name) if name else 0 for name in names])
        self.keep += [names, table, self.function]
        slot = 0 if self.function is None else id(self.function) + field_offset(FunctionType, "__defaults__")
        return {State.NAMES: address(table), State.DEFAULTS: slot}

    def _torch(self) -> dict[State, int]:
        layout = torch_layout()
        if layout is None:
            return {}
        return {
            State.TORCH_TENSOR: layout.tensor,
            State.TORCH_PARAMETER: layout.parameter,
            State.TORCH_DTYPES: address(layout.dtypes),
            State.TORCH_IMPL: layout.impl,
            State.TORCH_KEYS: layout.keys,
            State.TORCH_PLAIN: layout.plain,
            State.TORCH_INFERENCE: layout.inference,
            State.TORCH_GRAD: layout.grad,
            State.TORCH_STORAGE: layout.storage,
            State.STORAGE_DATA: layout.data,
            State.STORAGE_BYTES: layout.bytes,
            State.STORAGE_LAZY: layout.lazy,
            State.TORCH_RANK: layout.rank,
            State.TORCH_SIZES: layout.sizes,
            State.TORCH_STRIDES: layout.strides,
            State.TORCH_OFFSET: layout.offset,
            State.TORCH_DTYPE: layout.dtype,
            State.TORCH_REQUIRES: layout.requires,
            State.TORCH_RECORDS: layout.records,
            State.GET_THREAD_LOCAL: layout.get_thread_local,
            State.TORCH_THREAD: address(layout.thread),
            State.THREAD_PLAIN: layout.thread_plain,
            State.THREAD_INFERENCE: layout.thread_inference,
        }

    def _threads(self) -> dict[State, int]:
        """Return how programs run in parallel, and how to tell that this has changed."""
        count = settings.num_threads()
        asked = _max_threads() if settings.follows_torch() else 0
        return {
            State.PARALLEL: parallel_address(count),
            State.LOOK: look_address(),
            State.THREADS: count,
            State.GET_THREADS: asked,
        }

    @property
    def hits(self) -> int:
        """How many calls were taken."""
        return int(self.state[State.HITS])

    def _surroundings(self) -> dict[State, int]:
        """Return what is watched for all entries: the settings, and whether torch has come."""
        held = environment()
        names = [os.fsencode(name) for name in settings.NAMES]
        watched = [
            (held, {name: held.get(name, MISSING) for name in names}),
            (sys.modules, {"torch": sys.modules.get("torch", MISSING)}),
            *forward_level(),
        ]
        return {State.WATCHES: len(watched), State.WATCH_TABLE: address(watch_words(watched, self.keep))}


def surroundings() -> tuple[object, ...]:
    """Return what the state of every kernel depends on; a kernel whose state was made under another starts anew."""
    held = environment()
    threads = settings.num_threads()
    return (
        threads,
        settings.follows_torch(),
        id(sys.modules.get("torch")),
        *(held.get(os.fsencode(n)) for n in settings.NAMES),
    )


def _max_threads() -> int:
    """Return the function of torch's OpenMP that tells how many threads a region would have, 0 without one."""
    runtime = openmp("torch" in sys.modules)
    return runtime.omp_get_max_threads if runtime is not None else 0
