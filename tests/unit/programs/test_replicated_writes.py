"""Replicated writes: all begin with what rank 0 has of a tensor that several write, and changes come after that."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilewright.core.enums import ParamDirection
from tilewright.core.region import whole
from tilewright.interpret.hosts import Dispatch, Plan, Turn
from tilewright.passes.aliases import Footprint
from tilewright.programs.distributed.replicated_writes import Changes

FIRST = np.full(8, 7, np.uint8)
CHANGED = np.frombuffer(np.array([0, 4], np.int64).tobytes() + b"\1\1\1\1", np.uint8)
"""The bytes from 0 to 4, as another rank has written them."""


def of_rank_1() -> tuple[Changes, list[Any]]:
    """Return what rank 1 of three has of a tensor that all of them are given to write."""
    args, plan = [whole(np.zeros(8, np.uint8))], Plan(3)
    actions = [Dispatch(rank, "fills", tuple(args)) for rank in range(3)]
    plan.turns = [[Turn(action, ())] for action in actions]
    footprint = Footprint(writes=frozenset([0]))
    return Changes(plan, 1, args, {0: ParamDirection.Out}, {"fills": footprint}), args


@pytest.mark.parametrize("order", ["sent, begun, changed", "begun, sent, changed", "begun, changed, sent"])
def test_what_others_have_changed_comes_after_what_rank_0_begins_with(order: str) -> None:
    changes, args = of_rank_1()
    for _ in range(2):  # a run, and the next
        found: dict[int, Any] = {}
        for what in order.split(", "):
            if what == "begun":
                found.update(changes.begin(args))
            else:
                changes.take(0, *((0, FIRST) if what == "sent" else (2, CHANGED)))
        assert found[0].tolist() == [1, 1, 1, 1, 7, 7, 7, 7]
