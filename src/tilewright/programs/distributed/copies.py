"""Copies: the parts of windows that lie in the memory of other machines, as code of this process sees them.

Code works on a copy of the part of each rank, its own among them, and tells when it reads or writes one: regions are
brought and taken away by messages (`link.py`). A signal follows what was written before it to the same rank; what was
written to others has arrived before it is sent.
"""

from __future__ import annotations

import ctypes
import threading
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from math import prod
from typing import Any

from tilewright.arrays import np
from tilewright.core.region import Array
from tilewright.dtypes import ALL
from tilewright.interpret.hosts import Plan, WindowBuffer
from tilewright.native.added import add
from tilewright.native.domains import HEAD, Touch
from tilewright.programs.distributed.held_puts import HeldPuts
from tilewright.programs.distributed.link import Link, flat_bytes
from tilewright.programs.distributed.mapped import Piece, made_file, mapped
from tilewright.programs.distributed.windows import Parts, part_of
from tilewright.records import record

SYNC = len(Touch)
"""Asks whether all that was sent before has arrived."""
_DONE: Array = np.zeros(1, np.uint8)


@record
class Box:
    """Some elements of a part: of which buffer, where they begin in it, and how they lie, in bytes."""

    buffer: int
    offset: int
    code: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def numbers(self) -> list[int]:
        """The box as a message has it; a signal may follow."""
        return [self.buffer, self.offset, self.code, len(self.shape), *self.shape, *self.strides]

    @staticmethod
    def read(numbers: Sequence[int]) -> Box:
        """Return the box of a message."""
        buffer, offset, code, axes, *rest = numbers
        return Box(buffer, offset, code, tuple(rest[:axes]), tuple(rest[axes : 2 * axes]))

    @property
    def nbytes(self) -> int:
        """How many bytes the elements take."""
        return prod(self.shape) * ALL[self.code].get_byte()

    def of(self, memory: Array) -> Array:
        """Return the elements as bytes in the memory of a part, an axis more than they have."""
        size = ALL[self.code].get_byte()
        return np.ndarray((*self.shape, size), np.uint8, memory.data, self.offset, (*self.strides, 1))

    def put(self, memory: Array, data: Any) -> None:
        """Let the elements be those bytes."""
        into = self.of(memory)
        into[...] = data.reshape(into.shape)


