"""Collectives of ranks that share no memory: torch.distributed's own, which all ranks of a domain call together.

Elements are reduced in the order of ranks, as where memory is shared: torch moves them, and each rank reduces what it
is to have, or all of it where that is little. What is short goes by messages (`exchanges.py`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from tilewright.arrays import np
from tilewright.core.enums import ReduceOp
from tilewright.core.region import Array
from tilewright.interpret.hosts import Collective
from tilewright.ops.collectives import reduced
from tilewright.programs.distributed.link import flat_bytes
from tilewright.programs.distributed.torch_reductions import reduced_by_torch, settled

SMALL = 1 << 16
"""Bytes of all ranks up to which each of them has all, and reduces them for itself."""

FEW = 4
"""Ranks up to which rows are gathered by a broadcast of each, which take as many steps as a ring and copy nothing.

torch's all-gather makes new memory for the rows of all and copies them from there: it takes two to three times as long
for rows of megabytes.
"""


SOME = 8
"""Ranks up to which each sends all others what is short."""

_EITHER = {ReduceOp.Sum: "SUM", ReduceOp.Prod: "PRODUCT"}
_ROUNDED = ("float32", "bfloat16")
"""What torch may reduce for two ranks, to the same bits: its order does not matter."""


_NARROW = ("float16", "bfloat16")
"""Elements that NumPy reduces ten to forty times as slowly as torch does, which gives the same bits."""
_INFINITE = {"bfloat16": 0x7F80, "float16": 0x7C00}
"""Infinity, as bits: those of NaN are more."""


class Joint:
    """A collective as one rank of several calls it, on its own windows; `wait` ends once torch is done, or the run.

    `exchange` takes bytes for some ranks and returns those that they have for this one. `group` gives the group of its
    ranks, which is not held here: its threads end with the last reference to it.
    """

    def __init__(
        self, action: Collective, rank: int, windows: Mapping[str, Array], group: Callable[[], Any],
        wait: Callable[[Any], None], exchange: Callable[[Mapping[int, Array]], Mapping[int, Array]],
    ) -> None:  # fmt: skip
        self.domain = action.domain
        self.room = 0
        """Bytes that are short, as messages have it."""
        self.has_own_row = False
        """Whether what a gather has of this rank is the memory of its row."""
        self.windows = windows
        self.options = action.options
        self.count, self.me = len(action.domain), action.domain.index(rank)
        self._group = group
        self.run: Callable[[], None] = getattr(self, action.name)
        self._wait = wait
        self._exchange = exchange
        self._dist: Any = sys.modules["torch.distributed"]

    def barrier(self) -> None:
        """Wait until all have come."""
        self._wait(self._group().barrier())

    def broadcast(self) -> None:
        """Take what the root has, once all have come."""
        self.barrier()
        self._wait(self._broadcast(self.windows["target"], self.options["root"]))

    def allgather(self) -> None:
        """Take a row of each."""
        self._gather(self.windows["target"][: self.count], self.windows["local_data"][0], has_own=self.has_own_row)

    def allreduce(self) -> None:
        """Reduce all, or what falls to this rank and take what the others have reduced."""
        target: Any = self.windows["target"]
        are_two, op = self.count == 2, self.options["op"]  # noqa: PLR2004
        if are_two and op in _EITHER and target.dtype.name in _ROUNDED and not self.is_short(target.nbytes):
            self._wait(self._group().allreduce([_tensor(target)], getattr(self._dist.ReduceOp, _EITHER[op])))
            _settle(target)
            return
        if are_two or self.count * target.nbytes <= SMALL:
            held: Any = np.empty((self.count, *target.shape), target.dtype)
            self._gather(held, target)
            target[...] = _reduced(held, op)
            return
        share = -(-target.size // self.count)
        padded: Any = np.zeros((self.count, share), target.dtype)
        padded.reshape(-1)[: target.size] = target.reshape(-1)
        total = _reduced(self._exchanged(padded), op)
        self._gather(padded, total)
        target[...] = padded.reshape(-1)[: target.size].reshape(target.shape)

    def reduce_scatter(self) -> None:
        """Reduce the rows of all that are this rank's."""
        target = self.windows["target"]
        target[self.me] = _reduced(self._exchanged(target[: self.count]), self.options["op"])

    def all_to_all(self) -> None:
        """Take the rows that each has for this rank."""
        given, target = self.windows["input"], self.windows["target"]
        rows = self.count * (target.shape[0] // self.count)
        target[:rows] = self._exchanged(given[:rows])

    def all_to_all_v(self) -> None:
        """Take rows, and how many of each rank's are meant."""
        self.all_to_all()
        rows = self.windows["target"].shape[0] // self.count
        told = self._exchanged(np.ravel(self.windows["send_counts"])[: self.count])
        np.ravel(self.windows["recv_counts"])[: self.count] = np.minimum(told, rows)

    def _gather(self, into: Array, own: Array, *, has_own: bool = False) -> None:
        """Let the rows of `into` be what each rank has, which this one's may be already."""
        if self.is_short(own.nbytes):
            self._brought(into, lambda _: own)
            into[self.me] = own
            return
        if self.count > FEW:
            self._wait(self._group()._allgather_base(_bytes(into), _bytes(own)))
            return
        rows = [own if rank == self.me else row for rank, row in enumerate(into)]
        works = [self._broadcast(row, rank) for rank, row in enumerate(rows)]
        if not has_own:
            into[self.me] = own
        for work in works:
            self._wait(work)

    def begin_gather(self, pieces: int) -> list[list[Any]]:
        """Begin to take a row of each in so many pieces; return what is to be waited for, of each piece by rank."""
        into, own = self.windows["target"][: self.count], self.windows["local_data"][0]
        rows = [(own if rank == self.me else row).reshape(pieces, -1) for rank, row in enumerate(into)]
        works = [[self._broadcast(row[piece], rank) for rank, row in enumerate(rows)] for piece in range(pieces)]
        if not self.has_own_row:
            into[self.me] = own
        return works

    def is_short(self, size: int) -> bool:
        """Return whether so many bytes for each go by messages."""
        return size <= self.room and self.count <= SOME

    def _brought(self, into: Array, given: Callable[[int], Array]) -> None:
        """Let rows be what the other ranks have for this one, which sends each what it is `given`."""
        others = {each: rank for rank, each in enumerate(self.domain) if rank != self.me}
        came: Mapping[int, Any] = self._exchange({each: flat_bytes(given(rank)) for each, rank in others.items()})
        for each, rank in others.items():
            into[rank] = came[each].view(into.dtype).reshape(into[rank].shape)

    def _broadcast(self, array: Array, root: int) -> Any:
        """Begin to let an array be what the root has there; return what is to be waited for."""
        return self._group().broadcast(_bytes(array), root)

    def _exchanged(self, given: Any) -> Array:
        """Return what each rank has for this one, given what this one has for each, one behind the other."""
        made: Any = np.empty_like(given)
        if self.is_short(given.nbytes // self.count):
            rows, taken = (each.reshape(self.count, -1) for each in (given, made))
            self._brought(taken, lambda rank: rows[rank])
            taken[self.me] = rows[self.me]
            return made
        self._wait(self._group().alltoall_base(_bytes(made), _bytes(given), [], []))
        return made


def _reduced(rows: Array, op: int) -> Array:
    """Return what the rows of all ranks make in their order, rounded after each of them."""
    name = str(rows.dtype)
    if name not in _NARROW:
        return reduced([*rows], op)
    torch: Any = sys.modules["torch"]
    made = reduced_by_torch(_tensor(np.ascontiguousarray(rows)).unbind(), op).view(torch.int16).numpy().view(rows.dtype)
    _settle(made)
    return made


def _settle(array: Any) -> None:
    """Let every NaN be the same one, if there is any."""
    if array.size and (np.isnan(array.min()) if array.dtype.name not in _NARROW else _has_nan(array)):
        settled(_tensor(array))


def _has_nan(array: Any) -> bool:
    """Return whether a NaN is among floats of two bytes: their bits are the largest, with a sign or without."""
    infinite = _INFINITE[array.dtype.name]
    return bool(array.view(np.int16).max() > infinite or array.view(np.uint16).max() > infinite + (1 << 15))


def _tensor(array: Any) -> Any:
    """Return the memory of an array as a tensor of torch's with the same elements."""
    torch: Any = sys.modules["torch"]
    name = array.dtype.name
    return (
        torch.from_numpy(array.view(np.int16)).view(getattr(torch, name))
        if name in _NARROW
        else torch.from_numpy(array)
    )


def _bytes(array: Any) -> Any:
    """Return the memory of an array as a tensor of torch's."""
    return sys.modules["torch"].from_numpy(array.reshape(-1).view(np.uint8))
