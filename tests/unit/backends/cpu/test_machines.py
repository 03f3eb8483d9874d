"""Machines: what is emitted, loaded and called on others than this one, as far as this one can tell."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from unit.backends.cpu.foreign import made, support

import tilewright.language as pl
from tilewright.native.elf import read
from tilewright.native.interrupts import LOOK
from tilewright.native.machines import Machine, Processor, System
from tilewright.native.regions import POOL, SERIAL, TEAM
from tilewright.native.relocations import RULES
from tilewright.native.target import baseline
from tilewright.programs import platforms
from tilewright.programs.platforms import InterpretedWarning

MACHINES = [Machine(system, processor) for system in System for processor in Processor]


@pytest.mark.parametrize(
    "machine", MACHINES, ids=lambda machine: f"{machine.system.value}-{machine.processor.value[0]}"
)
def test_code_for_every_machine_takes_what_its_loader_knows(machine: Machine) -> None:
    regions = [support(machine, text) for text in (SERIAL, SERIAL + TEAM, SERIAL + POOL, LOOK)]
    for data in (made(baseline(machine))[1], *regions):
        found, rules = read(data), RULES[machine.processor]
        assert found.rules is rules
        assert {relocation.kind for relocation in found.relocations} <= rules.kinds.keys()


def told(script: str, **environment: str) -> str:
    """Return what a script prints in a process of its own."""
    command = [sys.executable, str(Path(__file__).parent / script)]
    run = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment}, timeout=60)
    assert run.returncode == 0, run.stderr
    return run.stdout.strip()


@pytest.mark.skipif(platform.machine() != "x86_64", reason="macOS and Linux share conventions on x86-64")
def test_a_process_that_takes_itself_for_macos_computes_on_threads_by_llvms_loader() -> None:
    said = "x86_64-apple-macosx11.0.0-elf, plain calls, 2 workers"
    assert told("as_macos.py", TILEWRIGHT_NUM_THREADS="3") == said


def test_a_process_without_what_windows_lacks_emits_for_it_and_interprets() -> None:
    assert told("as_windows.py") == "x86_64-pc-windows-msvc-elf, 62 objects, [2. 4. 6.]"


def test_a_machine_without_native_code_interprets_with_one_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    platforms._warn.cache_clear()  # pyright: ignore[reportPrivateUsage]
    x = np.ones((3, 4), np.float32)
    out = np.zeros_like(x)
    with pytest.warns(InterpretedWarning, match="not on linux and riscv64: kernels run on the interpreter") as caught:
        for _ in range(3):
            doubled(x, out)
            assert (out == 2 * x).all()
        assert doubled.compile(x, out).platform == "cpu"
    assert len(caught) == 1


@pl.jit
def doubled(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        tile = pl.load(x, [0, 0], [3, 4])
        pl.store(pl.add(tile, tile), [0, 0], out)
    return out
