"""Timelines of GPUs: launches between events, read once they have run, and written beside the calls that made them."""

from __future__ import annotations

import ctypes
import json
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tilewright.backends.cuda import timeline as timelines
from tilewright.backends.cuda.driver import Driver, DriverError
from tilewright.backends.cuda.timeline import Timeline
from tilewright.call.timelines import Trace

RECORD = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
LAUNCH = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 4)
REFUSED = 700


class Clocked(Driver):
    """Stands for a driver whose clock shows a microsecond more at each event, and 10 at each launch."""

    def __init__(self) -> None:
        self.now, self.made = 0, 0
        self.times: dict[int, int] = {}
        self.launched: list[tuple[int, ...]] = []
        self.captured: set[int] = set()
        self.functions: dict[str, Any] = {"cuEventRecord": RECORD(self.record), "cuLaunchKernelEx": LAUNCH(self.launch)}

    def record(self, event: int, stream: int) -> int:
        self.now += 1
        self.times[event] = self.now
        return 0

    def launch(self, config: int, function: int, *rest: Any) -> int:
        self.now += 10
        self.launched.append((function, *(ctypes.c_int64 * 5).from_address(config)))
        return REFUSED if function == 3 else 0

    def address(self, name: str) -> int:
        return ctypes.cast(self.functions[name], ctypes.c_void_p).value or 0

    @contextmanager
    def using(self, device: int) -> Generator[None]:
        yield

    def call(self, name: str, *args: Any) -> None:
        if name in ("cuEventCreate", "cuStreamCreate"):
            self.made += 1
            ctypes.cast(args[0], ctypes.POINTER(ctypes.c_void_p))[0] = self.made
        elif name == "cuEventRecord":
            self.record(args[0].value, args[1].value)
        elif name == "cuEventElapsedTime":
            first, second = (self.times[event.value] for event in args[1:])
            ctypes.cast(args[0], ctypes.POINTER(ctypes.c_float))[0] = (second - first) / 1e3
        elif args[0].value in self.captured:
            raise DriverError(name)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Clocked:
    monkeypatch.setattr(timelines, "CAPACITY", 8)
    monkeypatch.setattr(timelines, "TEXT", timelines.TEXT.replace("urem i64 %number, 4096", "urem i64 %number, 8"))
    return Clocked()


def launched(timeline: Timeline, kernel: int, stream: int) -> int:
    config = (ctypes.c_int64 * 7)(2, 1, 1, 128, stream)
    return LAUNCH(timeline.symbols["cuLaunchKernelEx"])(ctypes.addressof(config), kernel, None, None)


@contextmanager
def call(trace: Trace, name: str, timeline: Timeline) -> Generator[None]:
    begin = time.monotonic_ns()
    with trace.call():
        trace.read(timeline)
        yield
        trace.note(name, begin, time.monotonic_ns(), 1)


def test_kernels_stand_on_their_streams_beside_the_call_that_launched_them(gpu: Clocked, tmp_path: Path) -> None:
    timeline, trace = Timeline(gpu, 0), Trace(str(tmp_path / "out.json"))
    timeline.names |= {1: "load_rows", 2: "add_rows"}
    with call(trace, "softmax", timeline):
        assert [launched(timeline, *each) for each in ((1, 70), (2, 71), (1, 70), (3, 70))] == [0, 0, 0, REFUSED]
    trace.flush()
    events = json.loads(Path(trace.path).read_text())
    names = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    kernels = [event for event in events if event.get("cat") == "kernel"]
    assert [(names[each["tid"]], each["name"]) for each in kernels] == [
        ("cuda:0 stream 0", "load_rows"),
        ("cuda:0 stream 1", "add_rows"),
        ("cuda:0 stream 0", "load_rows"),
        ("cuda:0 stream 0", "?"),
    ]
    begins = [each["ts"] for each in kernels]
    assert [round(b - a, 1) for a, b in zip(begins, begins[1:], strict=False)] == [12.0] * 3
    assert all(round(each["dur"], 1) == 11.0 for each in kernels)
    (known,) = (event for event in events if event.get("cat") == "call")
    assert abs(begins[0] - known["ts"]) < 1e6, "both are told by one clock"
    with call(trace, "softmax", timeline):
        launched(timeline, 2, 70)
    with call(Trace(str(tmp_path / "other.json")), "add", timeline):
        assert json.loads(Path(trace.path).read_text())[-1]["name"] == "add_rows", "no other file shows it"
    assert gpu.launched[1] == (2, 2, 1, 1, 128, 71)


def test_what_was_captured_or_is_too_old_is_left_out(gpu: Clocked) -> None:
    timeline = Timeline(gpu, 1)
    timeline.begin()
    for kernel in range(1, 12):
        launched(timeline, kernel, 70)
        timeline.names[kernel] = f"k{kernel}"
    assert timeline.is_filling
    gpu.captured |= {event for event, when in gpu.times.items() if when == max(gpu.times.values())}
    found = [*timeline.taken()]
    assert [each.name for each in found] == [f"k{kernel}" for kernel in range(4, 11)]
    assert not timeline.is_filling and [*timeline.taken()] == []
    assert found[0].place == "cuda:1 stream 0" and found[0].end - found[0].begin == pytest.approx(11_000, abs=100)
