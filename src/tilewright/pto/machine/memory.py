"""Memory: the local memories of a block, and which tiles need bytes there.

A tile that nothing aliases is a variable of the tile IR (a `Slot`). Everything else lies in the arena of its memory,
where addresses mean what they say. Which is which is found out by lowering: what turns out to need bytes is noted, and
the function is lowered again knowing it.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, replace

from tilewright.core.expr import Expr, Var
from tilewright.core.types import tensor
from tilewright.dtypes import UINT8
from tilewright.errors import OutOfBoundsError, UnsupportedFeatureError
from tilewright.ops.builder import Builder, known
from tilewright.pto.machine.cores import VECTOR, Core
from tilewright.pto.machine.places import Arena, Slot, Span
from tilewright.pto.machine.values import Pointer
from tilewright.pto.types import Scalar, Space, TileBuf

_KIB = 1024
_SIZES = {
    Space.MAT: 512 * _KIB, Space.LEFT: 64 * _KIB, Space.RIGHT: 64 * _KIB, Space.BIAS: 64 * _KIB,
    Space.SCALING: 256 * _KIB,
}  # fmt: skip
_BY_ARCH = {"a5": {Space.VEC: 248 * _KIB, Space.ACC: 256 * _KIB}, "a3": {Space.VEC: 192 * _KIB, Space.ACC: 128 * _KIB}}

MOST_LANES = 2
"""The vector cores of a block."""

LARGE = 2048
"""How many bytes a tile has that is a buffer of its own."""

UNLIMITED = 1 << 40
"""More bytes than any buffer has."""


def capacity(space: Space, arch: str) -> int:
    """Return the bytes of a local memory."""
    return (_SIZES | _BY_ARCH[arch])[space]


@dataclass
class Knowledge:
    """What earlier turns found out: the tiles that need bytes, the memories whose addresses anything may reach."""

    placed: set[Hashable] = field(default_factory=set[Hashable])
    exposed: set[Space] = field(default_factory=set[Space])
    resizes: bool = False
    """Whether some tile changes its valid extents while the program runs."""

    parts: dict[Space, tuple[Span, ...]] = field(default_factory=dict[Space, "tuple[Span, ...]"])
    """The stretches of a memory that never meet."""

    together: set[Space] = field(default_factory=set[Space])
    """The memories whose tiles stand for each other, and so lie in one buffer."""

    def copy(self) -> Knowledge:
        """Return what is known now."""
        return Knowledge(set(self.placed), set(self.exposed), self.resizes, dict(self.parts), set(self.together))


class LocalMemory:
    """The arenas and slots of a function being lowered."""

    def __init__(self, builder: Builder, arch: str, knowledge: Knowledge, core: Core | None = None) -> None:
        self.b = builder
        self.core = core
        self.arch = arch
        self.knowledge = knowledge
        self.arenas: dict[Space, Arena] = {}
        self.shared: dict[Space, Var] = {}
        """The buffers of memories that other cores see too."""
        self.private: dict[Hashable, Arena] = {}
        """What no address reaches: tiles that have none, large ones each by itself, and the machine's own state."""
        self.slots: dict[Hashable, Slot] = {}
        self.addressed: dict[tuple[Space, int], set[TileBuf]] = {}
        self.cells: dict[Hashable, Pointer] = {}
        self.number: Expr = builder.index(0)
        """Which of a block's vector cores this is."""

    def arena(self, space: Space) -> Arena:
        """Return the arena of a local memory."""
        if space not in self.arenas:
            limit = capacity(space, self.arch)
            if self.is_shared(space):
                self.arenas[space] = Arena(space, limit, self.buffer(space), base=self._base(space, limit))
            else:
                whole = Var(space.loc, tensor([UNLIMITED], UINT8))
                self.arenas[space] = Arena(space, limit, whole, self.knowledge.parts.get(space, ()))
        return self.arenas[space]

    def is_shared(self, space: Space) -> bool:
        """Return whether other cores see a memory too."""
        return self.core is not None and space in self.core.meeting.shared

    def buffer(self, space: Space) -> Var:
        """Return the buffer of a memory that other cores see too; both vector cores' memories are in one."""
        if space not in self.shared:
            self.knowledge.exposed.add(space)
            size = capacity(space, self.arch) * (MOST_LANES if space is Space.VEC else 1)
            self.shared[space] = Var(f"all_{space.loc}", tensor([size], UINT8))
        return self.shared[space]

    def _base(self, space: Space, limit: int) -> Expr:
        """Return where a core's own part of a shared memory begins."""
        is_own = space is Space.VEC and self.core is not None and self.core.kind == VECTOR
        return self.b.mul(self.number, limit) if is_own else self.b.index(0)

    def apart(self, space: Space, element: Scalar, nbytes: int) -> Pointer:
        """Return where so many bytes lie that no address reaches, zero to begin with."""
        is_own = nbytes >= LARGE and space not in self.knowledge.together
        key = (space, len(self.private)) if is_own else space
        if key not in self.private:
            made = Var(f"own_{space.loc}", tensor([UNLIMITED], UINT8))
            self.private[key] = Arena(space, UNLIMITED, made)
        arena = self.private[key]
        return Pointer(element, space, arena.var, self.b.index(arena.take(nbytes)))

    def join(self, one: Pointer, other: Pointer) -> bool:
        """Note that two places may stand for each other; return whether they can lie in one buffer."""
        own = {arena.var for arena in self.private.values()}
        if one.space is not other.space or one.buffer is other.buffer or not {one.buffer, other.buffer} <= own:
            return False
        self.knowledge.together.add(one.space)
        return True

    def pointer(self, space: Space, element: Scalar, offset: Expr) -> Pointer:
        """Return an address in a local memory."""
        arena = self.arena(space)
        return Pointer(element, space, arena.var, offset, arena)

    def lane(self, pointer: Pointer, which: Expr) -> Pointer:
        """Return the same address in the memory of one of a block's vector cores."""
        if pointer.arena is not None and pointer.arena.base is not None:
            return replace(pointer, arena=replace(pointer.arena, base=self.b.mul(which, pointer.arena.limit)))
        if known(which) != 0 and self.core is None:
            message = "this kernel runs on one vector core, and writes to the memory of another"
            raise UnsupportedFeatureError(message, help="wait for it in a vector function or section")
        return pointer

    def place(self, type_: TileBuf, address: Expr | None) -> Pointer:
        """Return where a tile lies: at its address, or where no address reaches."""
        if address is None:
            return self.apart(type_.space, type_.element, type_.nbytes)
        arena, number, size = self.arena(type_.space), known(address), type_.nbytes
        if number is not None and (number < 0 or number + size > arena.limit):
            fits = f"does not fit the {arena.limit} bytes of `{type_.space.loc}`"
            raise OutOfBoundsError(f"a tile of {size} bytes at address {number} {fits}")
        arena.touch(address, size)
        return self.pointer(type_.space, type_.element, address)

    def cell(self, key: Hashable, element: Scalar, count: int = 1) -> Pointer:
        """Return where elements that no address reaches lie, zero to begin with, made the first time asked for."""
        if key not in self.cells:
            self.cells[key] = self.apart(Space.VEC, element, count * element.nbytes)
        return self.cells[key]

    def sees(self, type_: TileBuf, address: Expr) -> None:
        """Note a tile at an address; where it meets another tile's bytes, both need them."""
        number = known(address)
        if number is None:
            self.knowledge.exposed.add(type_.space)
            return
        self.addressed.setdefault((type_.space, number), set()).add(type_)

    def settle(self) -> None:
        """Note the tiles whose bytes others see too."""
        ordered = sorted(self.addressed, key=lambda key: (key[0].value, key[1]))
        for key in ordered:
            if len(self.addressed[key]) > 1 or key[0] in self.knowledge.exposed:
                self.knowledge.placed.add(key)
        for space in {space for space, _ in ordered}:
            self._overlaps([key for key in ordered if key[0] is space])
        for space, arena in self.arenas.items():
            self.knowledge.parts[space] = arena.stretches

    def _overlaps(self, keys: list[tuple[Space, int]]) -> None:
        end, last = -1, None
        for key in keys:
            if key[1] < end and last is not None:
                self.knowledge.placed |= {key, last}
            reach = key[1] + max(type_.nbytes for type_ in self.addressed[key])
            if reach > end:
                end, last = reach, key
