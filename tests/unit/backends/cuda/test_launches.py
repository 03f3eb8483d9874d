"""Launches without a GPU: host functions run, and a driver that starts nothing writes down what it is told."""

from __future__ import annotations

import ctypes
import json
import re
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar
from weakref import WeakSet

import numpy as np
import pytest
from unit.backends.cuda.emulated import Machine
from unit.backends.cuda.emulated_memory import Memory
from unit.backends.cuda.written import written

import tilewright.language as pl
from tilewright.backends.cuda import loaded
from tilewright.backends.cuda.backend import BACKEND
from tilewright.backends.cuda.host.program import LaunchingProgram
from tilewright.backends.cuda.loaded import LaunchedProgram
from tilewright.backends.cuda.reports import KERNELS
from tilewright.backends.cuda.target import named
from tilewright.backends.host import HostProgram
from tilewright.backends.interface import PROGRAM, Code
from tilewright.errors import ExecutionError
from tilewright.native.assemble import assemble
from tilewright.native.context import Context

X, Y = 1 << 20, 2 << 20
R = TypeVar("R", bound="Recorder")


class Recorder:
    """The driver's functions as programs call them: what they were told, in order."""

    def __init__(self) -> None:
        self.launches: list[tuple[int, int, list[int]]] = []
        """Kernel, blocks and the words of each launch, however it was started."""
        self.single: list[tuple[int, int, list[int]]] = []
        """Those that were started one by one."""
        self.replaced = 0
        self.allocated: list[int] = []
        self.freed: list[int] = []
        self.graphs: list[list[tuple[int, int, list[int]]]] = []
        """What each start of a graph launched."""
        self.capturing = 0
        self.nodes: dict[int, tuple[int, int, list[int]]] = {}
        self.on: set[int] = set()
        self.described: list[list[int]] = []
        """Address, extents from the last on, bytes between rows, box and swizzling of each descriptor."""
        self.code = 0
        self.used: list[int] = []
        self.waited: list[int] = []
        self.started: list[tuple[int, int]] = []
        """Stream and graph."""
        self.pushed: list[int | None] = []
        self.word = ctypes.c_uint64(0)
        self.current = ctypes.c_void_p(None)
        pointers, places = [ctypes.c_void_p] * 4, ctypes.POINTER(ctypes.c_int64)
        self._keep: dict[str, Any] = {
            "cuCtxGetCurrent": ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_void_p))(self._get),
            "cuCtxSetCurrent": ctypes.CFUNCTYPE(ctypes.c_int, *pointers[:1])(self._set),
            "cuLaunchKernelEx": ctypes.CFUNCTYPE(ctypes.c_int, *pointers)(self._launch),
            "cuMemAllocAsync": ctypes.CFUNCTYPE(
                ctypes.c_int, ctypes.POINTER(ctypes.c_void_p), ctypes.c_int64, *pointers[:1]
            )(self._allocate),
            "cuMemFreeAsync": ctypes.CFUNCTYPE(ctypes.c_int, *pointers[:2])(self._free),
            "cuStreamIsCapturing": ctypes.CFUNCTYPE(ctypes.c_int, pointers[0], places)(self._is_capturing),
            "cuGraphCreate": ctypes.CFUNCTYPE(ctypes.c_int, places, ctypes.c_int)(self._create),
            "cuGraphAddKernelNode_v2": ctypes.CFUNCTYPE(
                ctypes.c_int, places, pointers[0], places, ctypes.c_int64, pointers[0]
            )(self._add),
            "cuGraphInstantiateWithFlags": ctypes.CFUNCTYPE(ctypes.c_int, places, pointers[0], ctypes.c_int64)(
                self._instantiate
            ),
            "cuGraphExecKernelNodeSetParams_v2": ctypes.CFUNCTYPE(ctypes.c_int, *pointers[:3])(self._replace),
            "cuGraphNodeSetEnabled": ctypes.CFUNCTYPE(ctypes.c_int, *pointers[:2], ctypes.c_int)(self._switch),
            "cuGraphLaunch": ctypes.CFUNCTYPE(ctypes.c_int, *pointers[:2])(self._start),
            "cuTensorMapEncodeTiled": ctypes.CFUNCTYPE(
                ctypes.c_int,
                pointers[0],
                *[ctypes.c_int] * 2,
                *[ctypes.POINTER(ctypes.c_int64)] * 3,
                *[ctypes.POINTER(ctypes.c_int)] * 2,
                *[ctypes.c_int] * 4,
            )(self._describe),
        }
        self._keep["cuCtxPushCurrent_v2"] = ctypes.CFUNCTYPE(ctypes.c_int, *pointers[:1])(self._push)
        self._keep["cuCtxPopCurrent_v2"] = ctypes.CFUNCTYPE(ctypes.c_int, *pointers[:1])(self._pop)
        self._other = ctypes.CFUNCTYPE(ctypes.c_int, *pointers)(lambda *_: 0)

    def _get(self, place: Any) -> int:
        place[0] = self.current
        return 0

    def _set(self, context: int) -> int:
        self.current = ctypes.c_void_p(context)
        return 0

    def _push(self, context: int | None) -> int:
        self.pushed.append(context)
        return 0

    def _pop(self, place: int) -> int:
        return self._push(None)

    def _launch(self, config: int, function: int, params: int, extra: int | None) -> int:
        sizes, said = (ctypes.c_int32 * 13).from_address(config), ctypes.c_int64.from_address(config + 40).value
        assert list(sizes[1:7]) == [1, 1, 128, 1, 1, 0] and extra is None
        assert sizes[12] == function % 2 and list((ctypes.c_int64 * 9).from_address(said)) == [6, 1, *[0] * 7]
        self.single.append(self._read(function, sizes[0], params))
        self.launches.append(self.single[-1])
        return self.code

    def _read(self, function: int, blocks: int, params: int) -> tuple[int, int, list[int]]:
        places = (ctypes.c_void_p * self.counts[function - 1]).from_address(params)
        return function - 1, blocks, [ctypes.c_int64.from_address(p).value for p in places if p]

    def _node(self, words: int) -> tuple[int, int, list[int]]:
        function, _, _, _, _, params = (ctypes.c_int64 * 6).from_address(words)
        sizes = (ctypes.c_int32 * 7).from_address(words + 8)
        assert list(sizes[1:]) == [1, 1, 128, 1, 1, 0]
        return self._read(function, sizes[0], params)

    def _allocate(self, place: Any, size: int, stream: Any) -> int:
        self.allocated.append(size)
        place[0] = ctypes.c_void_p((64 + len(self.allocated)) << 20)
        return 0

    def _free(self, memory: int, stream: Any) -> int:
        self.freed.append(memory)
        return 0

    def _describe(self, place: int, kind: int, rank: int, *words: Any) -> int:
        base, sizes, strides, box, _, _, swizzle, _, _ = words
        assert place % 64 == 0 and rank == 2
        address = ctypes.cast(base, ctypes.c_void_p).value or 0
        made = [address, sizes[0], sizes[1], strides[0], box[0], box[1], swizzle]
        self.described.append(made)
        return self.describe(place, made)

    def describe(self, place: int, made: list[int]) -> int:
        return 1 if made[0] % 16 else 0

    # graphs

    def _is_capturing(self, stream: Any, place: Any) -> int:
        ctypes.cast(place, ctypes.POINTER(ctypes.c_int))[0] = self.capturing
        return 0

    def _create(self, place: Any, flags: int) -> int:
        place[0], self.nodes, self.on = 5, {}, set()
        return 0

    def _instantiate(self, place: Any, graph: int, flags: int) -> int:
        place[0] = graph + 1
        return 0

    def _add(self, place: Any, graph: int, before: Any, count: int, words: int) -> int:
        assert [before[n] for n in range(count)] == [*self.nodes][-1:]  # one after the other
        place[0] = len(self.nodes) + 1
        self.nodes[place[0]] = self._node(words)
        self.on.add(place[0])
        return 0

    def _replace(self, graph: int, node: int, words: int) -> int:
        self.nodes[node] = self._node(words)
        self.replaced += 1
        return 0

    def _switch(self, graph: int, node: int, is_on: int) -> int:
        (self.on.add if is_on else self.on.remove)(node)
        return 0

    def _start(self, graph: int, stream: Any) -> int:
        self.graphs.append([self.nodes[node] for node in sorted(self.on)])
        self.launches += self.graphs[-1]
        self.started.append((stream, graph))
        return self.code

    # what loading asks

    counts: list[int] = []

    def capability(self, device: int) -> int:
        return 90

    def context(self, device: int) -> int:
        return 77 + device

    @contextmanager
    def using(self, device: int) -> Generator[None, None, None]:
        self.used.append(device)
        yield

    def shared_word(self, device: int) -> tuple[int, int]:
        return ctypes.addressof(self.word), 99

    def wait(self, device: int, seconds: float) -> None:
        self.waited.append(device)

    def function(self, cubin: bytes, name: str, shared: int) -> int:
        return int(cubin) + 1

    def address(self, name: str) -> int:
        found = ctypes.cast(self._keep.get(name, self._other), ctypes.c_void_p).value
        assert found is not None
        return found


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    return recording(monkeypatch, Recorder())


