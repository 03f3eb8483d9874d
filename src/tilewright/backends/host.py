"""Host programs: the host functions of a program's code, loaded and called; every back end that makes any uses this.

Whoever only loads code that was made before pays for nothing else: no compiler is imported here.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import NoReturn

from tilewright.backends.devices import Seat
from tilewright.backends.interface import Code, Timeline
from tilewright.core.program import Program
from tilewright.errors import ExecutionError
from tilewright.native.context import INDEX, INTERRUPTED
from tilewright.native.interrupts import raise_interrupt
from tilewright.native.libraries import c_library
from tilewright.native.loader import load
from tilewright.native.support import carried


class HostProgram:
    """A program's entries, called with words and a context as `abi` has them.

    Of the program only what its entries declare is asked for.
    """

    def __init__(self, program: Program, code: Code, symbols: Mapping[str, int] | None = None) -> None:
        self.program = program
        self.code = code
        self.emit = carried(code.objects)
        self.loaded = load(code.object, symbols)
        self.calls = {
            name: self.loaded.function(symbol, None, ctypes.c_void_p, ctypes.c_void_p)
            for name, symbol in code.symbols.items()
        }

    @property
    def timeline(self) -> Timeline | None:
        """What a device notes of the launches of a traced program."""
        return None

    def on(self, device: str) -> HostProgram:
        """Return the program for tensors of a device: it is the same for all memory that the processor reaches."""
        return self

    def of_rank(self, seat: Seat) -> HostProgram:
        """Return the program for one rank, ready to run where that sits."""
        return self

    def traced(self) -> HostProgram:
        """Return the program as a timeline can show what it launches."""
        return self

    def finish(self, name: str, number: int, buffers: int, numbers: Sequence[int] = ()) -> None:
        """Free what a run that was started elsewhere has made, and raise what it did wrong with its numbers."""
        _free(buffers)
        if number:
            self._fail(name, number, numbers)

    def address(self, name: str) -> int:
        """Return where the code of an entry lies."""
        return self.loaded.address(self.code.symbols[name])

    def _fail(self, name: str, number: int, numbers: Sequence[int]) -> NoReturn:
        """Raise what ended a run."""
        if number == INTERRUPTED:
            raise_interrupt()
        message, span, function, exact = self.code.errors[(number & 0xFFFFFFFF) - 1]
        if exact and numbers:
            message = "\n".join([exact.format(*numbers), *message.split("\n")[1:]])
        error = ExecutionError(message.replace(INDEX, str(number >> 32)), spans=[span])
        error.function = function or name
        raise error


def _free(head: int) -> None:
    """Free the list of buffers a program made."""
    while head:
        following = ctypes.c_int64.from_address(head).value
        free_block(head)
        head = following


def free_block(address: int) -> None:
    """Give back a block of memory that a program has asked the C library for."""
    _libc_free()(address)


@cache
def _libc_free() -> Callable[[int], None]:
    function = c_library().free
    function.argtypes, function.restype = [ctypes.c_void_p], None
    return function
