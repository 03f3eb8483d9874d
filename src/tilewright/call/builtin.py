"""The builtin: the dispatcher's machine code, kept like a program, as a function that Python calls."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

from tilewright.arrays import np
from tilewright.call.words import PYTHON
from tilewright.forks import Lock
from tilewright.keep.shared_code import kept
from tilewright.native.assemble import assemble
from tilewright.native.loader import Loaded, load
from tilewright.native.machines import here
from tilewright.native.target import own_baseline

FASTCALL_WITH_KEYWORDS, ONE_ARGUMENT = 0x82, 0x08
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
    machine = here()
    if sys.implementation.name != "cpython" or machine is None or not machine.is_linux:
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
def _code() -> tuple[Loaded, _MethodDef, _MethodDef]:
    """Return the dispatcher's code, mapped for the life of the process, and how Python knows calls and items."""
    symbols = {name: ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0 for name in _PYTHON}
    loaded = load(_object(), symbols).pin()
    dispatch = _MethodDef(b"kernel", loaded.address("dispatch"), FASTCALL_WITH_KEYWORDS, None)
    return loaded, dispatch, _MethodDef(b"__getitem__", loaded.address("item"), ONE_ARGUMENT, None)


def _object() -> bytes:
    """Return the dispatcher's object code, kept like a program: whoever runs only kept programs needs no LLVM."""
    return kept(DISPATCHER, _assembled)


def _assembled() -> bytes:
    from tilewright.call.machine_code import dispatcher  # code that was kept does without

    return assemble(dispatcher(), own_baseline()).object


_PYTHON = tuple(name for name, _, _ in PYTHON)
_lock = Lock()


def builtin(state: Any) -> Callable[..., Any]:
    """Return the function that dispatches by a state, and keeps it."""
    with _lock:
        _, method, _ = _code()
    return _function(method, state)


def item_builtin(state: Any) -> Callable[..., Any]:
    """Return the function that finds items by a state, and keeps it."""
    with _lock:
        _, _, method = _code()
    return _function(method, state)


def _function(method: _MethodDef, state: Any) -> Callable[..., Any]:
    new = ctypes.pythonapi.PyCFunction_NewEx
    new.restype, new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
    return new(ctypes.addressof(method), state, None)
