"""The writer: lines of PTO text, with a name for each value and each constant once."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from tilewright import dtypes as dt
from tilewright.core.enums import MemorySpace
from tilewright.dtypes import DataType
from tilewright.frontend.names import free_name
from tilewright.programs.pto_text.pruning import names_in, wanted
from tilewright.programs.pto_text.values import Number, Tensor, Tile, element, kept, room_of
from tilewright.source import UNKNOWN, Span

HEAD = 'module attributes {pto.target_arch = "a5"} {'
"""The machine whose paths between memories are used: from the vector memory to the cube's, among others."""
_STEP = "  "


class Writer:
    """One function of PTO text while it is being written."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.span: Span = UNKNOWN
        """The place in the program that is being written."""
        self._origins: list[Span] = []
        self.constants: dict[tuple[DataType, str], Number] = {}
        self._heads: list[str] = []
        self._taken: set[str] = set()
        self._depth = 2
        self.rooms: list[str] = []
        """The parameters for room that the caller brings, each with its type."""
        self.share: Number | None = None
        """The block, where blocks share the turns and each has its own part of that room."""
        self.zeros: set[str] = set()
        """The tiles that hold zeros."""
        self.ascending: set[str] = set()
        """The tiles whose rows count up."""
        self.sums: dict[str, tuple[Number, Number] | None] = {}
        """The accumulators that are added to in place; what a loop counts, and from where, for those it begins."""
        self.is_wanted = False
        """Whether the program uses what the op that is being written gives."""
        self.flags: dict[str, bool] = {}
        """The events that are set between pipes, and whether anything waits for each."""
        self.turn, self.turns = self.constant(0), self.constant(1)
        """Which of how many runs of a kernel is being written."""

    def function(self, head: str) -> list[str]:
        """Return the lines of the function around what was written."""
        return [f"{_STEP}{head} {{", *self._heads, *self.lines, f"{_STEP * 2}return", f"{_STEP}}}"]

    def prune(self) -> set[str]:
        """Drop what nothing uses; return the names that something uses."""
        lone = [f"pto.set_flag{event}" for event, is_awaited in self.flags.items() if not is_awaited]
        kept = [n for n, line in enumerate(self.lines) if line.strip() not in lone]
        kept, used = wanted(self.lines, kept)
        self.lines, self._origins = [self.lines[n] for n in kept], [self._origins[n] for n in kept]
        self._heads = [line for line in self._heads if names_in(line)[0] in used]
        return used

    def name(self, hint: str) -> str:
        """Return a name that no value has yet."""
        found = free_name(hint.strip("_") or "v", self._taken)
        self._taken.add(found)
        return f"%{found}"

    def line(self, text: str) -> None:
        """Write a line."""
        self.lines.append(f"{_STEP * self._depth}{text}")
        self._origins.append(self.span)

    def flag(self, word: str, event: str) -> None:
        """Write that an event is set or waited for."""
        self.flags[event] = self.flags.get(event, False) or word == "wait"
        self.line(f"pto.{word}_flag{event}")

    def origin(self, number: int) -> Span:
        """Return the place in the program that a line of the function was written for, the first being 1."""
        place = number - 2 - len(self._heads)
        return self._origins[place] if 0 <= place < len(self._origins) else UNKNOWN

    @contextmanager
    def block(self, head: str) -> Generator[None]:
        """Let lines stand in a region, after what opens it."""
        self.line(f"{head} {{")
        self._depth += 1
        yield
        self._depth -= 1
        self.line("}")

    @contextmanager
    def counted(self, count: Number, hint: str) -> Generator[Number]:
        """Let lines stand in a loop that counts up to a number, and nowhere where that is zero."""
        turn, before = Number(self.name(hint), dt.INDEX, counts=True), len(self.lines)
        ends = f"{self.constant(0).name} to {count.name} step {self.constant(1).name}"
        with self.block(f"scf.for {turn.name} = {ends}"):
            yield turn
        if count.known == 0:
            del self.lines[before:], self._origins[before:]

    @contextmanager
    def branch(self, head: str) -> Generator[Callable[..., None]]:
        """Let lines stand in the first region of a branch, and in its second once what this gives is called."""

        def otherwise(word: str = "else") -> None:
            self._depth -= 1
            self.line(f"}} {word} {{")
            self._depth += 1

        with self.block(head):
            yield otherwise

    def constant(self, value: float, dtype: DataType = dt.INDEX) -> Number:
        """Return a constant, written once at the start."""
        shown = _shown(value, dtype)
        if (dtype, shown) not in self.constants:
            hint = f"c{shown}" if isinstance(value, int) and value >= 0 else "cst"
            name = self.name(hint if dtype is dt.INDEX else f"{hint}_{element(dtype)}")
            typed = "" if dtype is dt.BOOL else f" : {element(dtype)}"
            self._heads.append(f"{_STEP * 2}{name} = arith.constant {shown}{typed}")
            self.constants[dtype, shown] = Number(name, dtype, value)
        return self.constants[dtype, shown]

    def number(self, op: str, operands: Sequence[Number], dtype: DataType, typing: str, hint: str = "n") -> Number:
        """Write an op that gives a number."""
        name = self.name(hint)
        self.line(f"{name} = {op} {', '.join(each.name for each in operands)} : {typing}")
        return Number(name, dtype)

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
        self.rooms.append(f"{name}: {kind}")
        return name

    def view(
        self, hint: str, dtype: DataType, pointer: str, shape: Sequence[Number], strides: Sequence[Number] = ()
    ) -> Tensor:
        """Write the view of a tensor, whose elements lie one after the other where no strides are given."""
        is_whole, dtype = not strides, kept(dtype)
        strides = list(strides or [self.constant(1)])
        while len(strides) < len(shape):
            strides.insert(0, self.product(shape[-len(strides)], strides[0]))
        starts = (self.constant(0),) * len(shape)
        whole = Tensor(self.name(f"{hint}_view"), dtype, tuple(shape), starts, pointer, tuple(strides), is_whole)
        extents, steps = (", ".join(each.name for each in numbers) for numbers in (shape, strides))
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
        """Return a tile as loads, stores and moves take it: floats of one byte are seen as bytes."""
        if tile.dtype not in (dt.FP8E4M3FN, dt.FP8E5M2):
            return tile
        seen = replace(tile, name=self.name("bytes"), dtype=dt.UINT8)
        self.line(f"{seen.name} = pto.bitcast {tile.name} : {tile.type} -> {seen.type}")
        return seen

    def op(self, name: str, ins: Sequence[Tile | Number], out: Tile, attributes: str = "") -> Tile:
        """Write a tile op; return what it writes."""
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


def _shown(value: float, dtype: DataType) -> str:
    if dtype is dt.BOOL:
        return "true" if value else "false"
    if not dtype.is_float():
        return str(int(value))
    if value != value or value in (float("inf"), float("-inf")):
        bits = {"f32": ("0x7FC00000", "0x7F800000", "0xFF800000"), "f16": ("0x7E00", "0x7C00", "0xFC00")}
        found = bits.get(element(dtype), ("0x7FC0", "0x7F80", "0xFF80"))
        return found[0] if value != value else found[1 if value > 0 else 2]
    return repr(float(value))
