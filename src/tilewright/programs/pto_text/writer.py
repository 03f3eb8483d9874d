"""The writer: lines of PTO text about tiles and tensors, and what is known of them while they are written."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from tilewright import dtypes as dt
from tilewright.core.enums import MemorySpace
from tilewright.dtypes import DataType
from tilewright.programs.pto_text.lines import Lines
from tilewright.programs.pto_text.readers import takes
from tilewright.programs.pto_text.values import NoPtoError, Number, Tensor, Tile, element, kept, room_of

HEAD = 'module attributes {pto.target_arch = "a5"} {'
"""The machine whose paths between memories are used: from the vector memory to the cube's, among others."""

CUBE = "cube"
"""The core that multiplies."""


_MOVED_AS = {dt.FP8E4M3FN: dt.UINT8, dt.FP8E5M2: dt.UINT8, dt.FP64: dt.INT64}
"""The floats that nothing stores, with the integers that have their bits."""


class NotTakenError(NoPtoError):
    """An op on tiles that no machine has for such elements, while that is still to be written otherwise."""


class Writer(Lines):
    """One function of PTO text while it is being written."""

    def __init__(self) -> None:
        super().__init__()
        self.rooms: list[tuple[str, str]] = []
        """The parameters for room that the caller brings, each with its type."""
        self.share: Number | None = None
        """The block, where blocks share the turns and each has its own part of that room."""
        self.zeros: set[str] = set()
        """The tiles that hold zeros."""
        self.ascending: set[str] = set()
        """The tiles whose rows count up."""
        self.sums: dict[str, tuple[Number, Number] | None] = {}
        """The accumulators that are added to in place; what a loop counts, and from where, for those it begins."""
        self.entry = ""
        """The function that is being written."""
        self.core, self.lanes, self.pipes = "", 1, dict[int, Any]()
        """The core whose side of a group is being written, how many vector cores there are, and what they meet in."""
        self.is_choosy = False
        """Whether an op on tiles that no machine has for its elements is an error at once."""
        self.is_wanted = False
        """Whether the program uses what the op that is being written gives."""
        self.flags: dict[str, set[str]] = {}
        """The events between pipes, and whether they are set and waited for."""
        self.turn, self.turns = self.constant(0), self.constant(1)
        """Which of how many runs of a kernel is being written."""

    def prune(self) -> set[str]:
        """Drop what nothing uses; return the names that something uses."""
        lone = [f"pto.{word}_flag{event}" for event, words in self.flags.items() if len(words) == 1 for word in words]
        kept = [n for n, line in enumerate(self.lines) if line.strip() not in lone]
        return self.keep(kept)

    def flag(self, word: str, event: str) -> None:
        """Write that an event is set or waited for."""
        self.flags.setdefault(event, set()).add(word)
        self.line(f"pto.{word}_flag{event}")

    @contextmanager
    def choosy(self) -> Generator[None]:
        """Let lines be written that count only if machines have all ops that they say; else they are dropped again."""
        outer, before = self.is_choosy, len(self.lines)
        self.is_choosy = True
        try:
            yield
        except NotTakenError:
            self.drop(before)
            raise
        finally:
            self.is_choosy = outer

    def tile(
        self,
        hint: str,
        dtype: DataType,
        shape: tuple[int, int],
        valid: tuple[Number, Number],
        memory: MemorySpace = MemorySpace.Vec,
        is_mask: bool = False,
        room: tuple[int, int] | None = None,
    ) -> Tile:
        """Write a new tile buffer, of as many rows and columns as it needs or as `room` says."""
        dtype = kept(dtype)
        if self.core == CUBE and memory is MemorySpace.Vec:
            help = "let the vector side do it, and push what it makes"
            raise NoPtoError("the cube multiplies, loads, stores and hands over, and this needs vectors", help=help)
        tile = Tile(self.name(hint), dtype, shape, valid, memory, is_mask, room or room_of(dtype, shape, memory))
        words = ("valid_row", "valid_col")
        given = [f"{word} = {each.name}" for word, each in zip(words, valid, strict=True) if each.known is None]
        self.line(f"{tile.name} = {' '.join(['pto.alloc_tile', *([] if is_mask else given)])} : {tile.type}")
        return tile

    def open(self, shape: tuple[int, int]) -> tuple[Number, Number]:
        """Return the extents of a tile as numbers that may change."""
        return self.unknown((self.constant(shape[0]), self.constant(shape[1])))

    def unknown(self, valid: tuple[Number, Number]) -> tuple[Number, Number]:
        """Return two extents as numbers that no type knows."""
        return Number(valid[0].name, dt.INDEX), Number(valid[1].name, dt.INDEX)

    def resize(self, tile: Tile, valid: tuple[Number, Number]) -> None:
        """Write how much of a tile is valid from here on."""
        self.line(f"pto.set_validshape {tile.name}, {valid[0].name}, {valid[1].name} : {tile.type}")

    def room(self, kind: str) -> str:
        """Return a new parameter for room that the caller brings."""
        name = self.name("room")
        self.rooms.append((name, kind))
        return name

    def view(
        self, hint: str, dtype: DataType, pointer: str, shape: Sequence[Number], strides: Sequence[Number] = ()
    ) -> Tensor:
        """Write the view of a tensor, whose elements lie one after the other where no strides are given."""
        is_whole, dtype, one = not strides, kept(dtype), self.constant(1)
        strides = list(strides or [one][: len(shape)])
        while len(strides) < len(shape):
            strides.insert(0, self.product(shape[-len(strides)], strides[0]))
        starts = (self.constant(0),) * len(shape)
        whole = Tensor(self.name(f"{hint}_view"), dtype, tuple(shape), starts, pointer, tuple(strides), is_whole)
        extents, steps = (", ".join(each.name for each in numbers or [one]) for numbers in (shape, strides))
        head = f"{whole.view} = pto.make_tensor_view {pointer}, shape = [{extents}], strides = [{steps}]"
        self.line(f"{head} : {whole.view_type}")
        return whole

    def product(self, a: Number, b: Number) -> Number:
        """Write the product of two extents, where it is not known."""
        if isinstance(a.known, int) and isinstance(b.known, int):
            return self.constant(a.known * b.known)
        if 1 in (a.known, b.known):
            return b if a.known == 1 else a
        return self.number("arith.muli", [a, b], dt.INDEX, "index")

    def movable(self, tile: Tile) -> Tile:
        """Return a tile as loads, stores and moves take it: floats that they do not know are seen as integers."""
        if tile.dtype not in _MOVED_AS:
            return tile
        seen = replace(tile, name=self.name("bits"), dtype=_MOVED_AS[tile.dtype])
        self.line(f"{seen.name} = pto.bitcast {tile.name} : {tile.type} -> {seen.type}")
        return seen

    def op(self, name: str, ins: Sequence[Tile | Number], out: Tile, attributes: str = "") -> Tile:
        """Write a tile op; return what it writes."""
        read = next((each.dtype for each in ins if isinstance(each, Tile)), out.dtype)
        if self.is_choosy and not takes(name, element(read), element(out.dtype)):
            raise NotTakenError(f"no machine has `{name}` of {read}")
        is_move = name == "tmov"
        given = [self.movable(each) if is_move and isinstance(each, Tile) else each for each in ins]
        target = self.movable(out) if is_move else out
        operands = ", ".join(each.name for each in given)
        types = ", ".join(each.type if isinstance(each, Tile) else element(each.dtype) for each in given)
        end = f" {attributes}" if attributes else ""
        self.line(f"pto.{name} ins({operands} : {types}) outs({target.name} : {target.type}){end}")
        return out

    def window(self, tensor: Tensor, offsets: Sequence[Number], sizes: Sequence[Number]) -> tuple[str, str]:
        """Write a window of a tensor; return its name and type."""
        shown = "x".join("?" if size.known is None else str(size.known) for size in sizes)
        kind = f"!pto.partition_tensor_view<{shown}x{element(tensor.dtype)}>"
        name = self.name("window")
        places = ", ".join(each.name for each in offsets)
        extents = ", ".join(each.name for each in sizes)
        head = f"{name} = pto.partition_view {tensor.view}, offsets = [{places}], sizes = [{extents}]"
        self.line(f"{head} : {tensor.view_type} -> {kind}")
        return name, kind