def recording(monkeypatch: pytest.MonkeyPatch, made: R) -> R:
    """Return a driver in place of CUDA's, whose programs are gone when the process ends."""
    monkeypatch.setattr(loaded, "driver", lambda: made)
    monkeypatch.setattr(loaded, "_programs", WeakSet[Any]())
    return made


def entry_of(
    recorder: Recorder, kernel: Any, *args: Any, device: str = "cuda:0", boxes: Sequence[int] = ()
) -> Callable[..., None]:
    """Return a kernel's host function: it takes the words of its arguments, and raises what the run did wrong."""
    unit = written(kernel.specialize(*args).program)
    (entry,) = unit.program.entries
    program = placed(recorder, unit, device, boxes)

    def run(*words: int) -> None:
        context = (ctypes.c_int64 * len(Context))()
        program.calls[entry.name]((ctypes.c_int64 * 32)(*words), context)
        program.finish(entry.name, context[Context.ERROR], context[Context.BUFFERS])

    return run


def placed(
    recorder: Recorder, unit: LaunchingProgram, device: str = "cuda:0", boxes: Sequence[int] = ()
) -> HostProgram:
    """Return a program that is written, its host functions loaded for a device that the recorder stands for."""
    target = named("sm_90")
    rows = [
        {
            "object": f"k{number}",
            "name": "k",
            "threads": 128,
            "shared": 0,
            "boxes": boxes if number % 2 == 0 else (),
            "waits": number % 2 == 0,
        }
        for number in range(2 * len(unit.kernels))
    ]
    texts = [text for each in unit.kernels for text in (each.aligned, each.other)]
    recorder.counts = [text.count("%arg", 0, text.index(") attributes")) for text in texts]
    objects = {
        PROGRAM: assemble(unit.module.text(), target.processor).object,
        KERNELS: json.dumps({"kernels": rows, "prints": [[*vars(each).values()] for each in unit.prints]}).encode(),
    }
    objects |= {f"k{number}": str(number).encode() for number in range(len(rows))}
    symbols = {name: f"start_{name}" for name in re.findall(r"define void @start_(\w+)\(", unit.module.text())}
    code = Code(BACKEND, target, objects, symbols, unit.errors, {})
    return LaunchedProgram(unit.program, code).on(device)


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
    assert recorder.current.value == 77 and recorder.used == [0]


