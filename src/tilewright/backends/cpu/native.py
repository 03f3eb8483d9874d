"""Native programs: a program's object code loaded and called.

Whoever only loads code that was made before pays for nothing else: neither LLVM nor the emitter is imported here.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import NoReturn

from tilewright.backends.cpu.host.options import Options
from tilewright.core.program import Program
from tilewright.errors import ArtifactError, ExecutionError
from tilewright.native.assemble import assemble
from tilewright.native.context import INTERRUPTED
from tilewright.native.interrupts import raise_interrupt
from tilewright.native.loader import load
from tilewright.native.target import Target, host, missing_features
from tilewright.native.threads import Emit, emitted
from tilewright.records import record
from tilewright.source import Span


@record
class NativeCode:
    """A program's code for one target: its entries' symbols, and what the numbers of its errors mean."""

    target: Target
    object: bytes
    symbols: Mapping[str, str]
    errors: Sequence[tuple[str, Span]]
    text: str = ""
    """The LLVM IR it was made from; none is left of code that was kept."""


Timed = Callable[[str], AbstractContextManager[None]]
"""Times what happens inside, as the stage of that name."""


def compile_native(
    program: Program,
    target: Target | None = None,
    options: Options | None = None,
    entries: Sequence[str] | None = None,
    timed: Timed = nullcontext,
) -> NativeCode:
    """Return a lowered program as native code with an entry for each function a caller can start.

    The stages are `compiler`, which loads it and takes long only once in a process, `emission` and `LLVM`.
    """
    with timed("compiler"):
        from tilewright.backends.cpu.host.program import ProgramEmitter  # 0.2 s that loading code does without

        emitter = ProgramEmitter(program, target or host(), options or Options.current())
    with timed("emission"):
        functions = program.entries if entries is None else [program[name] for name in entries]
        symbols = {function.name: emitter.entry(function) for function in functions}
        text = emitter.module.text()
    with timed("LLVM"):
        code = assemble(text, emitter.target).object
    return NativeCode(emitter.target, code, symbols, emitter.errors, text)


class NativeProgram:
    """A program's entries, called with words and a context as `backends.abi` has them.

    Of the program only what its entries declare is asked for. `emit` gives the object code that runs chunks in
    parallel; code that was kept brings its own.
    """

    def __init__(self, program: Program, code: NativeCode, emit: Emit = emitted) -> None:
        missing = missing_features(code.target)
        if missing:
            raise ArtifactError(f"code for {code.target.cpu} cannot run here: it needs {', '.join(missing)}")
        self.program = program
        self.code = code
        self.emit = emit
        self.loaded = load(code.object)
        self.calls = {
            name: self.loaded.function(symbol, None, ctypes.c_void_p, ctypes.c_void_p)
            for name, symbol in code.symbols.items()
        }

    def finish(self, name: str, number: int, buffers: int) -> None:
        """Free what a run that was started elsewhere has made, and raise what it did wrong."""
        _free(buffers)
        if number:
            self._fail(name, number)

    def address(self, name: str) -> int:
        """Return where the code of an entry lies."""
        return self.loaded.address(self.code.symbols[name])

    def _fail(self, name: str, number: int) -> NoReturn:
        """Raise what ended a run."""
        if number == INTERRUPTED:
            raise_interrupt()
        message, span = self.code.errors[number - 1]
        error = ExecutionError(message, spans=[span])
        error.function = name
        raise error


def _free(head: int) -> None:
    """Free the list of buffers a program made."""
    while head:
        following = ctypes.c_int64.from_address(head).value
        _libc_free()(head)
        head = following


@cache
def _libc_free() -> Callable[[int], None]:
    function = ctypes.CDLL(None).free
    function.argtypes, function.restype = [ctypes.c_void_p], None
    return function
