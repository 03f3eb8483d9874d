"""Profiling: perf, GDB, torch's profiler and timelines see kernels by name and line."""

from __future__ import annotations

import inspect
import json
import os
import resource
import shutil
import struct
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from unit.call.warming import native_only
from unit.interpret.stepped_kernels import on_ranks, shifted, squared

import tilewright.language as pl
from tilewright import ir, settings
from tilewright.call.event_files import EventFile, TraceError
from tilewright.native import profilers
from tilewright.native.line_tables import rows
from tilewright.runtime import RunConfig

ROWS = 16
HERE = Path(__file__)


@pl.jit
def softmax(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    for r in pl.parallel(0, x.shape[0], ROWS):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="some_rows"):
            t = pl.load(x, [r, 0], [ROWS, 64])
            e = pl.exp(t - pl.row_max(t))
            pl.store(e / pl.row_sum(e), [r, 0], out)
    return out


X = np.ones((256, 64), np.float32)
SCRIPT = """
import sys, time
sys.path.insert(0, {path!r})
import numpy as np
import tilewright.language as pl
ROWS = 16
{kernel}
x = np.ones((4096, 64), np.float32)
softmax(x)
begin = time.process_time()
while time.process_time() - begin < {seconds}:
    softmax(x)
"""


def line_of(text: str, path: Path = HERE) -> int:
    return next(number for number, line in enumerate(path.read_text().splitlines(), start=1) if text in line)


EXP = line_of("e = pl.exp")


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "script.py"
    kernel = inspect.getsource(softmax.function)
    path.write_text(SCRIPT.format(path=str(Path(settings.__file__).parents[1]), kernel=kernel, seconds=0.4))
    return path


def run(command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, perf: str) -> str:
    for name, value in {"TILEWRIGHT_PERF": perf, "JITDUMPDIR": str(tmp_path), "TILEWRIGHT_NUM_THREADS": "1"}.items():
        monkeypatch.setenv(name, value)
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    return done.stdout + done.stderr


