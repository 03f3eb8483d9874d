"""Threads: every chunk runs exactly once, with whatever else goes on."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from ctypes import c_int64, c_void_p
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilewright import settings
from tilewright.native import threads
from tilewright.native.assemble import assemble
from tilewright.native.loader import Loaded, load
from tilewright.native.machines import here
from tilewright.native.target import host, own_baseline
from tilewright.native.threads import OpenMP, parallel_address

pytestmark = pytest.mark.skipif(here() is None, reason="needs native code")

INNER = 32
CHUNKS = f"""
declare i32 @usleep(i32)
declare i64 @syscall(i64, ...)

define void @count(ptr %data, i64 %chunk) nounwind {{  ; data[chunk] += 1
  %at = getelementptr i64, ptr %data, i64 %chunk
  %old = atomicrmw add ptr %at, i64 1 monotonic
  ret void
}}
define void @who(ptr %data, i64 %chunk) nounwind {{  ; data[chunk] = thread, slowly
  %tid = call i64 (i64, ...) @syscall(i64 {186 if host().machine == "x86_64" else 178})
  %at = getelementptr i64, ptr %data, i64 %chunk
  store i64 %tid, ptr %at
  %slept = call i32 @usleep(i32 2000)
  ret void
}}
define void @nested(ptr %data, i64 %chunk) nounwind {{  ; data: parallel, counters
  %parallel = load ptr, ptr %data
  %next = getelementptr ptr, ptr %data, i64 1
  %counters = load ptr, ptr %next
  %first = mul i64 %chunk, {INNER}
  %mine = getelementptr i64, ptr %counters, i64 %first
  call void %parallel(ptr @count, ptr %mine, i64 {INNER}, ptr null)
  ret void
}}
"""
FORK = """
import ctypes, os, sys
{extra}
sys.path[:0] = {path!r}
from tests_threads import counted, parallel_address, threads
address = parallel_address(4)
assert (threads.openmp("torch" in sys.modules) is None) == {pooled}
assert counted(address, 1000) == {{1}}
pids = []
for _ in range(3):
    pid = os.fork()
    if pid == 0:
        right = all(counted(address, 1000) == {{1}} and counted(parallel_address(4), 9) == {{1}} for _ in range(9))
        os._exit(0 if right else 1)
    pids.append(pid)
assert [os.waitpid(pid, 0)[1] for pid in pids] == [0, 0, 0]
assert counted(address, 1000) == {{1}}
print("done")
"""

FIRST_IN_CHILD = """
import os, sys, signal, torch
import tilewright.language as pl

x = torch.zeros(2000, 300) + 1.0  # on torch's own threads

@pl.jit
def add(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    for r in pl.parallel(0, x.shape[0], 16):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [r, 0], [16, x.shape[1]]) + 1.0, [r, 0], out)
    return out

pid = os.fork()
if pid == 0:
    signal.alarm(30)
    os._exit(0 if (add(x.numpy()) == 2).all() else 3)
