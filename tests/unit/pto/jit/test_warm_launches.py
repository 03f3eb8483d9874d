"""Warm launches: `kernel[grid, None](...)` written out each time goes without Python, and refuses what it did."""

# pyright: basic, reportInvalidTypeForm=false
from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from unit.call.subjects import frames
from unit.call.warming import native_only
from unit.pto.jit.kernels import ADD

from tilewright import pto
from tilewright.call.backoff import Backoff

TIMES = 120
"""More launches than it takes where LLVM is not loaded."""
STEP = 2.0


def adding() -> Any:
    @pto.jit(source=ADD, name="add")
    def handle(x: pto.ptr(pto.f32, "gm"), y: pto.ptr(pto.f32, "gm"), out: pto.ptr(pto.f32, "gm"), rows: pto.index): ...

    return handle


def traced() -> Any:
    @pto.jit()
    def stepped(x: pto.ptr(pto.f32, "gm"), out: pto.ptr(pto.f32, "gm"), rows: pto.index):
        source = pto.make_tensor_view(x, shape=[rows, 16], strides=[16, 1])
        target = pto.make_tensor_view(out, shape=[rows, 16], strides=[16, 1])
        tile = pto.alloc_tile(shape=[8, 16], dtype=pto.f32)
        pto.tile.load(pto.partition_view(source, offsets=[0, 0], sizes=[8, 16]), tile)
        pto.tile.adds(tile, STEP, tile)
        pto.tile.store(tile, pto.partition_view(target, offsets=[0, 0], sizes=[8, 16]))

    return stepped


def ones(count: int) -> list[Any]:
    return [np.ones((24, 16), np.float32) for _ in range(count)]


SUBJECTS: dict[str, tuple[Callable[[], Any], int]] = {
    "a handle": (adding, 3), "a compiled kernel": (lambda: adding().compile(), 3), "a traced body": (traced, 2),
}  # fmt: skip


@native_only
@pytest.mark.parametrize("subject", SUBJECTS)
def test_a_launch_that_is_written_out_each_time_runs_no_python(subject: str) -> None:
    make, count = SUBJECTS[subject]
    kernel, args = make(), (*ones(count), 24)
    for grid in (1, 2):
        for _ in range(TIMES):
            kernel[grid, None](*args)
        assert frames(lambda: kernel[grid, None](*args)) == 1  # noqa: B023
    kernel[3, None]
    assert frames(lambda: kernel[1, None](*args)) == 1


@pytest.mark.parametrize("subject", SUBJECTS)
def test_a_warm_kernel_refuses_every_other_grid_as_before(subject: str) -> None:
    make, count = SUBJECTS[subject]
    kernel, args = make(), (*ones(count), 24)
    specs: list[Any] = [True, 1.0, 0, -1, 1 << 40, 1 << 70, "1", (1,), (1, None, 2), (True, None), (1.0, None)]
    specs += [(0, None), (-1, None), (1 << 70, None), (None, None), (1, "stream"), (1, True), [1, None], None]

    def said(spec: Any) -> str:
        with pytest.raises(Exception) as caught:
            kernel[spec]
        return f"{type(caught.value).__name__}: {caught.value}"

    before = [said(spec) for spec in specs]
    for _ in range(TIMES):
        kernel[1, None](*args)
    assert [said(spec) for spec in specs] == before
    for spec in ((1, None), (np.int64(1), None), (1, 0), (2, 7)):
        kernel[spec](*args)


@native_only
def test_the_same_array_read_twice_is_warm() -> None:
    kernel, (x, out) = adding(), ones(2)
    for _ in range(TIMES):
        kernel[1, None](x, out.copy(), out, 24)
    for _ in range(TIMES):
        kernel[1, None](x, x, out, 24)
    assert (out[:8] == 2.0).all() and frames(lambda: kernel[1, None](x, x, out, 24)) == 1
    x.flags.writeable = False  # which nobody writes
    assert frames(lambda: kernel[1, None](x, x, out, 24)) == 1
    assert kernel.cache_info().compiles <= 1


def test_an_array_that_is_read_and_written_is_taken_for_both() -> None:
    kernel, (x, y) = adding(), ones(2)
    for count in range(TIMES):
        kernel[1, None](x, y, x, 24)
        assert (x[:8] == count + 2).all()
    x[:] = 1
    for count in range(10):
        kernel[1, None](x, x, x, 24)
        assert (x[:8] == 2.0 ** (count + 1)).all()
        kernel[1, None](y, y, y.copy(), 24)


@native_only
def test_a_warm_launch_of_a_body_follows_what_it_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, (x, out) = traced(), ones(2)
    for step in (2.0, 5.0, 2.0, 7.0):
        monkeypatch.setitem(globals(), "STEP", step)
        for _ in range(TIMES):
            kernel[1, None](x, out, 24)
            assert (out[:8] == 1 + step).all()
        assert frames(lambda: kernel[1, None](x, out, 24)) == 1
    kernel[1, None](x, x, 24)
    assert (x[:8] == 8.0).all()


@native_only
def test_what_is_learned_while_another_thread_forgets_is_forgotten() -> None:
    backoff, learned, forgetting = Backoff(), Learning(), threading.Thread(target=lambda: backoff.forget())

    def learn() -> Any:
        forgetting.start()
        forgetting.join(0.2)  # it waits for this
        return learned

    for _ in range(TIMES):
        backoff.look(lambda: learned, learn if forgetting.ident is None else lambda: None)  # type: ignore[arg-type, return-value]
    forgetting.join()
    assert learned.happened == ["learn", "leave"]


class Learning:
    """What takes calls, and what happened to it."""

    def __init__(self) -> None:
        self.happened: list[str] = []

    def learn(self, *_: Any) -> bool:
        self.happened.append("learn")
        return True

    def leave(self) -> None:
        self.happened.append("leave")
