"""Threads, forks, the collector: warm calls while other things happen."""

# pyright: basic, reportInvalidTypeForm=false, reportArgumentType=false
from __future__ import annotations

import gc
import sys
import threading
import weakref
from typing import Any

import pytest
import torch
from unit.call.subjects import SUBJECTS
from unit.call.warming import (
    add,
    configured,
    fresh,
    in_a_child,
    ones,
    running,
    values,
)

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # torch's own, about sparse and quantized tensors


def test_of_many_threads_one_compiles(busy: None, dispatch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", "off")
    kernel, barrier = fresh(add), threading.Barrier(8)

    def work(number: int) -> None:
        barrier.wait()
        for _ in range(20):
            out = torch.zeros(4, 8)
            kernel(ones(), ones(), out)
            assert (out == 3.0).all()

    running(8, work)
    assert kernel.cache_info()[1:3] == (1, 1)


def test_a_kernel_may_be_dropped_while_it_runs(busy: None) -> None:
    """The code lives as long as any call of it."""
    alive: list[Any] = []

    def work(number: int) -> None:
        big, out = torch.ones(64, 1024), torch.zeros(64, 1024)
        for _ in range(2):
            kernel = fresh(add)
            alive.append(weakref.ref(kernel))
            for _ in range(4):
                kernel(big, big, out)
            inner = [threading.Thread(target=kernel, args=(big, big, torch.zeros(64, 1024))) for _ in range(3)]
            for thread in inner:
                thread.start()
            del kernel
            gc.collect()
            for thread in inner:
                thread.join()
            assert (out == 3.0).all()

    running(3, work)
    gc.collect()
    assert not any(reference() is not None for reference in alive)


@pytest.mark.parametrize("subject", SUBJECTS)
def test_what_nobody_holds_is_forgotten(subject: str) -> None:
    call = SUBJECTS[subject]()
    for _ in range(5):
        call(*values().values())
    held = weakref.ref(call)
    del call
    gc.collect()
    assert held() is None


def test_the_cache_may_be_cleared_while_kernels_run(busy: None) -> None:
    kernel = fresh(add)

    def work(number: int) -> None:
        x = torch.ones(64, 1024)
        for n in range(16):
            out = torch.zeros(64, 1024)
            kernel(x, x, out)
            assert (out == 3.0).all()
            if number == 0 and n % 5 == 0:
                kernel.cache_clear()
                gc.collect()

    running(4, work)


class Slow:
    """A value that takes one thread as long to read as somebody wants, once it is armed."""

    def __init__(self) -> None:
        self.armed, self.reading, self.go_on = False, threading.Event(), threading.Event()

    @property
    def k(self) -> float:
        if self.armed:
            self.armed = False
            self.reading.set()
            self.go_on.wait(60)
        return 2.0


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_forked_in_the_middle_of_a_call_makes_and_compiles_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Slow()
    kernel = fresh(configured, CFG=slow)
    kernel(ones(), torch.zeros(4, 8))
    slow.armed = True
    thread = threading.Thread(target=kernel, args=(ones(), torch.zeros(4, 8)))
    thread.start()
    assert slow.reading.wait(60)

    def child() -> bool:
        out, other = torch.zeros(4, 8), torch.zeros(2, 8)
        calls = [threading.Thread(target=kernel, args=(ones(*o.shape), o)) for o in (out, other)]
        for one in calls:
            one.start()
            one.join(20)
        return not any(one.is_alive() for one in calls) and bool((out == 2.0).all() and (other == 2.0).all())

    try:
        assert in_a_child(child)
    finally:
        slow.go_on.set()
        thread.join()


def test_calls_that_fall_back_take_no_memory() -> None:
    kernel, x, y, out = fresh(add), ones(), ones(8, 4).t(), torch.zeros(4, 8)
    for _ in range(300):
        kernel(x, y=y, out=out)
    gc.collect()
    before = sys.getallocatedblocks()
    for _ in range(1000):
        kernel(x, y=y, out=out)
    gc.collect()
    assert sys.getallocatedblocks() - before < 300
