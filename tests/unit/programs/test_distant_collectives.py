"""Rows that ranks without shared memory gather: what torch.distributed gathers, by broadcasts and by its own means."""

from __future__ import annotations

import threading
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np
import pytest
from processes import launched

from tilewright.dtypes import FP32, INT32
from tilewright.interpret.hosts import Collective, Window, WindowBuffer
from tilewright.ops.collectives import MEANINGS
from tilewright.programs.distributed.distant_collectives import FEW, HANDED, IN_TURNS, Joint
from tilewright.programs.distributed.torch_works import Scratch

WORKER = Path(__file__).with_name("gathers_worker.py")


@pytest.mark.parametrize("ranks", [2, 3, FEW, FEW + 1])
def test_rows_of_every_kind_of_element_are_gathered_as_torch_does(ranks: int, tmp_path: Path) -> None:
    printed = launched(ranks, tmp_path, WORKER, "messages")
    assert [text.splitlines()[-1:] for text in printed] == [["gathered"]] * ranks, "\n".join(printed)


@pytest.mark.parametrize("ranks", [2, FEW])
def test_who_broadcasts_may_be_ahead_where_ranks_reach_each_other_in_no_other_way(ranks: int, tmp_path: Path) -> None:
    printed = launched(ranks, tmp_path, WORKER.with_name("broadcasts_worker.py"), "messages")
    assert [text.splitlines()[-1:] for text in printed] == [["broadcast"]] * ranks, "\n".join(printed)


class Work:
    """Something that is done once it was waited for, once: torch waits for the next message otherwise."""

    def __init__(self, wait: Any) -> None:
        self._wait = wait

    def wait(self) -> None:
        self._wait()
        self._wait = partial(pytest.fail, "a message was waited for again")


class Mail:
    """A group of ranks that send each other messages, and have no collectives."""

    def __init__(self, rank: int, boxes: dict[tuple[int, int], SimpleQueue[Any]]) -> None:
        self._rank = rank
        self._boxes = boxes

    def send(self, tensors: list[Any], peer: int, tag: int) -> Work:
        self._boxes[self._rank, peer].put(tensors[0].clone())
        return Work(lambda: None)

    def recv(self, tensors: list[Any], peer: int, tag: int) -> Work:
        return Work(lambda: tensors[0].copy_(self._boxes[peer, self._rank].get(timeout=20)))


def parts(name: str, ranks: int, size: int) -> tuple[Collective, list[dict[str, Any]]]:
    """Return a collective of so many ranks, and the windows that each has."""
    row, rows, cells = (1, size), (ranks, size), (ranks, 1)
    shapes = {
        "barrier": {"signal": cells},
        "broadcast": {"target": row},
        "allgather": {"local_data": row, "target": rows},
        "allreduce": {"target": row},
        "reduce_scatter": {"target": rows},
        "all_to_all": {"input": rows, "target": rows},
        "all_to_all_v": {"input": rows, "target": rows, "send_counts": cells, "recv_counts": cells},
    }[name]
    kinds = {key: INT32 if "counts" in key or key == "signal" else FP32 for key in shapes}
    windows = {key: Window(WindowBuffer(0, {*range(ranks)}), shape, kinds[key]) for key, shape in shapes.items()}
    options = {"broadcast": {"root": ranks - 1}, "allreduce": {"op": 0, "mode": "mesh", "core_num": 1}}
    options["reduce_scatter"] = {"op": 0}
    made = np.random.default_rng(ranks * size)
    held = [
        {key: made.integers(0, 100, shape).astype(kinds[key].numpy) for key, shape in shapes.items()}
        for _ in range(ranks)
    ]
    return Collective(name, windows, options.get(name, {})), held


@pytest.mark.parametrize("size", [1, 1000, IN_TURNS])
@pytest.mark.parametrize("ranks", [2, 3, FEW])
@pytest.mark.parametrize("name", [name for name in MEANINGS if name != "barrier"] + ["barrier"])
def test_few_ranks_send_each_other_what_a_collective_gives_them(name: str, ranks: int, size: int) -> None:
    pytest.importorskip("torch")
    for is_crowded in (False, True):
        action, held = parts(name, ranks, size)
        wanted = [{key: array.copy() for key, array in each.items()} for each in held]
        MEANINGS[name](wanted, **action.options)
        boxes: dict[tuple[int, int], SimpleQueue[Any]] = {
            (source, peer): SimpleQueue() for source in range(ranks) for peer in range(ranks)
        }
        runs: list[Any] = []
        for rank in range(ranks):
            group = Mail(rank, boxes)
            joint = Joint(
                action, rank, held[rank], partial(pytest.fail, "torch is called"), partial(pytest.fail, "torch waits"),
                partial(_with, group), Scratch().of, has_own_row=False, is_crowded=is_crowded, are_apart=False,
            )  # fmt: skip
            runs.append(joint.made_ready())
        threads = [threading.Thread(target=run, daemon=True) for run in runs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        assert not any(thread.is_alive() for thread in threads)
        for rank in range(ranks):
            for key in ("target", "recv_counts"):
                if key in held[rank]:
                    at = rank if name == "reduce_scatter" else slice(None)
                    np.testing.assert_array_equal(held[rank][key][at], wanted[rank][key][at])


def _with(group: Any, swap: Any) -> None:
    swap(group)


class Broadcasts:
    """A group that has broadcasts alone, each of which goes through a list."""

    def __init__(self, rank: int, sent: list[Any]) -> None:
        self._rank = rank
        self._sent = sent

    def broadcast(self, tensor: Any, root: int) -> Work:
        if self._rank == root:
            self._sent.append(tensor.clone())
            return Work(lambda: None)
        return Work(lambda: tensor.copy_(self._sent.pop()))


def test_torch_broadcasts_what_is_long_to_few_ranks_as_well() -> None:
    pytest.importorskip("torch")
    action, held = parts("broadcast", 2, HANDED // FP32.get_byte() + 1)
    wanted, sent = held[1]["target"].copy(), list[Any]()
    for rank in (1, 0):
        group = Broadcasts(rank, sent)
        joint = Joint(
            action, rank, held[rank], partial(Broadcasts, rank, sent), Work.wait, partial(_with, group), Scratch().of,
            has_own_row=False, is_crowded=True, are_apart=True,
        )  # fmt: skip
        joint.made_ready()()
        assert (held[rank]["target"] == wanted).all()
