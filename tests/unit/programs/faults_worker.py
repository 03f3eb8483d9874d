"""One process of two: has each rank fail at each of its waits in turn, and prints what it saw."""

from __future__ import annotations

import os
import runpy
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from processes import LATE

from tilewright.backends.cpu.emit.function import FunctionEmitter, lowers
from tilewright.backends.cpu.emit.handlers import Bound
from tilewright.backends.cpu.host import cells, ranks
from tilewright.core.expr import Call
from tilewright.errors import ExecutionError
from tilewright.native.context import Context
from tilewright.native.domains import Record
from tilewright.native.llvm import I64, PTR, i64
from tilewright.programs.distributed.group import group_of
from tilewright.programs.distributed.joint_waits import JointWaits
from tilewright.programs.distributed.process_progress import ProcessProgress
from tilewright.programs.distributed.segments import Control, Segment

RANK, RANKS, NEVER = int(os.environ["RANK"]), 2, 1 << 40
FAULT = "a fault that was injected"
LEFT = 15
"""The word of a segment's page that counts the waits down which a rank has left before it fails."""
FOLDER = Path(__file__).parents[3] / "examples" / "distributed"
WAITS: dict[str, Any] = {
    "distributed.wait": ranks._wait,  # pyright: ignore[reportPrivateUsage]
    "distributed.until": cells._until,  # pyright: ignore[reportPrivateUsage]
}
"""How each op that waits is emitted."""
until, begin = ProcessProgress.until, Segment.begin
until_done, until_swapped = JointWaits.until_done, JointWaits.until_swapped
left = [NEVER] * RANKS
running: list[Segment] = []


def failing_wait(e: FunctionEmitter, call: Call, bound: Bound) -> Any:
    if call.op.name == "distributed.wait":
        record = e.b.load(PTR, e.b.offset(bound["signal"].pointer, i64(-1), I64), 8)
        words = e.b.load(PTR, e.b.offset(record, i64(Record.ABORT), I64), 8)
    else:
        words = e.b.load(PTR, e.b.offset(e.context, i64(Context.WAITS), I64), 8)
    cell = e.b.offset(words, i64(LEFT), I64)
    count = e.b.op("sub", e.b.load(I64, cell, 8), i64(1))
    e.b.store(count, cell, 8)
    e.stop(e.b.compare("icmp eq", count, i64(0)), FAULT, call)
    return WAITS[call.op.name](e, call, bound)


def failing_until(self: ProcessProgress, rank: int, number: int) -> None:
    words = self.words[self.rank]
    words[LEFT] -= 1
    if not words[LEFT]:
        raise ExecutionError(FAULT)
    until(self, rank, number)


def failing_until_done(self: JointWaits, *args: Any, **named: Any) -> None:
    words = running[0].words
    words[LEFT] -= 1
    if not words[LEFT]:
        raise ExecutionError(FAULT)
    until_done(self, *args, **named)


def failing_until_swapped(self: JointWaits, *args: Any, **named: Any) -> None:
    words = running[0].words
    words[LEFT] -= 1
    if not words[LEFT]:
        raise ExecutionError(FAULT)
    until_swapped(self, *args, **named)


def counting_down(self: Segment) -> None:
    begin(self)
    self.words[LEFT] = left[RANK]
    running[:] = [self]


def waits_of(run: Callable[[], None]) -> list[int]:
    left[:] = [NEVER] * RANKS
    run()
    return group_of().exchanged(NEVER - int(running[0].words[LEFT]), "waits")


def faults(name: str, run: Callable[[], None]) -> None:
    waits, verdict = waits_of(run), "right"
    for rank, number in [(rank, n) for rank, count in enumerate(waits) for n in range(1, count + 1)]:
        left[:] = [number if each == rank else NEVER for each in range(RANKS)]
        since, said = time.monotonic(), ""
        try:
            run()
        except ExecutionError as error:
            said = str(error)
        wanted = FAULT if rank == RANK else f"rank {rank} failed: {FAULT}"
        if wanted not in said or time.monotonic() - since > LATE or waits_of(run) != waits:
            verdict = f"wrong at wait {number} of rank {rank}: {said}"
    print(f"{name}: {sum(waits)} waits: {verdict}".replace("\n", " | "), flush=True)


lowers(*WAITS)(failing_wait)
ProcessProgress.until = failing_until
Segment.begin = counting_down
JointWaits.until_done, JointWaits.until_swapped = failing_until_done, failing_until_swapped
assert len(Control) < LEFT
for path in sorted(FOLDER.glob("*.py")):
    module = runpy.run_path(str(path))
    for way in module.get("WAYS", [None]):
        options = {} if way is None else {"way": way}

        def run(example: Any = module["run"], options: dict[str, str] = options) -> None:
            torch.testing.assert_close(*example(RANKS, **options), rtol=1e-4, atol=1e-3)

        faults(f"{path.stem}.{way}", run)
