"""Collectives of ranks that share no memory: torch.distributed's own, which all ranks of a domain call together.

Elements are reduced in the order of ranks, as where memory is shared: torch moves them, and each rank reduces what it
is to have, or all of it where that is little.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import accumulate, pairwise
from typing import Any

from tilewright.arrays import np
from tilewright.core.region import Array
from tilewright.core.world import elements_of
from tilewright.interpret.hosts import Collective
from tilewright.programs.distributed.link import flat_bytes
from tilewright.programs.distributed.row_reductions import reducing, tensor_of

SMALL = 1 << 16
"""Bytes up to which those of all ranks go to each, which reduces them for itself: to move them is one step."""
PAIR, SWAPPED = 2, 1 << 19
"""So many ranks send each other no more than that way in two steps: to reduce all takes longer beyond so many bytes.

Where they compute on all cores of their one machine, the second reduces for both what is not small. Bytes that go one
way at a time keep both cores busy as well, and no thread of gloo's waits for another that moves bytes the other way,
which it does by asking again and again.
"""
FEW = 4
"""Ranks up to which long rows are gathered by a broadcast of each, which take as many steps as a ring and copy nothing.

Otherwise each sends all others its row, and has a copy of it for each: torch's all-gather makes new memory for the rows
of all, too, and copies them once more from there.
"""

Run = Callable[[], None]
Begin = Callable[[], Any]
"""What begins something that torch does, and returns what is to be waited for."""


class Joint:
    """A collective as one rank of several calls it, on its own windows; `wait` ends once torch is done, or the run.

    What a run does is made ready once: behind megabytes of elements nothing of Python's is left in the caches.
    `group` gives the group of its ranks, which is not held here: its threads end with the last reference to it.
    `scratch` gives so many bytes for some purpose, perhaps the same ones every time. What a gather has of this rank may
    be the memory of its row. Ranks that are `crowded` have no core to spare; those that are `apart` reach each other
    through collectives alone, so that nobody could tell whether all had come to one which they need not wait in.
    """

    def __init__(
        self, action: Collective, rank: int, windows: Mapping[str, Array], group: Callable[[], Any],
        wait: Callable[[Any], None], scratch: Callable[[str, int], Array], *, has_own_row: bool,
        is_crowded: bool, are_apart: bool,
    ) -> None:  # fmt: skip
        self.domain = action.domain
        self.windows = windows
        self.options = action.options
        self.count, self.me = len(action.domain), action.domain.index(rank)
        self._group = group
        self._wait = wait
        self._scratch = scratch
        self._has_own_row = has_own_row
        self._is_crowded = is_crowded
        self._are_apart = are_apart
        self._name = action.name

    def made_ready(self) -> Run:
        """Return what a run does."""
        return getattr(self, self._name)()

    def barrier(self) -> Run:
        """Wait until all have come."""
        return lambda: self._wait(self._group().barrier())

    def broadcast(self) -> Run:
        """Take what the root has, once all have come where that could be told."""
        taken = self._until_done([self._broadcast(self.windows["target"], self.options["root"])])
        return taken if self._are_apart else _one_by_one(self.barrier(), taken)

    def allgather(self) -> Run:
        """Take a row of each."""
        rows = self.windows["target"][: self.count]
        return self._gather(rows, [*rows], self.windows["local_data"][0], has_own=self._has_own_row)

    def allreduce(self) -> Run:
        """Reduce all, or the share that falls to this rank, and take those that the others have reduced."""
        target: Any = self.windows["target"]
        is_for_both = self.count == PAIR and self._is_crowded
        if self.count * target.nbytes <= (SMALL if self.count > PAIR or is_for_both else PAIR * SWAPPED):
            memory = self._scratch("taken", self.count * target.nbytes)
            held = elements_of(memory, (self.count, *target.shape), target.dtype)
            rows = [target if rank == self.me else row for rank, row in enumerate(held)]
            gather = self._gather(held, rows, target, has_own=True)
            return _one_by_one(gather, reducing(rows, self.options["op"], target))
        if is_for_both:
            return self._reduce_for_both(target)
        flat, bounds = target.reshape(-1), [target.size * k // self.count for k in range(self.count + 1)]
        shares = [flat[start:stop] for start, stop in pairwise(bounds)]
        gather = self._gather(flat, shares, shares[self.me], has_own=True)
        return _one_by_one(self._reduce(flat, shares), gather)

    def _reduce_for_both(self, target: Array) -> Run:
        """Take what the second rank makes of the elements of both."""
        first, second = range(PAIR)
        if self.me == first:
            return _one_by_one(*(self._until_done([self._broadcast(target, root)]) for root in (first, second)))
        taken = elements_of(self._scratch("taken", target.nbytes), target.shape, target.dtype)
        come, gone = self._broadcast(taken, first), self._broadcast(target, second)
        reduce = reducing([taken, target], self.options["op"], target)
        return _one_by_one(self._until_done([come]), reduce, self._until_done([gone]))

    def reduce_scatter(self) -> Run:
        """Reduce the rows of all that are this rank's."""
        rows = self.windows["target"][: self.count]
        return self._reduce(rows, [*rows])

    def all_to_all(self) -> Run:
        """Take the rows that each has for this rank."""
        given, target = self.windows["input"], self.windows["target"]
        rows = self.count * (target.shape[0] // self.count)
        return self._trade(given[:rows], target[:rows])

    def all_to_all_v(self) -> Run:
        """Take rows, and how many of each rank's are meant."""
        rows = self.windows["target"].shape[0] // self.count
        counts, told = (np.ravel(self.windows[name])[: self.count] for name in ("send_counts", "recv_counts"))

        def limit() -> None:
            np.minimum(told, rows, out=told)

        return _one_by_one(self.all_to_all(), self._trade(counts, told), limit)

    def begin_gather(self, pieces: int) -> list[list[Any]]:
        """Begin to take a row of each in so many pieces; return what is to be waited for, of each piece by rank."""
        into, own = self.windows["target"][: self.count], self.windows["local_data"][0]
        rows = [(own if rank == self.me else row).reshape(pieces, -1) for rank, row in enumerate(into)]
        works = [[self._broadcast(row[piece], rank)() for rank, row in enumerate(rows)] for piece in range(pieces)]
        if not self._has_own_row:
            into[self.me] = own
        return works

    def _gather(self, memory: Array, rows: Sequence[Array], own: Array, *, has_own: bool) -> Run:
        """Let rows, all of some memory, be what each rank has, which this one's may be already."""
        keep = [] if has_own else [partial(np.copyto, rows[self.me], own)]
        if self.count == PAIR:
            other, is_peer = rows[1 - self.me], [rank != self.me for rank in range(PAIR)]
            sent, taken = ([each.nbytes * to for to in is_peer] for each in (own, other))
            return self._until_done([self._alltoall(flat_bytes(own), sent, flat_bytes(other), taken)], *keep)
        if self.count <= FEW and max(row.nbytes for row in rows) > SMALL:
            begun = [self._broadcast(own if rank == self.me else row, rank) for rank, row in enumerate(rows)]
            return self._until_done(begun, *keep)
        given, taken = self._scratch("given", own.nbytes * self.count), [row.nbytes for row in rows]
        work = self._alltoall(given, [own.nbytes] * self.count, flat_bytes(memory), taken)
        return _one_by_one(partial(_repeat, own, given), self._until_done([work]))

    def _reduce(self, memory: Array, rows: Sequence[Array]) -> Run:
        """Let this rank's row, of those that some memory is, be what those of all ranks make."""
        own = rows[self.me]
        sent, data = [row.nbytes for row in rows], flat_bytes(memory)
        if self.me in (0, self.count - 1):  # its own row has others on one side alone, and need not be passed
            data, sent[self.me] = data[: -own.nbytes] if self.me else data[own.nbytes :], 0
        taken = [own.nbytes if rank != self.me else sent[rank] for rank in range(self.count)]
        into = self._scratch("taken", sum(taken))
        pieces = np.split(into, [*accumulate(taken)][:-1])
        came = [own if rank == self.me else elements_of(each, own.shape, own.dtype) for rank, each in enumerate(pieces)]
        work = self._until_done([self._alltoall(data, sent, into, taken)])
        return _one_by_one(work, reducing(came, self.options["op"], own))

    def _trade(self, given: Array, into: Array) -> Run:
        """Let each of as many equal parts as there are ranks be what that rank has for this one."""
        size = given.nbytes // self.count
        sizes = [size] * self.count
        return self._until_done([self._alltoall(flat_bytes(given), sizes, flat_bytes(into), sizes)])

    def _broadcast(self, array: Array, root: int) -> Begin:
        """Let an array be what the root has there."""
        tensor = tensor_of(flat_bytes(array))
        return lambda: self._group().broadcast(tensor, root)

    def _alltoall(self, given: Array, sent: Sequence[int], into: Array, taken: Sequence[int]) -> Begin:
        """Send each rank so many bytes, and take so many from it."""
        tensors = tensor_of(into), tensor_of(given)
        return lambda: self._group().alltoall_base(*tensors, taken, sent)

    def _until_done(self, begun: Sequence[Begin], *meanwhile: Run) -> Run:
        """Begin all of it, and wait until it is done."""

        def run() -> None:
            works = [begin() for begin in begun]
            for step in meanwhile:
                step()
            for work in works:
                self._wait(work)

        return run


def _one_by_one(*steps: Run) -> Run:
    def run() -> None:
        for step in steps:
            step()

    return run


def _repeat(row: Array, into: Any) -> None:
    into.reshape(-1, row.nbytes)[...] = flat_bytes(row)
