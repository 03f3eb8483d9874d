"""Counters: ticks are in order, alike on all threads, and become times of the monotonic clock."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilewright.native import counters
from tilewright.native.assemble import assembly
from tilewright.native.counters import KEPT, Counter, counter, reading
from tilewright.native.machines import Machine, Processor, System, here
from tilewright.native.target import baseline

LINUX = Machine(System.LINUX, Processor.X86_64)


@pytest.fixture(params=["own", "clock"])
def either(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Counter:
    """Return this machine's counter, and the one it has where nobody trusts that."""
    if request.param == "clock":
        monkeypatch.setattr(counters, "is_steady", never)
    reading.cache_clear()
    found = Counter(reading())
    reading.cache_clear()
    return found


def never(machine: Machine) -> bool:
    return False


def test_ticks_become_times_of_the_monotonic_clock(either: Counter) -> None:
    found: Any = np.zeros((1000, 3), np.int64)
    for row in found:
        row[:] = time.monotonic_ns(), either.compare(), time.monotonic_ns()
    before, ticks, after = found.T
    times = either.nanoseconds(ticks)
    assert (np.diff(times) > 0).all()
    near = 1000  # half of how long a look takes
    assert ((before - near <= times) & (times <= after + near)).all()


def test_times_between_comparisons_are_in_order(either: Counter) -> None:
    for _ in range(3 * KEPT):
        either.compare()
    first, last = either.moments[0][0], either.moments[-1][0]
    times = either.nanoseconds(np.linspace(first, last, 100_000).astype(np.int64))
    assert (np.diff(times) >= 0).all()
    assert len(either.moments) <= KEPT


def test_threads_count_alike(either: Counter) -> None:
    ticks: list[int] = []
    for _ in range(50):
        thread = threading.Thread(target=lambda: ticks.append(either.now()))
        ticks.append(either.now())
        thread.start()
        thread.join()
    assert ticks == sorted(ticks)


def test_a_second_is_as_many_ticks_as_pass_in_it(either: Counter) -> None:
    began = time.monotonic_ns()
    first = either.compare()
    begun = time.monotonic_ns()
    time.sleep(0.02)
    ending = time.monotonic_ns()
    last = either.compare()
    ended = time.monotonic_ns()
    shortest, longest = either.ticks_in(ending - begun), either.ticks_in(ended - began)  # others may run in between
    assert 0.95 * shortest <= last - first <= 1.05 * longest


def test_a_counter_that_begins_anew_is_compared_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Counter(reading())
    for ticks in (1 << 62, 1000):
        monkeypatch.setattr(found, "now", lambda ticks=ticks: ticks)
        found.compare()
    assert [moment[0] for moment in found.moments] == [1000]
    assert found.ticks_in(10**9) == 0
    assert found.nanoseconds(np.array([0, 1000, 2000])).tolist() == [found.moments[0][1]] * 3


def test_the_counter_is_read_where_linux_trusts_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clocks = tmp_path / "available_clocksource"
    monkeypatch.setattr(counters, "CLOCKS", str(clocks))
    monkeypatch.setattr(counters, "cpu_flags", lambda: {"constanttsc", "nonstoptsc", "fpu"})
    assert not counters.is_steady(LINUX), "where nobody says"
    clocks.write_text("hpet acpi_pm \n")
    assert not counters.is_steady(LINUX), "where its cores disagree"
    clocks.write_text("tsc kvm-clock \n")
    assert counters.is_steady(LINUX)
    monkeypatch.setattr(counters, "cpu_flags", lambda: {"constanttsc", "fpu"})
    assert not counters.is_steady(LINUX), "where it stops while a core sleeps"


@pytest.mark.parametrize(
    ("processor", "system", "instructions"),
    [
        (Processor.X86_64, System.WINDOWS, ["lfence", "rdtsc"]),
        (Processor.AARCH64, System.LINUX, ["isb", "mrs"]),
        (Processor.AARCH64, System.MACOS, ["isb", "mrs"]),
    ],
)
def test_a_look_is_one_instruction(
    processor: Processor, system: System, instructions: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine(system, processor)
    monkeypatch.setattr(counters, "here", lambda: machine)
    how = reading.__wrapped__()
    text = f"{how.declared}\ndefine i64 @now() {{\n  {how.settled}\n  %now = {how.ticks}\n  ret i64 %now\n}}\n"
    lines = assembly(text, baseline(machine)).split("now:")[1].splitlines()
    assert [line.split()[0] for line in lines if line.startswith("\t") and "\t." not in line][:2] == instructions


def test_this_process_has_one_counter() -> None:
    assert here() is not None and counter() is counter()
