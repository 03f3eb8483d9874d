"""Loaded programs: host functions and kernels on the GPUs that they are called for.

Nothing is asked of a GPU before a program is called: what was compiled for one can be looked at and kept anywhere.
"""

from __future__ import annotations

import atexit
import ctypes
import json
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn
from weakref import WeakSet

from tilewright.backends.cuda.driver import (
    DriverError,
    current_stream,
    driver,
    fixed_stream,
    is_there,
    number_of,
    stream_function,
)
from tilewright.backends.cuda.host import element_code, map_code
from tilewright.backends.cuda.host.graph_words import ENTRY_WORDS, STATE_WORDS, STATES, STREAMS, TRIES
from tilewright.backends.cuda.host.launch_code import (
    DRIVER,
    EARLIER,
    HEAD,
    LOAD,
    PRINT,
    STREAM,
    TABLE,
    TOO_MANY,
    Table,
)
from tilewright.backends.cuda.reports import KERNELS
from tilewright.backends.devices import Seat
from tilewright.backends.host import HostProgram
from tilewright.backends.interface import Code
from tilewright.core.program import Program
from tilewright.errors import ExecutionError
from tilewright.forks import computed_once
from tilewright.imported import imported
from tilewright.native.context import INTERRUPTED
from tilewright.native.support import carried

if TYPE_CHECKING:  # which only traced calls need
    from tilewright.backends.cuda.timeline import Timeline

PATIENCE = 5.0
"""Seconds that the end of a process waits for its kernels, at most."""

LATE = "an earlier call of this program has done that, and this one has not run"
LAST = "the last call of this program has done that, and no call was left to raise it"
BLOCKING = "with CUDA_LAUNCH_BLOCKING=1 every call waits, and raises what it has done itself"


_programs: WeakSet[PlacedProgram] = WeakSet()
_process: list[int] = []
"""The process that looks at its programs when it ends; a child of it has no driver."""


def look_at_exit(program: PlacedProgram) -> None:
    """Have what the kernels of a program note shown when the process ends, if no call has raised it by then."""
    _programs.add(program)
    if os.getpid() not in _process:
        _process[:] = [os.getpid()]
        atexit.register(show_what_is_left)


def show_what_is_left() -> None:
    """Write the errors of this process's programs that no call has raised, once their kernels are done."""
    if _process != [os.getpid()] or not is_there():
        return
    for device in {program.device for program in _programs}:
        with suppress(ExecutionError):  # of a GPU that is in no state to be asked
            driver().wait(device, PATIENCE)
    for said in filter(None, [program.left_over() for program in _programs]):
        sys.stderr.write(f"{said}\n")


class LaunchedProgram(HostProgram):
    """A program for GPUs: on each, it is loaded when it is first called there."""

    def __init__(self, program: Program, code: Code) -> None:
        self.program, self.code = program, code
        self.emit = carried(code.objects)
        self._placed: dict[str, PlacedProgram] = {}

    def on(self, device: str) -> HostProgram:
        """Return the program where its tensors lie."""
        if device not in self._placed:
            self._placed[device] = PlacedProgram(self.program, self.code, number_of(device))
        return self._placed[device]

    def of_rank(self, seat: Seat) -> PlacedProgram:
        """Return the program for one rank, with all of its kernels loaded: that would wait for those that run."""
        made = PlacedProgram(self.program, self.code, seat.device, seat=seat)
        made.load_all()
        return made


_Head = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_uint64)
_Load = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int64)
_Show = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)