def test_a_program_is_loaded_and_run_where_its_tensors_are(recorder: Recorder) -> None:
    run = entry_of(recorder, double, ONES, device="cuda:1")
    run(X, 40, 64, 64, 1, Y, 40, 64, 64, 1)
    assert recorder.used == [1] and recorder.current.value == 78
    recorder.current = ctypes.c_void_p(77)
    run(X, 40, 64, 64, 1, Y, 40, 64, 64, 1)
    assert recorder.pushed == [78, None] and len(recorder.launches) == 2


def test_a_row_or_an_address_that_is_not_aligned_takes_the_other_kernel(recorder: Recorder) -> None:
    run = entry_of(recorder, double, ONES)
    run(X + 4, 40, 64, 64, 1, Y, 40, 64, 64, 1)
    run(X, 40, 64, 65, 1, Y, 40, 64, 64, 1)
    run(X, 40, 64, 68, 1, Y, 40, 64, 64, 1)
    assert [kernel for kernel, *_ in recorder.launches] == [1, 1, 0]


@pl.jit
def halved(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    for row in pl.parallel(0, x.shape[0], 2):
        for column in pl.parallel(0, x.shape[1], 32):
            with pl.at(level=pl.Level.CORE_GROUP):
                pl.store(pl.load(x, [row, column], [2, 32]) * 0.5, [row, column], out)
    return out


def test_blocks_share_tiny_turns_out(recorder: Recorder) -> None:
    run = entry_of(recorder, halved, ONES)
    run(X, 40, 64, 64, 1, Y, 40, 64, 64, 1)
    (kernel,) = written(halved.specialize(ONES).program).kernels
    memory, x = Memory(), np.random.default_rng(1).random((40, 64), np.float32)
    words = [memory.add(x), 64, memory.add(np.zeros_like(x)), 64]
    for number in range(40):
        Machine(kernel.aligned, memory).run(words, number)
    assert [blocks for _, blocks, _ in recorder.launches] == [40] and kernel.schedule.warps == 1
    assert np.array_equal(memory.left(1, x), x / 2)
    (first, _), *_, (last, _) = kernel.tries(90, is_aligned=True)
    assert "tt.num_stages" in first and "tt.num_stages" not in last


@pl.jit
def added_up(x: pl.Tensor, out: pl.Out[pl.Tensor[[40, 1], pl.FP32]]):
    for row in pl.parallel(0, x.shape[0], 8):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.row_sum(pl.load(x, [row, 0], [8, 64])), [row, 0], out)
    return out


