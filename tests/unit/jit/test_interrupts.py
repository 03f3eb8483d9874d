"""Interrupts: a signal ends a kernel soon, wherever it is, and the next call is right."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from unit.call.subjects import IS_NATIVE

pytestmark = pytest.mark.skipif(not IS_NATIVE, reason="kernels run natively on Linux only")

WORKER = Path(__file__).with_name("interrupt_worker.py")
SOON = 2.0  # seconds; 0.1 where nobody else wants the processor


def ending(case: str, *args: str, **environment: str) -> str:
    """Return what a call of the worker ends with; it ends soon after the signal, and the call after it is right."""
    run = subprocess.run(
        [sys.executable, "-W", "ignore", str(WORKER), case, *args],
        env={**os.environ, **environment}, timeout=60, capture_output=True, text=True,
    )  # fmt: skip
    assert (run.returncode, run.stderr) == (0, "")
    seconds, raised = run.stdout.split()
    assert float(seconds) < SOON
    return raised


@pytest.mark.parametrize(
    "case",
    [
        "while", "range", "parallel", "the_first_call", "a_large_tensor", "a_compiled_program", "a_product_of_matrices",
        "a_whole_tensor", "whoever_waits", "the_interpreter", "another_thread",
    ],
)  # fmt: skip
def test_an_interrupt_ends_a_kernel(case: str) -> None:
    assert ending(case) == "KeyboardInterrupt"


def test_an_interrupt_ends_a_kernel_that_torch_has_threads_for() -> None:
    pytest.importorskip("torch")
    assert ending("team", "torch", TILEWRIGHT_NUM_THREADS="2") == "KeyboardInterrupt"


def test_an_interrupt_ends_a_kernel_that_waits_for_torch_s_threads() -> None:
    pytest.importorskip("torch")
    assert ending("whoever_waits", "torch", TILEWRIGHT_NUM_THREADS="2") == "KeyboardInterrupt"


def test_an_interrupt_ends_a_kernel_on_one_thread() -> None:
    assert ending("parallel", TILEWRIGHT_NUM_THREADS="1") == "KeyboardInterrupt"


def test_an_interrupt_ends_a_kernel_that_python_dispatches() -> None:
    pytest.importorskip("torch")
    assert ending("the_plain_path", "torch", TILEWRIGHT_DISPATCH="python") == "KeyboardInterrupt"


def test_an_interrupt_ends_a_program_that_was_saved(tmp_path: Path) -> None:
    assert ending("a_saved_program", str(tmp_path)) == "KeyboardInterrupt"


def test_an_interrupt_ends_a_launch_of_pto() -> None:
    assert ending("a_launch_of_pto") == "KeyboardInterrupt"


def test_what_any_handler_raises_is_what_the_call_raises() -> None:
    assert ending("a_handler_that_raises") == "TimeoutError"


def test_a_handler_that_raises_nothing_runs_and_the_kernel_goes_on() -> None:
    assert ending("a_handler_that_does_not") == "nothing"


def test_a_handler_may_call_the_kernel_it_interrupts() -> None:
    assert ending("a_handler_that_calls_the_kernel") == "ArithmeticError"


def test_a_forked_child_of_a_thread_is_interrupted() -> None:
    assert ending("a_forked_child") == "KeyboardInterrupt"
