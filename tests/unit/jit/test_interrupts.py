"""Interrupts: a signal ends a kernel soon, wherever it is, and the next call is right."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from unit.call.subjects import IS_NATIVE

pytestmark = pytest.mark.skipif(not IS_NATIVE, reason="kernels run natively on Linux only")

WORKER = Path(__file__).with_name("interrupt_worker.py")
SOON = 2.0  # seconds of processors


TOGETHER = [
    "the_first_call", "while", "range", "parallel", "a_large_tensor", "a_compiled_program", "a_product_of_matrices",
    "a_whole_tensor", "whoever_waits", "the_interpreter", "a_launch_of_pto", "a_handler_that_raises",
    "a_handler_that_does_not", "a_handler_that_calls_the_kernel", "another_thread",
]  # fmt: skip
"""Cases that share a process: a process that was interrupted goes on."""


def endings(cases: str, *args: str, **environment: str) -> dict[str, str]:
    """Return what each case ends with; it ends soon after the signal, and the call after it is right."""
    run = subprocess.run(
        [sys.executable, "-W", "ignore", str(WORKER), cases, *args],
        env={**os.environ, **environment}, timeout=300, capture_output=True, text=True,
    )  # fmt: skip
    assert (run.returncode, run.stderr) == (0, ""), run.stdout
    found: dict[str, str] = {}
    for line in run.stdout.splitlines():
        case, seconds, found[case] = line.split()
        assert float(seconds) < SOON, line
    return found


def ending(case: str, *args: str, **environment: str) -> str:
    """Return what one case ends with, alone in its process."""
    return endings(case, *args, **environment)[case]


@pytest.fixture(scope="module")
def ended() -> dict[str, str]:
    return endings(",".join(TOGETHER))


@pytest.mark.parametrize("case", [case for case in TOGETHER if not case.startswith("a_handler")])
def test_an_interrupt_ends_a_kernel(case: str, ended: dict[str, str]) -> None:
    assert ended[case] == "KeyboardInterrupt"


def test_an_interrupt_ends_a_kernel_that_runs_on_torch_s_threads_or_waits_for_them() -> None:
    pytest.importorskip("torch")
    found = endings("team,whoever_waits", "torch", TILEWRIGHT_NUM_THREADS="2")
    assert found == {"team": "KeyboardInterrupt", "whoever_waits": "KeyboardInterrupt"}


def test_an_interrupt_ends_a_kernel_on_one_thread() -> None:
    assert ending("parallel", TILEWRIGHT_NUM_THREADS="1") == "KeyboardInterrupt"


def test_an_interrupt_ends_a_kernel_that_python_dispatches() -> None:
    pytest.importorskip("torch")
    assert ending("the_plain_path", "torch", TILEWRIGHT_DISPATCH="python") == "KeyboardInterrupt"


def test_an_interrupt_ends_a_program_that_was_saved(tmp_path: Path) -> None:
    assert ending("a_saved_program", str(tmp_path)) == "KeyboardInterrupt"


@pytest.mark.parametrize(
    ("case", "raised"), [("raises", "TimeoutError"), ("does_not", "nothing"), ("calls_the_kernel", "ArithmeticError")]
)
def test_what_a_handler_raises_is_what_the_call_raises(case: str, raised: str, ended: dict[str, str]) -> None:
    assert ended[f"a_handler_that_{case}"] == raised


def test_a_forked_child_of_a_thread_is_interrupted() -> None:
    assert ending("a_forked_child") == "KeyboardInterrupt"


FIRST = """
import signal, sys
import numpy as np
import tilewright.language as pl

@pl.jit
def counted(limit: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        i, last = pl.const(0, pl.INT64), pl.read(limit, [0])
        while i != last:
            i = i + 1
        pl.write(out, [0], i)
    return out

limit, out = np.full(64, 10), np.zeros(64, np.int64)
signal.signal(signal.SIGALRM, signal.default_int_handler)
signal.setitimer(signal.ITIMER_REAL, float(sys.argv[1]))
try:
    counted(limit, out)
except KeyboardInterrupt:
    pass
signal.setitimer(signal.ITIMER_REAL, 0)
for _ in range(3):
    counted(limit, out)
print(out[0])
"""


IMPORTING = re.compile(r"Exception ignored in: <function _get_module_lock.*?KeyboardInterrupt: \n", re.DOTALL)
"""What Python says of an interrupt between two lines of its own imports, which it forgets."""


@pytest.mark.parametrize("milliseconds", [8, 20, 35, 50, 70, 100])
def test_a_first_call_that_is_interrupted_leaves_the_next_whole(milliseconds: int, tmp_path: Path) -> None:
    """While it imports, loads LLVM in a thread and compiles: no lock stays taken, no op is declared twice."""
    script = tmp_path / "first.py"
    script.write_text(FIRST, encoding="utf-8")
    environment = {**os.environ, "TILEWRIGHT_CACHE_DIR": "off", "TILEWRIGHT_NUM_THREADS": "2"}
    command = [sys.executable, "-W", "ignore", str(script), str(milliseconds / 1000)]
    run = subprocess.run(command, env=environment, timeout=100, capture_output=True, text=True)
    assert (run.stdout, IMPORTING.sub("", run.stderr)) == ("10\n", "")