class PlacedProgram(HostProgram):
    """A program on one GPU, where kernels are loaded as they are first launched."""

    def __init__(
        self, program: Program, code: Code, device: int, timeline: Timeline | None = None, seat: Seat | None = None
    ) -> None:
        self.device, self._timeline, self._seat = device, timeline, seat
        self._table: Any = None
        self._graphs: Any = None
        self._keep: list[object] = []
        super().__init__(program, code, self._symbols(code))
        look_at_exit(self)

    @property
    def timeline(self) -> Timeline | None:
        """What the GPU notes of its launches, where it is traced."""
        return self._timeline

    @computed_once
    def _traced(self) -> PlacedProgram:
        from tilewright.backends.cuda.timeline import timeline

        return PlacedProgram(self.program, self.code, self.device, timeline(self.device))

    def traced(self) -> HostProgram:
        """Return the program loaded once more, its launches between events: one by one, never as a graph."""
        return self._traced

    def _symbols(self, code: Code) -> dict[str, int]:
        """Return where everything lies that host functions name."""
        found = driver()
        have = found.capability(self.device)
        wanted = code.target.capability
        if have // 10 != wanted // 10 or have < wanted:
            raise ExecutionError(f"kernels for {code.target.name} cannot run on this GPU, which is sm_{have}")
        listed = json.loads(code.objects[KERNELS])
        kernels: list[dict[str, Any]] = listed["kernels"]
        words: list[int] = [found.context(self.device), self.device, *found.shared_word(self.device)]
        words.append(TOO_MANY if self._seat is None else self._seat.room)
        for kernel in kernels:
            most = found.multiprocessors(self.device) if kernel.get("takes_turns") else TOO_MANY
            words += [0, kernel["threads"], kernel["shared"], self._held(kernel.get("boxes", ())), most]
            is_early = kernel.get("waits", False) and self._seat is None  # it might stand in the way of other ranks
            words.append(int(is_early))
        self._table = (ctypes.c_uint64 * len(words))(*words)
        self._graphs = (ctypes.c_uint64 * (ENTRY_WORDS * len(code.symbols)))()
        is_watched = self._timeline is not None or os.environ.get("CUDA_LAUNCH_BLOCKING") == "1"
        if is_watched or self._seat is not None:  # which graphs know nothing of
            self._graphs[::STATE_WORDS] = [TRIES] * (STREAMS * len(code.symbols))
        if self._seat is None:
            stream, kept = stream_function(imported("torch") is not None)
        else:
            stream, kept = fixed_stream(self._seat.stream)
        head = _Head(self._head)
        load = _Load(partial(self._load, code, kernels))
        show = _Show(partial(self._show, listed.get("prints", ())))
        self._keep += [kept, load, show, head]
        return {
            TABLE: ctypes.addressof(self._table),
            STATES: ctypes.addressof(self._graphs),
            STREAM: stream,
            LOAD: ctypes.cast(load, ctypes.c_void_p).value or 0,
            HEAD: ctypes.cast(head, ctypes.c_void_p).value or 0,
            PRINT: ctypes.cast(show, ctypes.c_void_p).value or 0,
            **{name: found.address(name) for name in (*DRIVER, *element_code.DRIVER, *map_code.DRIVER)},
            **({} if self._timeline is None else self._timeline.symbols),
        }

    def _held(self, words: Sequence[int]) -> int:
        """Return where words lie, as long as the program does; 0 where there are none."""
        made = (ctypes.c_uint64 * len(words))(*words)
        self._keep.append(made)
        return ctypes.addressof(made) if words else 0

    def _head(self, window: int) -> int:
        """Return where the host reads what lies in front of a window."""
        assert self._seat is not None
        return self._seat.heads[window]

    def load_all(self) -> None:
        """Load all kernels; ExecutionError says which error of the driver's kept one from it."""
        kernels: list[dict[str, Any]] = json.loads(self.code.objects[KERNELS])["kernels"]
        for number, kernel in enumerate(kernels):
            if code := self._load(self.code, kernels, number):
                raise ExecutionError(f"the GPU takes no kernel `{kernel['name']}`: the driver's error {code}")

    def _load(self, code: Code, kernels: Sequence[Mapping[str, Any]], number: int) -> int:
        """Load a kernel, which is about to be launched for the first time; return the driver's error, or 0."""
        kernel = kernels[number]
        try:
            with driver().using(self.device):
                found = driver().function(code.objects[kernel["object"]], kernel["name"], kernel["shared"])
        except DriverError as error:
            return error.code
        self._table[Table.KERNELS + Table.ROW * number] = found
        if self._timeline is not None:
            self._timeline.names[found] = kernel["name"]
        return 0

    def _show(self, prints: Sequence[Sequence[Any]], stream: int | None, buffer: int, room: int) -> int:
        """Show what a kernel that was just launched prints, once it is done; return the driver's error, or 0."""
        from tilewright.backends.cuda.prints import Print, said

        try:
            (asked,) = driver().words(buffer, 1, stream)
            words = driver().words(buffer, 1 + min(asked, room), stream)
        except DriverError as error:
            return error.code
        with open(1, "wb", closefd=False) as output:
            output.write(said(words, [Print(*each) for each in prints]).encode())
        return 0

    def _fail(self, name: str, number: int, numbers: Sequence[int]) -> NoReturn:
        """Raise what ended a run, or kept it from beginning."""
        is_late = number != INTERRUPTED and bool(number & EARLIER)
        try:
            super()._fail(name, number & ~EARLIER if is_late else number, numbers)
        except ExecutionError as error:
            if is_late:
                error.notes, error.hint = (*error.notes, LATE), error.hint or BLOCKING
            raise

    def left_over(self) -> str:
        """Return what kernels have noted and no call has raised, as it would be shown, or nothing."""
        try:
            self.finish(next(iter(self.code.symbols)), 0, 0)
        except ExecutionError as error:
            error.notes = (*error.notes, LAST)
            return f"{type(error).__name__}: {error}"
        return ""

    def finish(self, name: str, number: int, buffers: int, numbers: Sequence[int] = ()) -> None:
        """Raise what a run did wrong, and what kernels have noted meanwhile: all of it, where launches are blocking."""
        node = buffers
        while node:  # which a program leaves that returns what it has made
            node, memory = (ctypes.c_uint64 * 2).from_address(node)
            stream = current_stream(self.device) if self._seat is None else self._seat.stream
            driver().call("cuMemFreeAsync", ctypes.c_uint64(memory), ctypes.c_void_p(stream))
        noted = ctypes.c_int64.from_address(self._table[Table.ERROR_WORD])
        if not number and noted.value:
            number, noted.value = noted.value, 0
        super().finish(name, number, buffers, numbers)
