"""Launches without a GPU: host functions run, and a driver that starts nothing writes down what it is told."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from unit.backends.cuda.written import written

import tilewright.language as pl
from tilewright.backends.cuda import loaded
from tilewright.backends.cuda.backend import BACKEND
from tilewright.backends.cuda.loaded import KERNELS, LaunchedProgram
from tilewright.backends.cuda.target import named
from tilewright.backends.interface import PROGRAM, Code
from tilewright.errors import ExecutionError
from tilewright.native.assemble import assemble
from tilewright.native.context import Context

X, Y = 1 << 20, 2 << 20


class Recorder:
    """The driver's functions as programs call them: what they were told, in order."""

    def __init__(self) -> None:
        self.launches: list[tuple[int, int, list[int]]] = []
        """Kernel, blocks and the words of each launch."""
        self.allocated: list[int] = []
        self.freed: list[int] = []
        self.code = 0
        self.word = ctypes.c_uint64(0)
        self.current = ctypes.c_void_p(None)
        pointers = [ctypes.c_void_p] * 4
        self._keep: dict[str, Any] = {
            "cuCtxGetCurrent": ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_void_p))(self._get),
            "cuCtxSetCurrent": ctypes.CFUNCTYPE(ctypes.c_int, *pointers[:1])(self._set),
            "cuLaunchKernel": ctypes.CFUNCTYPE(ctypes.c_int, *pointers[:1], *[ctypes.c_int] * 7, *pointers[:3])(
                self._launch
            ),
            "cuMemAllocAsync": ctypes.CFUNCTYPE(
                ctypes.c_int, ctypes.POINTER(ctypes.c_void_p), ctypes.c_int64, *pointers[:1]
            )(self._allocate),
        }
        self._other = ctypes.CFUNCTYPE(ctypes.c_int, *pointers)(lambda *_: 0)

    def _get(self, place: Any) -> int:
        place[0] = self.current
        return 0

    def _set(self, context: int) -> int:
        self.current = ctypes.c_void_p(context)
        return 0

    def _launch(self, function: int, blocks: int, *rest: Any) -> int:
        *_, params, _ = rest
        count = self.counts[function - 1]
        places = (ctypes.c_void_p * count).from_address(params)
        self.launches.append((function - 1, blocks, [ctypes.c_int64.from_address(p).value for p in places if p]))
        return self.code

    def _allocate(self, place: Any, size: int, stream: Any) -> int:
        self.allocated.append(size)
        place[0] = ctypes.c_void_p((64 + len(self.allocated)) << 20)
        return 0

    # what loading asks

    counts: list[int] = []

    def capability(self, device: int) -> int:
        return 90

    def context(self, device: int) -> int:
        return 77

    def shared_word(self) -> tuple[int, int]:
        return ctypes.addressof(self.word), 99

    def function(self, cubin: bytes, name: str, shared: int) -> int:
        return int(cubin) + 1

    def address(self, name: str) -> int:
        found = ctypes.cast(self._keep.get(name, self._other), ctypes.c_void_p).value
        assert found is not None
        return found

    def call(self, name: str, memory: Any, stream: Any) -> None:
        assert name == "cuMemFreeAsync"
        self.freed.append(memory.value)


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    made = Recorder()
    monkeypatch.setattr(loaded, "driver", lambda: made)
    return made


def entry_of(recorder: Recorder, kernel: Any, *args: Any) -> Callable[..., None]:
    """Return a kernel's host function: it takes the words of its arguments, and raises what the run did wrong."""
    unit = written(kernel.specialize(*args).program)
    target = named("sm_90")
    rows = [
        {"object": f"k{number}", "name": "k", "threads": 128, "shared": 0} for number in range(2 * len(unit.kernels))
    ]
    texts = [text for each in unit.kernels for text in (each.aligned, each.other)]
    recorder.counts = [text.count("%arg", 0, text.index(") attributes")) for text in texts]
    objects = {PROGRAM: assemble(unit.module.text(), target.processor).object, KERNELS: json.dumps(rows).encode()}
    objects |= {f"k{number}": str(number).encode() for number in range(len(rows))}
    (entry,) = unit.program.entries
    code = Code(BACKEND, target, objects, {entry.name: f"entry_{entry.name}"}, unit.errors, {})
    program = LaunchedProgram(unit.program, code).on("cuda:0")

    def run(*words: int) -> None:
        context = (ctypes.c_int64 * len(Context))()
        program.calls[entry.name]((ctypes.c_int64 * 32)(*words), context)
        program.finish(entry.name, context[Context.ERROR], context[Context.BUFFERS])

    return run


@pl.jit
def double(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    for row in pl.parallel(0, x.shape[0], 16):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [row, 0], [16, 64]) * 2.0, [row, 0], out)
    return out


ONES = np.ones((40, 64), np.float32)


def test_a_parallel_loop_is_a_grid_of_its_turns(recorder: Recorder) -> None:
    entry_of(recorder, double, ONES)(X, 40, 64, 64, 1, Y, 40, 64, 64, 1)
    ((kernel, blocks, words),) = recorder.launches
    assert (kernel, blocks) == (0, 3)
    assert {X, Y, 64} <= set(words)
    assert recorder.current.value == 77


def test_a_row_or_an_address_that_is_not_aligned_takes_the_other_kernel(recorder: Recorder) -> None:
    run = entry_of(recorder, double, ONES)
    run(X + 4, 40, 64, 64, 1, Y, 40, 64, 64, 1)
    run(X, 40, 64, 65, 1, Y, 40, 64, 64, 1)
    run(X, 40, 64, 68, 1, Y, 40, 64, 64, 1)
    assert [kernel for kernel, *_ in recorder.launches] == [1, 1, 0]


def test_a_launch_that_is_refused_names_the_drivers_error(recorder: Recorder) -> None:
    recorder.code = 700
    with pytest.raises(ExecutionError, match="the driver's error 700"):
        entry_of(recorder, double, ONES)(X, 40, 64, 64, 1, Y, 40, 64, 64, 1)


def test_what_a_kernel_noted_is_raised_by_the_next_call_once(recorder: Recorder) -> None:
    run = entry_of(recorder, double, ONES)
    recorder.word.value = 1
    with pytest.raises(ExecutionError):
        run(X, 40, 64, 64, 1, Y, 40, 64, 64, 1)
    assert not recorder.launches
    run(X, 40, 64, 64, 1, Y, 40, 64, 64, 1)
    assert len(recorder.launches) == 1


@pl.jit
def through_a_temporary(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    middle = pl.create_tensor(x.shape, dtype=pl.FP32)
    for i in pl.range(2):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [i * 16, 0], [16, 64]), [i * 16, 0], middle)
    for block in pl.spmd(4):
        pl.store(pl.load(middle, [block * 8, 0], [8, 64]), [block * 8, 0], out)
    return out


def test_orchestration_runs_on_the_host(recorder: Recorder) -> None:
    entry_of(recorder, through_a_temporary, np.ones((32, 64), np.float32))(X, 32, 64, 64, 1, Y, 32, 64, 64, 1)
    assert [blocks for _, blocks, _ in recorder.launches] == [1, 1, 4]
    assert recorder.allocated == [32 * 64 * 4] and recorder.freed == [65 << 20]
