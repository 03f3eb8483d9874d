"""A process that is sent signals while kernels run: `python interrupt_worker.py case...` prints what became of each.

It prints the case, how many seconds the process had of processors between the signal and the exception, then the
exception; the next call must be right.
"""

# pyright: basic, reportInvalidTypeForm=false, reportArgumentType=false, reportOperatorIssue=false
from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import tilewright.language as pl

CASE, *GIVEN = sys.argv[1:]

if "torch" in GIVEN:
    import torch

    torch.ones(1 << 20).exp()

N = pl.dynamic("N")
Words = pl.Tensor[[N], pl.INT64]


@pl.jit
def endless(limit: Words, out: pl.Out[Words]):
    with pl.at(level=pl.Level.CORE_GROUP):
        i, last = pl.const(0, pl.INT64), pl.read(limit, [0])
        while i != last:
            i = i + 1
        pl.write(out, [0], i)
    return out


@pl.jit
def counted(limit: Words, out: pl.Out[Words]):
    with pl.at(level=pl.Level.CORE_GROUP):
        n = pl.const(0, pl.INT64)
        for i in pl.range(pl.cast(pl.read(limit, [0]), pl.INDEX)):
            n = n + pl.read(limit, [i % 2]) * 0 + 1
        pl.write(out, [0], n)
    return out


@pl.jit
def side_by_side(limit: Words, out: pl.Out[Words]):
    for i in pl.parallel(64):
        with pl.at(level=pl.Level.CORE_GROUP):
            n = pl.const(0, pl.INT64)
            for j in pl.range(pl.cast(pl.read(limit, [0]), pl.INDEX)):
                n = n + pl.read(limit, [j % 2]) * 0 + 1
            pl.write(out, [i], n)
    return out


@pl.jit
def one_by_another(limit: Words, out: pl.Out[Words]):
    for i in pl.parallel(2):
        with pl.at(level=pl.Level.CORE_GROUP):
            n = pl.const(0, pl.INT64)
            if pl.read(out, [8 + i]) == 1:  # one turn is nothing: whoever makes it waits for the other
                for j in pl.range(pl.cast(pl.read(limit, [0]), pl.INDEX)):
                    n = n + pl.read(limit, [j % 2]) * 0 + 1
            pl.write(out, [i], n)
    return out


