"""Support: what runs beside every program is there when the first one is, and nobody has waited for it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tilewright.native import support

HEAD = """
import gc, os, sys, threading
import numpy as np
import tilewright.language as pl
from tilewright import forks
from tilewright.native import support, threads

asked = []
emitted = support.emitted
support.emitted = lambda text: asked.append(threading.current_thread().name) or emitted(text)

@pl.jit
def doubled(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    for r in pl.parallel(0, x.shape[0], 4):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [r, 0], [4, x.shape[1]]) * 2.0, [r, 0], out)
    return out

def fine(columns):
    return bool((doubled(np.ones((8, columns), np.float32)) == 2).all())
"""


Printed = Callable[..., list[str]]


@pytest.fixture
def printed(tmp_path: Path) -> Printed:
    """Return the words that a new process prints, which keeps nothing unless it is told where."""

    def run(script: str, threads: int = 2, cache: str = "off") -> list[str]:
        file = tmp_path / "script.py"
        file.write_text(HEAD + script)
        environment = {**os.environ, "TILEWRIGHT_CACHE_DIR": cache, "TILEWRIGHT_NUM_THREADS": str(threads)}
        command = [sys.executable, "-W", "ignore::DeprecationWarning", str(file)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout.split()

    return run


def test_the_first_program_begins_it_in_threads(printed: Printed) -> None:
    script = """
started, start = [], threading.Thread.start
threading.Thread.start = lambda self: started.append(self.name) or start(self)
print(fine(4), fine(8), *started)
"""
    assert printed(script) == ["True", "True", "tilewright-llvm", "tilewright-llvm"]


def test_what_the_thread_has_made_nobody_makes_again(printed: Printed) -> None:
    script = """
support.begin_code()
for thread in set(threading.enumerate()) - {threading.main_thread()}:
    thread.join()
print(fine(4), *asked)
"""
    assert printed(script) == ["True", "tilewright-llvm", "tilewright-llvm"]


def test_llvm_is_made_ready_in_a_thread(printed: Printed) -> None:
    script = """
ready = support.make_ready
support.make_ready = lambda target: print(threading.current_thread().name) or ready(target)
print(fine(4))
for thread in set(threading.enumerate()) - {threading.main_thread()}:
    thread.join()
"""
    assert sorted(printed(script)) == ["True", "tilewright-llvm"]


def test_a_process_may_end_meanwhile(printed: Printed) -> None:
    assert printed("support.begin()\nsupport.begin_code()\nprint('ended')") == ["ended"]


def test_threads_may_compile_their_first_programs_at_once(printed: Printed) -> None:
    script = """
found = []
threads = [threading.Thread(target=lambda n=n: found.append(fine(n))) for n in (4, 8, 16)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(*found)
"""
    assert printed(script) == ["True", "True", "True"]


def test_the_threads_import_nothing(printed: Printed) -> None:
    script = """
import builtins
found, imported = builtins.__import__, []
def looked(*args, **named):
    imported.append(threading.current_thread().name)
    return found(*args, **named)
builtins.__import__ = looked
print(fine(4), *{*imported})
"""
    assert printed(script) == ["True", "MainThread"]


def test_what_one_process_has_made_no_other_makes_again(printed: Printed, tmp_path: Path) -> None:
    cache = str(tmp_path / "cache")
    assert len(printed("print(fine(4), *asked)", cache=cache)) == 1 + len(support.REGIONS)
    assert printed("print(fine(8), *asked)", cache=cache) == ["True"]


def test_one_processor_makes_it_when_it_is_needed(printed: Printed) -> None:
    assert "tilewright-llvm" not in printed("print(fine(4), *asked)", threads=1)


def test_importing_and_decorating_begin_nothing(printed: Printed) -> None:
    assert printed("print(*asked, threading.active_count(), 'llvmlite' in sys.modules)") == ["1", "False"]


def test_where_no_thread_can_start_the_caller_makes_it(printed: Printed) -> None:
    refuse = 'def refuse(self): raise RuntimeError("can\'t start new thread")\nthreading.Thread.start = refuse\n'
    assert printed(refuse + "print(fine(4), *asked)") == ["True", "MainThread", "MainThread"]


def test_a_child_that_is_forked_meanwhile_finds_it_whole(printed: Printed) -> None:
    script = """
support.begin()
support.begin_code()
child = os.fork()
if not child:
    os._exit(0 if fine(4) else 1)
print(os.waitpid(child, 0)[1], fine(4))
"""
    assert printed(script) == ["0", "True"]


def test_an_error_of_llvm_is_met_by_who_needs_it(printed: Printed) -> None:
    script = """
def broken(text): raise OSError("no LLVM")
support.emitted = broken
try:
    fine(4)
except OSError as error:
    print(error)
"""
    assert printed(script) == ["no", "LLVM"]


def test_of_several_threads_one_makes_a_region(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(support, "_objects", {})

    def emitted(text: str) -> bytes:
        asked.append(text)
        return b"code"

    monkeypatch.setattr(support, "emitted", emitted)
    threads = [threading.Thread(target=support.made, args=("text",)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert asked == ["text"] and support.made("text") == b"code"