print(os.waitpid(pid, 0)[1])
"""


@cache
def chunks() -> Loaded:
    return load(assemble(CHUNKS, own_baseline()).object)


def run(address: int, function: str, data: int, count: int) -> None:
    call = ctypes.CFUNCTYPE(None, c_void_p, c_void_p, c_int64, c_void_p)(address)
    call(chunks().address(function), data, count, None)


def counted(address: int, count: int) -> set[int]:
    """Return how often chunks ran: {1} is right."""
    counters = np.zeros(count, np.int64)
    run(address, "count", counters.ctypes.data, count)
    return set(counters.tolist())


@pytest.fixture(params=["pool", "team"])
def address_of(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], int]:
    """`parallel_address`, once without and once with an OpenMP runtime."""
    runtime = None
    if request.param == "team":
        pytest.importorskip("torch")
        runtime = threads.openmp.__wrapped__(True)
        assert runtime is not None
    monkeypatch.setattr(threads, "openmp", lambda _: runtime)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    return parallel_address


@pytest.mark.parametrize("count", [0, 1, 2, 3, 7, 64, 100_000])
@pytest.mark.parametrize("size", [1, 2, 4])
def test_every_chunk_runs_once(address_of: Callable[[int], int], size: int, count: int) -> None:
    assert counted(address_of(size), count) == ({1} if count else set())


def test_a_negative_count_is_nothing(address_of: Callable[[int], int]) -> None:
    for size in (1, 2):
        run(address_of(size), "count", 0, -5)


def test_thousands_of_small_regions_are_right(address_of: Callable[[int], int]) -> None:
    address = address_of(2)
    assert all(counted(address, 2 + i % 5) == {1} for i in range(1000))


@pytest.mark.parametrize("size", [1, 2, 4])
def test_several_threads_share_the_work(address_of: Callable[[int], int], size: int) -> None:
    counts: list[int] = []
    while max(counts, default=0) < size and len(counts) < 100:  # on a busy machine some may come too late
        tids = np.zeros(20, np.int64)
        run(address_of(size), "who", tids.ctypes.data, len(tids))
        counts.append(len(set(tids.tolist())))
        time.sleep(0.005)  # workers fall asleep
    assert max(counts) == size


def test_several_python_threads_may_call_at_once(address_of: Callable[[int], int]) -> None:
    address, seen = address_of(2), list[set[int]]()
    chunks()  # loaded once, here: threads that raced for it would each load one and drop all but the last

    def work() -> None:
        seen.extend(counted(address, 300) for _ in range(200))

    callers = [threading.Thread(target=work) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert (len(seen), set(map(frozenset, seen))) == (800, {frozenset({1})})


@pytest.mark.parametrize("size", [1, 2, 4])
def test_a_region_inside_another_runs_inline(address_of: Callable[[int], int], size: int) -> None:
    address, counters = address_of(size), np.zeros(200 * INNER, np.int64)
    data = (c_void_p * 2)(address, counters.ctypes.data)
    run(address, "nested", ctypes.addressof(data), 200)
    assert set(counters.tolist()) == {1}


@pytest.mark.parametrize("extra", ["", "import torch; torch.ones(1 << 20).exp()"], ids=["pool", "team"])
def test_a_forked_child_does_not_hang(extra: str) -> None:
    code = f"import sys, importlib.util as u\nspec = u.spec_from_file_location('tests_threads', {__file__!r})\n"
    code += "sys.modules['tests_threads'] = m = u.module_from_spec(spec); spec.loader.exec_module(m)\n"
    code = FORK.format(extra=f"{extra}\n{code}", path=sys.path, pooled=not extra)
    run = subprocess.run([sys.executable, "-W", "ignore", "-c", code], timeout=60, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert (run.stdout, run.stderr) == ("done\n", "")


def test_the_first_call_of_all_may_be_in_a_child_of_a_parent_whose_torch_ran_on_threads(tmp_path: Path) -> None:
    (script := tmp_path / "first.py").write_text(FIRST_IN_CHILD)
    environment = {**os.environ, "TILEWRIGHT_NUM_THREADS": "2", "TILEWRIGHT_CACHE_DIR": "off"}
    command = [sys.executable, "-W", "ignore", str(script)]
    run = subprocess.run(command, timeout=120, capture_output=True, text=True, env=environment)
    assert (run.stdout, run.stderr) == ("0\n", "")


def test_an_address_is_kept_and_its_code_made_once() -> None:
    calls: list[str] = []

    def emit(text: str) -> bytes:
        calls.append(text)
        return threads.emitted(text)

    assert parallel_address(3, emit) == parallel_address(3, emit)
    assert len(calls) <= 1


def test_less_than_one_thread_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one thread, got 0"):
        parallel_address(0)


def test_an_openmp_runtime_is_found_only_where_one_is_mapped(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    maps = tmp_path / "maps"
    maps.write_text("7f00-7f10 r-xp 00000000 00:00 0 \n7f10-7f20 r-xp 00000000 08:01 5    /lib/libgomp-gone.so.1\n")
    monkeypatch.setattr(threads, "MAPS", maps)
    assert threads.openmp.__wrapped__(False) is None
    assert OpenMP._fields == ("GOMP_parallel", "omp_in_parallel", "omp_get_thread_num", "omp_get_max_threads")


@pytest.mark.parametrize("text", ["0", "-1", "two", "1.5"])
def test_a_thread_count_must_be_a_positive_number(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_NUM_THREADS", text)
    with pytest.raises(ValueError, match="TILEWRIGHT_NUM_THREADS must be a positive number"):
        settings.num_threads()


def test_the_thread_count_comes_from_the_environment_then_torch_then_the_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.delenv("TILEWRIGHT_NUM_THREADS", raising=False)
    assert settings.num_threads() == torch.get_num_threads()
    monkeypatch.delitem(sys.modules, "torch")
    assert settings.num_threads() >= 1
    monkeypatch.setenv("TILEWRIGHT_NUM_THREADS", "7")
    assert settings.num_threads() == 7
