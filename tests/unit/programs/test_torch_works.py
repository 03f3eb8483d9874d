"""Works: a rank that waits for torch tells what takes long from what has failed."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tilewright.errors import ExecutionError
from tilewright.programs.distributed import torch_works
from tilewright.programs.distributed.torch_works import until_done


@dataclass
class Work:
    """A work that is over, well or not, just after somebody has stopped waiting for it."""

    fails: bool
    is_over: bool = False

    def is_completed(self) -> bool:
        return self.is_over

    def wait(self, timeout: object) -> None:
        if not self.is_over:
            self.is_over = True
            raise RuntimeError("timed out")
        if self.fails:
            raise RuntimeError("connection closed by peer")


def nothing() -> None:
    pass


def test_what_is_done_just_after_a_wait_for_it_has_not_failed() -> None:
    until_done([0, 1], nothing, Work(fails=False))


def test_what_has_failed_says_whose_processes_cannot_be_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_works, "SOON", 0.0)
    with pytest.raises(ExecutionError, match=r"the processes of ranks \[0, 1\] cannot be reached"):
        until_done([0, 1], nothing, Work(fails=True))
