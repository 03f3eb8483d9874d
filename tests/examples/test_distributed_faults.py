"""Faults at every wait of the examples of many ranks: they end the others and name who failed; the next call works."""

from __future__ import annotations

import ctypes
import runpy
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from processes import LATE

from tilewright.backends.cpu.emit.function import FunctionEmitter, lowers
from tilewright.backends.cpu.emit.handlers import Bound
from tilewright.backends.cpu.host import cells, ranks
from tilewright.core.expr import Call
from tilewright.errors import ExecutionError
from tilewright.native.domains import Record
from tilewright.native.llvm import I64, PTR, i64
from tilewright.programs.distributed.progress import ThreadProgress
from tilewright.programs.distributed.team import TeamRun

RANKS, NEVER = 3, 1 << 40
FAULT = "a fault that was injected"
LEFT: Any = (ctypes.c_int64 * RANKS)(*[NEVER] * RANKS)
"""How many waits each rank has left before it fails: native code and Python count them down."""
FOLDER = Path(__file__).parents[2] / "examples" / "distributed"


WAITS: dict[str, tuple[str, Any]] = {
    "distributed.wait": ("signal", ranks._wait),  # pyright: ignore[reportPrivateUsage]
    "distributed.until": ("cell", cells._until),  # pyright: ignore[reportPrivateUsage]
}
"""The ops that wait, each with what it waits for, which begins a window, and how it is emitted."""


def failing_wait(e: FunctionEmitter, call: Call, bound: Bound) -> Any:
    """Emit a wait that fails when it is the turn of its rank to do so."""
    name, wait = WAITS[call.op.name]
    record = e.b.load(PTR, e.b.offset(bound[name].pointer, i64(-1), I64), 8)
    rank = e.b.load(I64, e.b.offset(record, i64(Record.RANK), I64), 8)
    counts = e.b.value(PTR, f"inttoptr i64 {ctypes.addressof(LEFT)} to ptr")
    cell = e.b.offset(counts, rank, I64)
    left = e.b.op("sub", e.b.load(I64, cell, 8), i64(1))
    e.b.store(left, cell, 8)
    e.stop(e.b.compare("icmp eq", left, i64(0)), FAULT, call)
    return wait(e, call, bound)


def failing_until(self: ThreadProgress, rank: int, number: int, until: Any = ThreadProgress.until) -> None:
    """Wait for turns of another rank, and fail as native waits do."""
    me = int(threading.current_thread().name.removeprefix("tilewright-rank-"))
    LEFT[me] -= 1
    if LEFT[me] == 0:
        raise ExecutionError(FAULT)
    until(self, rank, number)


@pytest.fixture
def faults() -> Iterator[None]:
    """Let waits count down, and no run take for ever."""
    wait = TeamRun.wait

    def soon(self: TeamRun, timeout: float) -> None:
        wait(self, min(timeout, 3 * LATE))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TeamRun, "wait", soon)
        patch.setattr(ThreadProgress, "until", failing_until)
        lowers(*WAITS)(failing_wait)
        try:
            yield
        finally:
            for name, (_, wait) in WAITS.items():
                lowers(name)(wait)


def waits_of(run: Callable[[], None]) -> list[int]:
    """Return how often each rank waits in a run that works."""
    LEFT[:] = [NEVER] * RANKS
    run()
    return [NEVER - left for left in LEFT]


@pytest.mark.usefixtures("faults")
@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("*.py")))
def test_a_rank_that_fails_at_any_wait_ends_the_others_and_the_next_call_works(name: str) -> None:
    module = runpy.run_path(str(FOLDER / f"{name}.py"))
    for way in module.get("WAYS", [None]):
        options = {} if way is None else {"way": way}

        def run(options: dict[str, str] = options) -> None:
            torch.testing.assert_close(*module["run"](RANKS, **options), rtol=1e-4, atol=1e-3)

        waits = waits_of(run)
        assert any(waits)
        for rank, number in [(rank, n) for rank, count in enumerate(waits) for n in range(1, count + 1)]:
            LEFT[:] = [number if each == rank else NEVER for each in range(RANKS)]
            since = time.monotonic()
            with pytest.raises(ExecutionError, match=FAULT) as caught:
                run()
            assert time.monotonic() - since < LATE and f"on rank {rank}" in caught.value.notes, (way, rank, number)
            others = [note for note in caught.value.notes if note.startswith("rank ")]
            assert all("this wait was ended" in note for note in others), others
            assert waits_of(run) == waits
