"""Loaded programs: host functions and kernels on the GPUs that they are called for.

Nothing is asked of a GPU before a program is called: what was compiled for one can be looked at and kept anywhere.
"""

from __future__ import annotations

import ctypes
import json
import sys
from collections.abc import Sequence
from typing import Any

from tilewright.backends.cuda.driver import driver, number_of, stream_function
from tilewright.backends.cuda.host.graph_code import STATE_WORDS, STATES
from tilewright.backends.cuda.host.launch_code import DRIVER, STREAM, TABLE, Table
from tilewright.backends.host import HostProgram
from tilewright.backends.interface import Code
from tilewright.core.program import Program
from tilewright.errors import ExecutionError
from tilewright.native.support import carried

KERNELS = "kernels"
"""The object that says how each kernel is launched."""


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


class PlacedProgram(HostProgram):
    """A program on one GPU: its kernels loaded there, its host functions pointed to them."""

    def __init__(self, program: Program, code: Code, device: int) -> None:
        self.device = device
        self._table: Any = None
        self._graphs: Any = None
        self._keep: list[object] = []
        super().__init__(program, code, self._symbols(code))

    def _symbols(self, code: Code) -> dict[str, int]:
        """Load the kernels; return where everything lies that host functions name."""
        found = driver()
        have = found.capability(self.device)
        wanted = code.target.capability
        if have // 10 != wanted // 10 or have < wanted:
            raise ExecutionError(f"kernels for {code.target.name} cannot run on this GPU, which is sm_{have}")
        listed = json.loads(code.objects[KERNELS])
        kernels: list[dict[str, Any]] = listed["kernels"]
        words: list[int] = [found.context(self.device), self.device, *found.shared_word()]
        for kernel in kernels:
            function = found.function(code.objects[kernel["object"]], kernel["name"], kernel["shared"])
            words += [function, kernel["threads"], kernel["shared"], 0]
        self._table = (ctypes.c_uint64 * len(words))(*words)
        self._graphs = (ctypes.c_uint64 * (STATE_WORDS * len(code.symbols)))()
        stream, kept = stream_function("torch" in sys.modules)
        self._keep.append(kept)
        return {
            TABLE: ctypes.addressof(self._table),
            STATES: ctypes.addressof(self._graphs),
            STREAM: stream,
            **{name: found.address(name) for name in DRIVER},
        }

    def finish(self, name: str, number: int, buffers: int, numbers: Sequence[int] = ()) -> None:
        """Raise what a run did wrong, and what kernels have noted meanwhile: all of it, where launches are blocking."""
        noted = ctypes.c_uint64.from_address(self._table[Table.ERROR_WORD])
        if not number and noted.value:
            number, noted.value = noted.value, 0
        super().finish(name, number, buffers, numbers)
