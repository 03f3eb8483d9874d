"""Collectives of ranks that share no memory: torch.distributed's own, which all ranks of a domain call together.

Elements are reduced in the order of ranks, as where memory is shared: torch moves them, and each rank reduces what it
is to have, or all of it where that is little.
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

SMALL = 1 << 16
"""Bytes of all ranks up to which each of them has all, and reduces them for itself."""

FEW = 4
"""Ranks up to which rows are gathered by a broadcast of each, which take as many steps as a ring and copy nothing.

torch's all-gather makes new memory for the rows of all and copies them from there: it takes two to three times as long
for rows of megabytes.
"""


_EITHER = {ReduceOp.Sum: "SUM", ReduceOp.Prod: "PRODUCT"}
"""What torch may reduce for two ranks: its order does not matter."""


_NARROW = ("float16", "bfloat16")
"""Elements that NumPy reduces ten to forty times as slowly as torch does, which gives the same bits."""
_TORCH = {ReduceOp.Sum: "add", ReduceOp.Max: "maximum", ReduceOp.Min: "minimum", ReduceOp.Prod: "mul"}


class Joint:
    """A collective as one rank of several calls it, on its own windows; `wait` ends once torch is done, or the run.

    `group` gives the group of its ranks, which is not held here: its threads end with the last reference to it.
    """

    def __init__(
        self, action: Collective, rank: int, windows: Mapping[str, Array], group: Callable[[], Any],
        wait: Callable[[Any], None],
    ) -> None:  # fmt: skip
        self.windows = windows
        self.options = action.options
        self.count, self.me = len(action.domain), action.domain.index(rank)
        self._group = group
        self.run: Callable[[], None] = getattr(self, action.name)
        self._wait = wait
        self._dist: Any = sys.modules["torch.distributed"]

    def barrier(self) -> None:
        """Wait until all have come."""
        self._wait(self._dist.barrier(self._group(), async_op=True))

    def broadcast(self) -> None:
        """Take what the root has, once all have come."""
        self.barrier()
        self._wait(self._broadcast(self.windows["target"], self.options["root"]))

    def allgather(self) -> None:
        """Take a row of each."""
        self._gather(self.windows["target"][: self.count], self.windows["local_data"][0])

    def allreduce(self) -> None:
        """Reduce all, or what falls to this rank and take what the others have reduced."""
        target: Any = self.windows["target"]
        if self.count == 2 and self.options["op"] in _EITHER and target.dtype == np.float32:  # noqa: PLR2004
            how = getattr(self._dist.ReduceOp, _EITHER[self.options["op"]])
            self._wait(
                self._dist.all_reduce(sys.modules["torch"].from_numpy(target), how, self._group(), async_op=True)
            )
            return
        if self.count * target.nbytes <= SMALL:
            held: Any = np.empty((self.count, *target.shape), target.dtype)
            self._gather(held, target)
            target[...] = _reduced(held, self.options["op"])
            return
        share = -(-target.size // self.count)
        padded: Any = np.zeros((self.count, share), target.dtype)
        padded.reshape(-1)[: target.size] = target.reshape(-1)
        total = _reduced(self._exchanged(padded), self.options["op"])
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

    def _gather(self, into: Array, own: Array) -> None:
        """Let the rows of `into` be what each rank has."""
        dist = self._dist
        if self.count > FEW:
            gather = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor  # its name before 2.13
            self._wait(gather(_bytes(into), _bytes(own), group=self._group(), async_op=True))
            return
        rows = [own if rank == self.me else row for rank, row in enumerate(into)]
        works = [self._broadcast(row, rank) for rank, row in enumerate(rows)]
        into[self.me] = own.reshape(into.shape[1:])
        for work in works:
            self._wait(work)

    def _broadcast(self, array: Array, root: int) -> Any:
        """Begin to let an array be what the root has there; return what is to be waited for."""
        return self._dist.broadcast(_bytes(array), group=self._group(), group_src=root, async_op=True)

    def _exchanged(self, given: Array) -> Array:
        """Return what each rank has for this one, given what this one has for each, one behind the other."""
        made = np.empty_like(given)
        self._wait(self._dist.all_to_all_single(_bytes(made), _bytes(given), group=self._group(), async_op=True))
        return made


def _reduced(rows: Array, op: int) -> Array:
    """Return what the rows of all ranks make in their order, rounded after each of them."""
    name = str(rows.dtype)
    if name not in _NARROW:
        return reduced([*rows], op)
    torch: Any = sys.modules["torch"]
    packed: Any = np.ascontiguousarray(rows)
    words = packed.view(np.int16)
    total, *others = torch.from_numpy(words).view(getattr(torch, name)).unbind()
    for each in others:
        getattr(torch, _TORCH[ReduceOp(op)])(total, each, out=total)
    return words[0].view(rows.dtype)


def _bytes(array: Any) -> Any:
    """Return the memory of an array as a tensor of torch's."""
    return sys.modules["torch"].from_numpy(array.reshape(-1).view(np.uint8))