def test_a_perf_map_has_a_line_per_function(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_PERF", "map")
    path = Path(profilers.map_path())
    softmax.cache_clear()  # what another test has compiled is not announced again
    try:
        profilers.begin()
        program = softmax.compile(X)
        native: Any = program.native
        lines = [line.split() for line in path.read_text().splitlines() if line]
    finally:
        path.unlink(missing_ok=True)
    names = {name: (int(start, 16), int(size, 16)) for start, size, name in lines}
    assert {"tilewright.entry_softmax", "tilewright.some_rows.fn2", "tilewright.softmax.task1"} <= {*names}
    assert names["tilewright.entry_softmax"][0] == native.address("softmax")
    assert all(size > 0 for _, size in names.values())


def test_a_jitdump_has_the_code_and_its_lines(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TILEWRIGHT_PERF", "jitdump")
    monkeypatch.setenv("JITDUMPDIR", str(tmp_path))
    monkeypatch.setattr(profilers, "_dumps", {})
    softmax.cache_clear()
    softmax(X)
    data = Path(profilers.dump_path()).read_bytes()
    names, lines = dumped(data)
    assert "tilewright.some_rows.fn2" in names
    assert (str(HERE), EXP) in lines


def dumped(data: bytes) -> tuple[set[str], set[tuple[str, int]]]:
    """Return the functions and the lines of a jitdump."""
    names, lines, at = set[str](), set[tuple[str, int]](), struct.unpack_from("<I", data, 8)[0]
    while at < len(data):
        kind, size = struct.unpack_from("<II", data, at)
        if kind == 0:
            names.add(data[at + 56 : data.index(b"\0", at + 56)].decode())
        place = at + 32
        for _ in range(struct.unpack_from("<Q", data, at + 24)[0] if kind == 2 else 0):
            end = data.index(b"\0", place + 16)
            lines.add((data[place + 16 : end].decode(), struct.unpack_from("<i", data, place + 8)[0]))
            place = end + 1
        at += size
    return names, lines


def test_a_line_table_is_read_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_PERF", "gdb")
    program = ir.compile(softmax.specialize(X).program)
    assert program.artifact is not None
    found = rows(program.artifact.code.object)
    assert [row.offset for row in found] == sorted(row.offset for row in found)
    assert {row.line for row in found if row.file == str(HERE)} >= {EXP, line_of("pl.store(e /")}


@pytest.mark.skipif(not shutil.which("perf") or not shutil.which("readelf"), reason="needs perf and binutils")
def test_perf_shows_kernels_by_name_and_line(script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = ["perf", "record", "-q", "-k", "mono", "-o", "plain.data", sys.executable, str(script)]
    said = run(record, tmp_path, monkeypatch, "jitdump")
    if not (tmp_path / "plain.data").exists():
        pytest.skip(f"perf may not record here: {said[:200]}")
    run(["perf", "inject", "--jit", "-i", "plain.data", "-o", "jitted.data"], tmp_path, monkeypatch, "")
    report = run(["perf", "report", "-i", "jitted.data", "--stdio", "-s", "sym"], tmp_path, monkeypatch, "")
    assert "tilewright.some_rows.fn2" in report
    listings = [subprocess.check_output(["readelf", "-wL", path], text=True) for path in tmp_path.glob("jitted-*.so")]
    found = [line.split() for listing in listings for line in listing.splitlines() if "script.py " in line]
    assert str(line_of("e = pl.exp", script)) in {line[1] for line in found}


@pytest.mark.skipif(not shutil.which("perf"), reason="needs perf")
def test_perf_reads_the_map(script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = ["env", "TILEWRIGHT_NUM_THREADS=2", sys.executable, str(script)]  # one of them makes the file ahead
    said = run(["perf", "record", "-q", "-o", "plain.data", *command], tmp_path, monkeypatch, "map")
    if not (tmp_path / "plain.data").exists():
        pytest.skip(f"perf may not record here: {said[:200]}")
    report = run(["perf", "report", "-i", "plain.data", "--stdio", "-s", "sym"], tmp_path, monkeypatch, "")
    assert "tilewright.some_rows.fn2" in report


@pytest.mark.skipif(shutil.which("gdb") is None, reason="needs gdb")
def test_gdb_stops_at_a_line_of_a_kernel_and_knows_who_called_it(
    script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = line_of("e = pl.exp", script)
    commands = ["set breakpoint pending on", f"break script.py:{line}", "run", "bt 4", "kill"]
    options = [option for command in commands for option in ("-ex", command)]
    gdb = ["gdb", "-q", "-batch", *options, "--args", sys.executable, str(script)]
    frames = [line for line in run(gdb, tmp_path, monkeypatch, "gdb").splitlines() if line.startswith("#")]
    assert f"#0  fn2_some_rows () at {script}:{line}" in frames[0]
    assert ["task1_softmax" in frames[1], "serial" in frames[2], "entry_softmax" in frames[3]] == [True] * 3


def test_a_timeline_shows_every_chunk_on_its_thread_within_its_call(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    config = RunConfig(trace=path)
    np.testing.assert_allclose(softmax(X, config=config), 1 / 64, rtol=1e-6)
    first = json.loads(path.read_text())
    program = softmax.compile(X)
    program(X, config=config)
    trace = json.loads(path.read_text()) if len(json.loads(path.read_text())) > len(first) else flushed(path)
    spans = [event for event in trace if event["ph"] == "X"]
    calls = [span for span in spans if span["cat"] == "call"]
    assert [call["name"] for call in calls] == ["softmax"] * 2
    for call in calls:
        inside = [span for span in spans if span["cat"] == "task" and within(span, call)]
        assert sorted(span["args"]["chunk"] for span in inside) == list(range(16))
        assert {span["name"] for span in inside} == {"softmax.task1"}
    named = {event["tid"] for event in trace if event["name"] == "thread_name"}
    assert {span["tid"] for span in spans} <= named


@native_only
def test_traced_calls_are_warm_and_each_is_on_the_timeline_once(tmp_path: Path) -> None:
    path, out = tmp_path / "out.json", np.empty_like(X)
    config, program = RunConfig(trace=path), softmax.compile(X, out)
    for way in (softmax, program):
        for _ in range(120):  # a program without LLVM is looked at late
            way(X, out, config=config)
    before = softmax.call_info().direct
    for _ in range(50):
        softmax(X, out, config=config)
        program(X, out, config=config)
    assert softmax.call_info().direct == before + 50
    spans = [event for event in flushed(path) if event["ph"] == "X"]
    calls = [span for span in spans if span["cat"] == "call"]
    tasks = [span for span in spans if span["cat"] == "task"]
    assert [call["name"] for call in calls] == ["softmax"] * 340 and len(tasks) == 340 * 16
    ends = [call["ts"] + call["dur"] for call in calls]
    assert all(end <= after["ts"] + 1 for end, after in zip(ends, calls[1:], strict=False))
    assert {task["name"] for task in tasks} == {"softmax.task1"}
    assert all(call["args"]["dropped"] == 0 for call in calls)


def test_another_file_takes_the_calls_from_its_assignment_on(tmp_path: Path) -> None:
    first, second, x = str(tmp_path / "1.json"), str(tmp_path / "2.json"), X[:ROWS]
    config = RunConfig(trace=first)
    for _ in range(5):
        softmax(x, config=config)
    config.trace = second
    for _ in range(7):
        softmax(x, config=config)
    config.trace = None
    softmax(x, config=config)
    counts = [sum(event.get("cat") == "call" for event in flushed(Path(path))) for path in (first, second)]
    assert counts == [5, 7]


def test_a_relative_timeline_stays_where_its_configuration_was_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    config = RunConfig(trace="here.json")
    (tmp_path / "below").mkdir()
    monkeypatch.chdir("below")
    for _ in range(5):
        softmax(X[:ROWS], config=config)
    assert not any(Path().iterdir())
    assert sum(event.get("cat") == "call" for event in flushed(tmp_path / "here.json")) == 5


FORKED = """
import json, multiprocessing, os, sys
sys.path.insert(0, {path!r})
import numpy as np
import tilewright.language as pl
from tilewright.runtime import RunConfig
ROWS = 16
{kernel}
x, out, config = np.ones((64, 64), np.float32), np.empty((64, 64), np.float32), RunConfig(trace="out.json")
def calls(count):
    for _ in range(count):
        softmax(x, out, config=config)
calls(1)
child = os.fork()
calls(5)
if child == 0:
    sys.exit(0)
os.waitpid(child, 0)
worker = multiprocessing.get_context("fork").Process(target=calls, args=(7,))
worker.start()
worker.join()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forked_children_write_their_calls_too(tmp_path: Path) -> None:
    kernel = inspect.getsource(softmax.function)
    text = FORKED.format(path=str(Path(settings.__file__).parents[1]), kernel=kernel)
    (tmp_path / "forked.py").write_text(text)
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "forked.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    events = json.loads((tmp_path / "out.json").read_text())
    calls = Counter(event["pid"] for event in events if event.get("cat") == "call")
    assert sorted(calls.values()) == [5, 6, 7]
    assert {event["pid"] for event in events if event["name"] == "process_name"} == {*calls}


def test_a_full_disk_leaves_the_events_before(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    file = EventFile(str(path), '{"n":0}')
    file.append(',{"n":1}')
    before, (soft, hard) = path.read_bytes(), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 20, hard))  # Python gets an error instead of a signal
    try:
        with pytest.warns(RuntimeWarning, match=f"calls are missing in {path}: "):
            file.append(',{"n":2}' * 100)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_bytes() == before and json.loads(before) == [{"n": 0}, {"n": 1}]


def test_a_timeline_that_cannot_be_written_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for given, wanted in (("", ValueError), (3, ValueError)):
        with pytest.raises(wanted, match="trace must be a path, got "):
            RunConfig(trace=given)  # pyright: ignore[reportArgumentType]
    with pytest.raises(TraceError, match="no timeline can be written to .*/file/out.json: "):
        softmax(X[:ROWS], config=RunConfig(trace=tmp_path / "file" / "out.json"))
    home = RunConfig(trace="~/out.json").trace
    assert home == str(Path.home() / "out.json")


def test_a_jitdump_that_cannot_be_written_stops_no_kernel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TILEWRIGHT_PERF", "jitdump")
    monkeypatch.setenv("JITDUMPDIR", str(tmp_path / "nowhere"))
    monkeypatch.setattr(profilers, "_dumps", {})
    softmax.cache_clear()
    with pytest.warns(RuntimeWarning, match="JITDUMPDIR"):
        softmax(X)
    softmax.cache_clear()


def test_no_timeline_is_empty(tmp_path: Path) -> None:
    path, x = tmp_path / "new" / "out.json", np.ones((4, 8), np.float32)
    interpreted = RunConfig(platform="interpret", trace=path)
    shifted(x, config=interpreted)
    shifted.compile(x, config=interpreted)(x, config=interpreted)
    on_ranks(np.stack([x, x]), np.zeros((2, 4, 8), np.float32), config=RunConfig(device_ids=[0, 1], trace=path))
    calls = [event["name"] for event in flushed(path) if event.get("cat") == "call"]
    assert calls == ["shifted", "shifted", "on_ranks"]


def flushed(path: Path) -> Any:
    from tilewright.call.timelines import trace_to

    trace_to(str(path)).flush()
    return json.loads(path.read_text())


def within(span: Any, call: Any) -> bool:
    return call["ts"] <= span["ts"] and span["ts"] + span["dur"] <= call["ts"] + call["dur"] + 1


def test_torch_profiles_calls_by_their_kernels_names(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.setenv("TILEWRIGHT_PERF", "torch")
    tensor = torch.ones(4, 8)
    squared(tensor)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        squared(tensor)
        squared.compile(tensor)(tensor)
    averages: Any = profile.key_averages()
    found = {event.key: event.count for event in averages}
    assert found["squared"] == 2


def test_a_setting_that_names_nobody_says_who_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_PERF", "map,vtune")
    with pytest.raises(ValueError, match="TILEWRIGHT_PERF takes map, jitdump, gdb, nvtx, torch, got 'vtune'"):
        softmax.compile(X[:ROWS])


def test_an_object_without_lines_has_no_rows() -> None:
    program = ir.compile(softmax.specialize(X).program)
    assert program.artifact is not None
    assert rows(program.artifact.code.object) == []