@pl.jit
def multiplied(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        out = pl.assemble(out, pl.matmul(a, b), [0, 0])
    return out


@pl.jit
def summed(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        out = pl.assemble(out, pl.row_sum(pl.exp(x)), [0, 0])
    return out


FOREVER = (1 << 62) + 1
TURNS = 5_000_000_000
"""Of a loop that takes a second or two: far longer than a signal, on a machine that others use, too."""


def words(limit: int, count: int = 64) -> np.ndarray:
    return np.full(count, limit, np.int64)


def signalled(number: str, delay: float) -> subprocess.Popen[bytes]:
    """Return a process that sends this one a signal soon after its input is closed, and prints what it had by then."""
    script = f"read line; sleep {delay}; cat /proc/{os.getpid()}/stat; kill -{number} {os.getpid()}"
    return subprocess.Popen(["sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def seconds_of(stat: str) -> float:
    """Return the seconds that a process had of processors, as Linux tells of it; others may run meanwhile."""
    user, system = stat.rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def report(call: Callable[[], object], number: str = "INT", *, delay: float = 0.1) -> None:
    """Print what becomes of a call during which a signal comes."""
    sender = signalled(number, delay)
    assert sender.stdin is not None and sender.stdout is not None
    try:
        sender.stdin.close()
        call()
        raised = "nothing"
    except BaseException as error:
        raised = type(error).__name__
    ended = seconds_of(Path("/proc/self/stat").read_text())
    print(f"{ended - seconds_of(sender.stdout.read().decode()):.3f} {raised}")
    sender.wait()


def kernel_case(kernel: Callable[..., object], count: int = 64) -> None:
    """Interrupt a call; the calls before and after it are right."""
    out = np.zeros(count, np.int64)
    kernel(words(10, count), out)
    kernel(words(10, count), out)
    assert out[0] == 10
    report(lambda: kernel(words(FOREVER, count), np.ones(count, np.int64)))
    out[:] = 0
    kernel(words(12, count), out)
    assert out[0] == 12


def the_first_call() -> None:
    report(lambda: endless(words(FOREVER), words(0)), delay=0.4)  # compiled by then


def a_large_tensor() -> None:
    kernel_case(counted, 1 << 16)


def a_team_of_torch() -> None:
    assert "torch" in sys.modules
    kernel_case(side_by_side)


def whoever_waits() -> None:
    out = np.ones(64, np.int64)
    one_by_another(words(10), out)
    out[8] = 0
    report(lambda: one_by_another(words(FOREVER), out))


def a_compiled_program() -> None:
    program = counted.compile(words(1), words(1))
    kernel_case(program)


def a_saved_program() -> None:
    from tilewright.programs.program import CompiledProgram

    counted.compile(words(1), words(1)).save(GIVEN[0])
    kernel_case(CompiledProgram.load(GIVEN[0]))


def the_plain_path() -> None:
    torch = sys.modules["torch"]

    def kernel(limit: np.ndarray, out: np.ndarray) -> None:
        counted(torch.from_numpy(limit), torch.from_numpy(out))

    kernel_case(kernel)
    assert counted.cache_info().hits >= 2


def a_launch_of_pto() -> None:
    from tilewright import pto

    @pto.jit()
    def count(out: pto.ptr(pto.i64, "gm"), n: pto.i64):
        for _ in range(n):
            pto.store_scalar(n, out, 0)

    def kernel(limit: np.ndarray, out: np.ndarray) -> None:
        count[1, None](out, int(limit[0]))

    kernel_case(kernel)


def a_forked_child() -> None:
    """The thread that forks is the main one of the child."""
    endless(words(10), words(0))
    status: list[int] = []

    def fork() -> None:
        pid = os.fork()
        if pid == 0:
            kernel_case_with("INT")
            sys.stdout.flush()
            os._exit(0)
        status.append(os.waitpid(pid, 0)[1])

    thread = threading.Thread(target=fork)
    thread.start()
    thread.join()
    assert status == [0]


def the_interpreter() -> None:
    from tilewright import ir

    program = ir.compile(endless.lower(words(1), words(1)), platform="interpret")
    report(lambda: program(words(FOREVER), words(0)))


def a_product_of_matrices() -> None:
    a, b, out = (np.ones((6000, 6000), np.float32) for _ in range(3))
    program = multiplied.compile(a, b, out)
    report(lambda: program(a, b, out))


def a_whole_tensor() -> None:
    row = np.ones((1, 1 << 12), np.float32)
    x = np.lib.stride_tricks.as_strided(row, (1 << 20, 1 << 12), (0, 4))
    out = np.ones((1 << 20, 1), np.float32)
    program = summed.compile(x, out)
    report(lambda: program(x, out))


def a_handler_that_raises() -> None:
    def handler(number: int, frame: object) -> None:
        raise TimeoutError("enough")

    signal.signal(signal.SIGALRM, handler)
    kernel_case_with("ALRM")


def kernel_case_with(number: str) -> None:
    endless(words(10), words(0))
    report(lambda: endless(words(FOREVER), words(0)), number)
    out = words(0)
    endless(words(12), out)
    assert out[0] == 12


def a_handler_that_does_not() -> None:
    """The handler runs while the kernel does, and the kernel goes on to its end."""
    ran: list[float] = []
    signal.signal(signal.SIGINT, lambda number, frame: ran.append(time.monotonic()))
    endless(words(10), words(0))
    out, begun = words(0), time.monotonic()
    sender = signalled("INT", 0.05)
    assert sender.stdin is not None
    sender.stdin.close()
    endless(words(TURNS), out)
    ended = time.monotonic()
    sender.wait()
    assert out[0] == TURNS
    assert len(ran) == 1 and begun < ran[0] < ended
    print(f"{0 if ended - ran[0] > 0.05 else 9} nothing")


def a_handler_that_calls_the_kernel() -> None:
    def handler(number: int, frame: object) -> None:
        out = words(0)
        endless(words(7), out)
        raise ArithmeticError(str(out[0])) if out[0] == 7 else RuntimeError

    signal.signal(signal.SIGINT, handler)
    kernel_case_with("INT")


def another_thread() -> None:
    """A kernel in a thread that holds the interpreter's lock does not keep the main thread from being interrupted."""
    endless(words(10), words(0))
    endless(words(10), words(0))
    thread = threading.Thread(target=endless, args=(words(FOREVER), words(0)), daemon=True)
    thread.start()
    report(thread.join)
    sys.stdout.flush()
    os._exit(0)


CASES = {
    "while": lambda: kernel_case(endless),
    "range": lambda: kernel_case(counted),
    "parallel": lambda: kernel_case(side_by_side),
    "team": a_team_of_torch,
    **{function.__name__: function for function in (
        the_first_call, a_large_tensor, whoever_waits, a_compiled_program, a_saved_program, the_interpreter,
        a_product_of_matrices, a_whole_tensor, a_handler_that_raises, a_handler_that_does_not,
        a_handler_that_calls_the_kernel, another_thread, the_plain_path, a_launch_of_pto, a_forked_child,
    )},
}  # fmt: skip

if __name__ == "__main__":
    for case in CASE.split(","):
        signal.signal(signal.SIGINT, signal.default_int_handler)
        print(case, end=" ", flush=True)
        CASES[case]()
        sys.stdout.flush()
