"""Guard pages: memory beside which nothing can be read or written without ending the process.

Arguments of native runs end where such a page begins, or begin where one ends. A program that is compiled while guards
are up has its own memory placed like that: that of all tiles of a kernel, laid out as users have it, or each tile by
itself; and every tensor that it makes. Nothing of this is in the product.
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Any

import numpy as np
import pytest
from ops.kernels import Array
from ops.native import loud
from unit.backends.cpu.canaries import GuardedArena, WatchedProgram

from tilewright.backends import host as native
from tilewright.backends.cpu import emission
from tilewright.backends.cpu.emit import memory
from tilewright.backends.cpu.emit.arena import ALIGNMENT
from tilewright.backends.cpu.host import heap
from tilewright.native.loader import Loaded

PAGE = mmap.PAGESIZE
READABLE = mmap.PROT_READ | mmap.PROT_WRITE
NOTHING = 0
GAP = 8
"""How many elements lie between the rows of an array that is not packed."""


class Place(Enum):
    """At which end of some memory the page lies that traps."""

    START = "start"
    END = "end"


class Fenced:
    """Memory of so many bytes between pages that trap, right beside one of them."""

    def __init__(self, size: int, place: Place) -> None:
        self.room = -(-size // PAGE) * PAGE
        self.memory = mmap.mmap(-1, self.room + 2 * PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self.start = ctypes.addressof(ctypes.c_char.from_buffer(self.memory)) + PAGE
        self.address = self.start + (self.room - size if place is Place.END else 0)
        for page in (self.start - PAGE, self.start + self.room):
            protect(page, PAGE, NOTHING)


class FencedArray:
    """A copy of an array beside a page that traps; what surrounds its elements is loud, and must not change."""

    def __init__(self, array: Array, place: Place, *, packed: bool, step: int = 1) -> None:
        strides = _strides(array, 0 if packed else GAP, step)
        steps = [(extent - 1) * stride for extent, stride in zip(array.shape, strides, strict=True)]
        size = sum(steps) + array.itemsize if array.size else 0
        self.fenced = Fenced(size, place)
        self.content = (ctypes.c_uint8 * self.fenced.room).from_address(self.fenced.start)
        self.at, self.strides, self.fill = self.fenced.address - self.fenced.start, strides, loud(array.dtype)
        ctypes.memset(self.fenced.start, self.fill, self.fenced.room)
        self.array = self._laid(self.content, array)
        self.array[...] = array

    def _laid(self, memory: Any, like: Array) -> Array:
        return np.ndarray(like.shape, like.dtype, memory, self.at, self.strides) if like.size else np.array(like)

    def assert_untouched_around(self) -> None:
        """Fail if anything around the elements has changed."""
        clean = bytearray([self.fill]) * self.fenced.room
        self._laid(clean, self.array)[...] = self.array
        assert bytes(self.content) == clean, "something around an array was written"


def _strides(array: Array, gap: int, apart: int) -> tuple[int, ...]:
    """Return strides in bytes of row after row, with a gap after each along every axis, and neighbours so far apart."""
    strides, step = [0] * array.ndim, array.itemsize * apart
    for axis in reversed(range(array.ndim)):
        strides[axis], step = step, step * (array.shape[axis] + gap)
    return tuple(strides)


def protect(address: int, size: int, access: int) -> None:
    """Say what may be done with pages."""
    if _mprotect()(address, size, access):
        raise OSError(ctypes.get_errno(), "the system does not protect pages")


@cache
def _mprotect() -> Callable[[int, int, int], int]:
    function = ctypes.CDLL(None, use_errno=True).mprotect
    function.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    return function


class Guard(Enum):
    """What of a program's own memory lies beside pages that trap."""

    NOTHING = "nothing: it is as users have it"
    ARENAS = "the arena of each kernel, and each tensor"
    TILES = "each tile, and each tensor"


@dataclass
class PagedArena(GuardedArena):
    """An arena whose parts lie between pages, each right beside one of them."""

    def take(self, nbytes: int) -> tuple[int, int]:
        size = max(ALIGNMENT, -(-nbytes // ALIGNMENT) * ALIGNMENT)
        room = -(-size // PAGE) * PAGE
        is_at_start = len(self.zones) % 2
        start = self.size + (0 if is_at_start else room - size)
        self.zones.append((self.size + room, PAGE))
        self.size += room + PAGE
        return start, size


class PagedProgram(WatchedProgram):
    """Emits functions that let the pages between the parts of their arenas trap while they run."""

    helpers = f"""
declare i32 @mprotect(ptr, i64, i32)

define internal void @guard(ptr %arena, ptr %zones, i64 %count, i1 %ends) nounwind {{
entry:
  %none = icmp eq ptr %arena, null
  %access = select i1 %ends, i32 {READABLE}, i32 {NOTHING}
  br i1 %none, label %done, label %head
head:
  %index = phi i64 [ 0, %entry ], [ %next, %body ]
  %more = icmp slt i64 %index, %count
  br i1 %more, label %body, label %done
body:
  %zone = getelementptr [2 x i64], ptr %zones, i64 %index
  %offset = load i64, ptr %zone
  %size.at = getelementptr i64, ptr %zone, i64 1
  %size = load i64, ptr %size.at
  %at = getelementptr i8, ptr %arena, i64 %offset
  %failed = call i32 @mprotect(ptr %at, i64 %size, i32 %access)
  %next = add i64 %index, 1
  br label %head
done:
  ret void
}}
"""


class Heap:
    """Memory for programs, each piece of it between pages that trap."""

    def __init__(self) -> None:
        self.given: dict[int, Fenced] = {}
        self.functions = {
            "aligned_alloc": ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)(self.aligned),
            "malloc": ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t)(self.buffer),
            "free": ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self.free),
        }
        """The functions of the C library that take its place."""

    @property
    def symbols(self) -> dict[str, int]:
        return {name: ctypes.cast(f, ctypes.c_void_p).value or 0 for name, f in self.functions.items()}

    def aligned(self, _: int, size: int) -> int:
        """Return memory of a multiple of 64 bytes, at whose end a page traps."""
        return self._kept(size)

    def buffer(self, size: int) -> int:
        """Return memory for a word and, after 64 bytes, a tensor; code asks for 128 bytes more than the tensor has."""
        return self._kept(ALIGNMENT + -(-(size - 2 * ALIGNMENT) // ALIGNMENT) * ALIGNMENT)

    def _kept(self, size: int) -> int:
        made = Fenced(size, Place.END)
        self.given[made.address] = made
        return made.address

    def free(self, address: int | None) -> None:
        """Give memory back, whoever it is from."""
        if address is not None and self.given.pop(address, None) is None:
            _libc_free()(address)


@cache
def _libc_free() -> Callable[[int], None]:
    function = ctypes.CDLL(None).free
    function.argtypes, function.restype = [ctypes.c_void_p], None
    return function


HEAP = Heap()


@contextmanager
def guarded(guard: Guard) -> Generator[None]:
    """Let what is compiled from here on, and runs before the end, have its memory beside pages that trap."""
    if guard is Guard.NOTHING:
        yield
        return

    def load(data: bytes, symbols: Mapping[str, int] | None = None) -> Loaded:
        return _load(data, {**(symbols or {}), **HEAP.symbols})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(heap, "ON_STACK", 0)
        patch.setattr(native, "load", load)
        patch.setattr(native, "_libc_free", lambda: HEAP.free)
        if guard is Guard.TILES:
            patch.setattr(memory, "Arena", PagedArena)
            patch.setattr(emission, "ProgramEmitter", PagedProgram)
        yield


_load = native.load