def test_what_is_moved_one_by_one_need_not_be_aligned(recorder: Recorder) -> None:
    run = entry_of(recorder, added_up, ONES)
    run(X, 40, 64, 64, 1, Y + 4, 40, 1, 1, 1)
    run(X + 4, 40, 64, 64, 1, Y, 40, 1, 1, 1)
    assert [kernel for kernel, *_ in recorder.launches] == [0, 1]


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


def test_calls_on_one_stream_share_small_temporaries(recorder: Recorder) -> None:
    run = entry_of(recorder, through_a_temporary, np.ones((32, 64), np.float32))
    for _ in range(4):
        run(X, 32, 64, 64, 1, Y, 32, 64, 64, 1)
    assert len(recorder.allocated) == 2 and recorder.freed == [65 << 20]
    assert len(recorder.launches) == 12 and [len(graph) for graph in recorder.graphs] == [3, 3, 3]
    assert all(66 << 20 in words for *_, words in recorder.launches[3:])
    recorder.capturing = 1
    run(X, 32, 64, 64, 1, Y, 32, 64, 64, 1)
    assert len(recorder.allocated) == 3 and recorder.freed == [65 << 20, 67 << 20]


M, N = pl.dynamic("M"), pl.dynamic("N")


@pl.jit
def whole_tensors(x: pl.Tensor[[M, N], pl.FP32], out: pl.Out[pl.Tensor[[M, N], pl.FP32]]):
    for row in pl.parallel(0, x.shape[0], 8):
        with pl.at(level=pl.Level.CORE_GROUP):
            powers = pl.exp(pl.slice(x, [8, x.shape[1]], [row, 0]))
            out = pl.assemble(out, pl.row_expand_div(powers, pl.row_sum(powers)), [row, 0])
    return out


def test_blocks_have_tensors_as_large_as_the_program_is_told(recorder: Recorder) -> None:
    ones = np.ones((32, 70), np.float32)
    entry_of(recorder, whole_tensors, ones, ones)(X, 32, 70, 70, 1, Y, 32, 70, 70, 1)
    of_a_block = 2 * _in_lines(8 * 70 * 4) + _in_lines(8 * 4)  # powers, quotients and the sum of each row
    assert recorder.allocated == [4 * of_a_block]


