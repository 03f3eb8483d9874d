"""Collectives of ranks that share no memory: torch.distributed moves what all ranks of a domain give each other.

Elements are reduced in the order of ranks, as where memory is shared: torch moves them, and each rank reduces what it
is to have, or all of it where that is little. A few ranks send each other what they have one to one. More call torch's
collectives, which it hands to threads of its own, to and from which every step of a few would be on its way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
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
IN_TURNS = 1 << 15
"""Bytes beyond which such ranks swap what they have one way at a time, for that."""
HANDED = 1 << 20
"""Bytes beyond which torch broadcasts to a few ranks as well: it hands that to a thread, which is soon made good.

Where a root sends the next row before it is asked for, its thread and one of gloo's wait for one lock, again and again.
Of 256 KiB a rank that has cores to itself is sent 98 us one to one, and 111 by torch; of 2 MiB 396, and 330.
"""
FEW = 4
"""Ranks up to which each sends the others what they are to have.

More have a copy of it for each: torch's all-gather makes new memory for the rows of all, too, and copies them once more
from there.
"""
_SWAPPED = 4
"""The tag of what ranks send each other one to one."""

Run = Callable[[], None]
Begin = Callable[[], Any]
"""What begins something that torch does, and returns what is to be waited for."""


class Joint:
    """A collective as one rank of several calls it, on its own windows; `wait` ends once torch is done, or the run.

    What a run does is made ready once: behind megabytes of elements nothing of Python's is left in the caches.
    `group` gives the group of its ranks, which is not held here: its threads end with the last reference to it.
    `swap` does what sends and takes with that group, where torch alone waits, until it is done or the run over.
    `scratch` gives so many bytes for some purpose, perhaps the same ones every time. What a gather has of this rank may
    be the memory of its row. Ranks that are `crowded` have no core to spare; those that are `apart` reach each other
    through collectives alone, so that nobody could tell whether all had come to one which they need not wait in.
    """

    def __init__(
        self, action: Collective, rank: int, windows: Mapping[str, Array], group: Callable[[], Any],
        wait: Callable[[Any], None], swap: Callable[[Callable[[Any], None]], None],
        scratch: Callable[[str, int], Array], *, has_own_row: bool, is_crowded: bool, are_apart: bool,
    ) -> None:  # fmt: skip
        self.domain = action.domain
        self.windows = windows
        self.options = action.options
        self.count, self.me = len(action.domain), action.domain.index(rank)
        self._group = group
        self._others = [rank for rank in range(self.count) if rank != self.me]
        self._wait = wait
        self._swap = swap
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
        if self.count > FEW:
            return lambda: self._wait(self._group().barrier())
        come = np.split(self._scratch("come", self.count), self.count)
        return self._swapped(dict.fromkeys(self._others, come[self.me]), {rank: come[rank] for rank in self._others})

    def broadcast(self) -> Run:
        """Take what the root has, once all have come where that could be told."""
        target, root = self.windows["target"], self.options["root"]
        taken = (
            self._until_done([self._broadcast(target, root)])
            if self.count > FEW or target.nbytes > HANDED
            else self._sent(target, self._others)
            if root == self.me
            else self._taken(target, root)
        )
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
            return _one_by_one(self._sent(target, [second]), self._taken(target, second))
        taken = elements_of(self._scratch("taken", target.nbytes), target.shape, target.dtype)
        reduce = reducing([taken, target], self.options["op"], target)
        return _one_by_one(self._taken(taken, first), reduce, self._sent(target, [first]))

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
        if self.count <= FEW:
            return self._swapped(dict.fromkeys(self._others, own), {rank: rows[rank] for rank in self._others}, *keep)
        given, taken = self._scratch("given", own.nbytes * self.count), [row.nbytes for row in rows]
        work = self._alltoall(given, [own.nbytes] * self.count, flat_bytes(memory), taken)
        return _one_by_one(partial(_repeat, own, given), self._until_done([work]))

    def _reduce(self, memory: Array, rows: Sequence[Array]) -> Run:
        """Let this rank's row, of those that some memory is, be what those of all ranks make."""
        own = rows[self.me]
        came = self._scratch("taken", own.nbytes * self.count)
        into = [elements_of(each, own.shape, own.dtype) for each in np.split(came, self.count)]
        if self.count <= FEW:
            swapped = self._swapped({r: rows[r] for r in self._others}, {r: into[r] for r in self._others})
            into[self.me] = own
        else:
            sizes = [own.nbytes] * self.count
            work = self._alltoall(flat_bytes(memory), [row.nbytes for row in rows], came, sizes)
            swapped = self._until_done([work])
        return _one_by_one(swapped, reducing(into, self.options["op"], own))

    def _trade(self, given: Array, into: Array) -> Run:
        """Let each of as many equal parts as there are ranks be what that rank has for this one."""
        parts, places = (np.split(flat_bytes(each), self.count) for each in (given, into))
        if self.count <= FEW:
            keep = partial(np.copyto, places[self.me], parts[self.me])
            return self._swapped({r: parts[r] for r in self._others}, {r: places[r] for r in self._others}, keep)
        sizes = [parts[self.me].nbytes] * self.count
        return self._until_done([self._alltoall(flat_bytes(given), sizes, flat_bytes(into), sizes)])

    def _sent(self, array: Array, ranks: Sequence[int]) -> Run:
        """Send some ranks an array."""
        return self._swapped(dict.fromkeys(ranks, array), {})

    def _taken(self, array: Array, rank: int) -> Run:
        """Let an array be what a rank sends."""
        return self._swapped({}, {rank: array})

    def _swapped(self, given: Mapping[int, Array], taken: Mapping[int, Array], *meanwhile: Run) -> Run:
        """Send ranks arrays, and let others be what they send."""
        sent, into = ([([tensor_of(flat_bytes(a))], r) for r, a in each.items()] for each in (given, taken))
        is_long = max(each.nbytes for each in (*given.values(), *taken.values())) > IN_TURNS
        takes_first = self._is_crowded and self.count == PAIR and is_long and self.me > 0

        def run(group: Any) -> None:
            coming = [group.recv(*each, _SWAPPED) for each in into]
            for work in coming if takes_first else ():
                work.wait()
            gone = [group.send(*each, _SWAPPED) for each in sent]
            for step in meanwhile:
                step()
            for work in gone if takes_first else (*gone, *coming):
                work.wait()

        return lambda: self._swap(run)

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