class Copies:
    """The windows of a plan, as the process of one rank has them."""

    def __init__(
        self, link: Link, number: int, plan: Plan, abort: int, gathered: Mapping[WindowBuffer, WindowBuffer]
    ) -> None:
        self.link = link
        self.number = number
        self.failure: BaseException | None = None
        """Why a peer was out of reach."""
        self.sent = self.heard = 0
        """How many messages that change something have left this process, and come to it."""
        self.ahead: Callable[[], None] | None = None
        """What goes ahead of signals, if anything does but what was written to windows."""
        self._lock = threading.Lock()
        self._puts = HeldPuts(self.change)
        self._dirty: set[int] = set()
        """Who was sent something since it was last known that all has arrived."""
        self._touched = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 2, ctypes.POINTER(ctypes.c_int64))(
            self._tell
        )
        self._own: dict[int, Array] = {}
        self._places: list[tuple[int, int, int, Array]] = []
        """Where copies start, in order: of which buffer and rank, and the memory."""
        self._mapped = _mapped_rows(link.rank, gathered)
        address = ctypes.cast(self._touched, ctypes.c_void_p).value or 0
        self.parts = {buffer: self._parts(k, buffer, abort, address) for k, buffer in enumerate(plan.buffers)}
        self._places.sort(key=lambda place: place[0])
        self._starts = [start for start, *_ in self._places]

    def _parts(self, number: int, buffer: WindowBuffer, abort: int, distant: int) -> Parts:
        own, seen = self._mapped.get(buffer), {rank: part_of(buffer) for rank in buffer.domain}
        own = part_of(buffer) if own is None else own
        for rank, memory in seen.items():
            self._places.append((memory.ctypes.data + HEAD, number, rank, memory[HEAD:]))
        self._own[number] = own[HEAD:]
        held = {rank: own if rank == self.link.rank else memory for rank, memory in seen.items()}
        return Parts(held, {self.link.rank: abort}, seen=seen, distant=distant)

    def is_gathered(self, target: WindowBuffer) -> bool:
        """Return whether this rank's row of a gather lies where the gather has it."""
        return target in self._mapped

    def _tell(self, what: int, address: int, words: Any) -> int:
        """Do what code asks for; return 1 where that failed, which is kept."""
        try:
            start, buffer, rank, memory = self._places[bisect_right(self._starts, address) - 1]
            if what in (Touch.SET, Touch.RAISE):
                self._signal(rank, what, buffer, address - start, words[0])
                return 0
            code, axes = int(words[0]), int(words[1])
            size = ALL[code].get_byte()
            strides = tuple(size * step for step in words[2 + axes : 2 + 2 * axes])
            self._move(
                Touch(what), rank, Box(buffer, address - start, code, tuple(words[2 : 2 + axes]), strides), memory
            )
        except BaseException as error:
            self.failure = self.failure or error
            return 1
        return 0

    def _move(self, what: Touch, rank: int, box: Box, copy: Array) -> None:
        """Bring elements of a part to the copy, or take them from there."""
        if not box.nbytes:
            return
        if what is Touch.CLEAR:
            box.of(copy)[...] = 0
        elif what is Touch.FETCH:
            box.put(copy, self._fetched(rank, box))
        elif rank == self.link.rank:
            self._take(what, box, flat_bytes(box.of(copy)))
        elif what is Touch.SEND:
            self._puts.put(rank, [what, *box.numbers], flat_bytes(box.of(copy)))
        else:
            self._puts.leave()
            self.change(rank, [what, *box.numbers], flat_bytes(box.of(copy)))

    def _fetched(self, rank: int, box: Box) -> Array:
        if rank == self.link.rank:
            return flat_bytes(box.of(self._own[box.buffer]))
        self._puts.leave()
        return self.link.ask(rank, self.number, [Touch.FETCH, *box.numbers], box.nbytes)

    def _signal(self, rank: int, what: int, buffer: int, offset: int, value: int) -> None:
        if self.ahead is not None:
            self.ahead()
        self.arrive(frozenset((rank,)))
        if rank == self.link.rank:
            self._set(what, buffer, offset, value)
        else:
            self._puts.signal(rank, [what, buffer, offset, value])

    def change(self, rank: int, numbers: Sequence[int], data: Array | None) -> None:
        """Send a message that changes what the parts of a rank, or its tensors, hold."""
        with self._lock:
            self._dirty.add(rank)
        self.bring(rank, numbers, data)

    def bring(self, rank: int, numbers: Sequence[int], data: Array | None) -> None:
        """Send a message that whoever waits for it goes on with."""
        with self._lock:
            self.sent += 1
        self.link.send(rank, self.number, numbers, data)

    def count(self, is_here: bool) -> None:
        """Take note that something is on its way, which torch brings, or here: nobody waits for it in vain."""
        with self._lock:
            self.sent, self.heard = self.sent + (not is_here), self.heard + is_here

    def meet(self) -> None:
        """Take note that all ranks tell each other that they have come, behind all that they have sent."""
        self._puts.leave()
        with self._lock:
            self._dirty.clear()

    def look_on(self) -> None:
        """Let nothing that was written stay here for long."""
        self._puts.look_on()

    def arrive(self, but: frozenset[int] = frozenset()) -> None:
        """Wait until all that was sent, but to some ranks, has arrived."""
        self._puts.leave(but)
        with self._lock:
            left = self._dirty - but
            self._dirty -= left
        for rank in left:
            self.link.ask(rank, self.number, [SYNC], 1)

    def hear(self, numbers: Sequence[int], data: Array) -> Array | None:
        """Do what a peer asks for; return what it is to be answered."""
        what, *rest = numbers
        if what == SYNC:
            return _DONE
        if what == Touch.FETCH:
            box = Box.read(rest)
            return flat_bytes(box.of(self._own[box.buffer]))
        if what in (Touch.SET, Touch.RAISE):
            self._set(what, *rest[:3])
        else:
            box = Box.read(rest)
            self._take(Touch(what), box, data)
            told = rest[len(box.numbers) :]
            if told and told[0] in (Touch.SET, Touch.RAISE):
                self._set(*told[:4])
        self.heard += 1
        return None

    def _set(self, what: int, buffer: int, offset: int, value: int) -> None:
        cell = ctypes.c_int32.from_address(self._own[buffer].ctypes.data + offset)
        with self._lock:
            cell.value = value if what == Touch.SET else cell.value + value

    def _take(self, what: Touch, box: Box, data: Array) -> None:
        """Let elements of the own part be those, or their sum with what is there."""
        if what is Touch.SEND:
            box.put(self._own[box.buffer], data)
            return
        start = self._own[box.buffer].ctypes.data + box.offset
        add(ALL[box.code], start, box.shape, box.strides, data.ctypes.data)


def _mapped_rows(rank: int, gathered: Mapping[WindowBuffer, WindowBuffer]) -> dict[WindowBuffer, Array]:
    """Return memory for the targets of gathers and for this rank's own rows, which lie in those as well."""
    found: dict[WindowBuffer, Array] = {}
    for rows in dict.fromkeys(each for each in gathered.values() if rank in each.ranks):
        targets = [target for target, other in gathered.items() if other is rows]
        size = targets[0].size // len(rows.domain)
        with made_file(size * (1 + len(targets) * len(rows.domain))) as file:
            own, others = Piece(rank, 0, size), count(size, size)
            found[rows] = mapped([(file, 0, own)])
            for target in targets:
                pieces = [own if each == rank else Piece(each, next(others), size) for each in rows.domain]
                found[target] = mapped([(file, 0, piece) for piece in pieces])
    return found