def _in_lines(size: int) -> int:
    return -(-size // 128) * 128


@pl.jit
def again_and_again(x: pl.Tensor, out: pl.Out[pl.Tensor], n: pl.Scalar[pl.INDEX]):
    for i in pl.range(n):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [i * 8, 0], [8, 64]), [i * 8, 0], out)
    return out


def test_all_launches_of_a_call_are_started_as_one_graph(recorder: Recorder) -> None:
    ones = np.ones((64, 64), np.float32)
    entry = entry_of(recorder, again_and_again, ones, ones, pl.RUNTIME)

    def turns(count: int, at: int = X) -> tuple[list[int], list[int]]:
        """Return which turns a call starts as a graph, and which one by one."""
        recorder.graphs, recorder.single, recorder.replaced = [], [], 0
        entry(at, 64, 64, 64, 1, Y, 64, 64, 64, 1, count)
        graph = recorder.graphs[0] if recorder.graphs else []
        assert len(recorder.graphs) < 2 and all(at in words for *_, words in (*graph, *recorder.single))
        started = [next(n for n in words if n < 8) for *_, words in (*graph, *recorder.single)]
        return started[: len(graph)], started[len(graph) :]

    assert turns(0) == ([], [])
    assert turns(3) == ([], [0, 1, 2])
    assert turns(3, at=X + 4096) == ([0, 1, 2], []) and recorder.replaced == 3
    assert turns(3, at=X + 4096) == ([0, 1, 2], []) and recorder.replaced == 0
    assert turns(1) == ([0], [])
    assert turns(3) == ([0, 1, 2], [])
    assert turns(5) == ([0, 1, 2], [3, 4])
    assert turns(0) == ([], [])
    assert turns(2) == ([0, 1], [])
    recorder.capturing = 1
    assert turns(3) == ([], [0, 1, 2])


def test_launches_that_are_waited_for_are_started_one_by_one(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_LAUNCH_BLOCKING", "1")
    run = entry_of(recorder, double, ONES)
    for _ in range(3):
        run(X, 40, 64, 64, 1, Y, 40, 64, 64, 1)
    assert len(recorder.single) == 3 and not recorder.graphs


def test_each_of_the_first_streams_has_its_graph(recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    streams: list[int] = []

    @ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.POINTER(ctypes.c_int64))
    def current(device: int, place: Any) -> int:
        place[0] = streams.pop()
        return 0

    at = ctypes.cast(current, ctypes.c_void_p).value
    monkeypatch.setattr(loaded, "stream_function", lambda _: (at, current))  # pyright: ignore
    run = entry_of(recorder, double, ONES)
    for number, streams[:] in enumerate([[1], [2], [1], [2], [3], [3], [4], [4], [1]]):
        run(X, 40, 64, 64, 1, Y, 40, 64, 64, 1)
        assert len(recorder.launches) == number + 1
    assert [stream for stream, _ in recorder.started] == [1, 2, 3, 1]


def test_a_graph_that_is_refused_names_the_drivers_error(recorder: Recorder) -> None:
    ones = np.ones((64, 64), np.float32)
    entry = entry_of(recorder, again_and_again, ones, ones, pl.RUNTIME)
    entry(X, 64, 64, 64, 1, Y, 64, 64, 64, 1, 3)
    recorder.code = 700
    with pytest.raises(ExecutionError, match="the driver's error 700"):
        entry(X, 64, 64, 64, 1, Y, 64, 64, 64, 1, 2)


def test_an_error_of_an_earlier_call_says_so(recorder: Recorder) -> None:
    run = entry_of(recorder, double, ONES)
    recorder.word.value = (7 << 32) | 1
    with pytest.raises(ExecutionError, match="an earlier call of this program has done that, and this one has not run"):
        run(X, 40, 64, 64, 1, Y, 40, 64, 64, 1)


def test_what_no_call_has_raised_is_shown_when_the_process_ends(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(loaded, "is_there", lambda: True)
    run = entry_of(recorder, double, ONES)
    run(X, 40, 64, 64, 1, Y, 40, 64, 64, 1)
    recorder.word.value = 1
    loaded.show_what_is_left()
    loaded.show_what_is_left()
    said = capsys.readouterr().err
    assert said.count("ExecutionError: ") == 1 and "no call was left to raise it" in said and recorder.waited
