"""The writer: lines of PTO text, with a name for each value and each constant once."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

from tilewright import dtypes as dt
from tilewright.core.enums import MemorySpace
from tilewright.dtypes import DataType
from tilewright.frontend.names import free_name
from tilewright.programs.pto_text.values import Number, Tensor, Tile, element, room_of
from tilewright.source import UNKNOWN, Span

_HEAD = 'module attributes {pto.target_arch = "a5"} {'
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

    def text(self, head: str) -> str:
        """Return the module around what was written."""
        body = [*self._heads, *self.lines, f"{_STEP * 2}return"]
        return "\n".join([_HEAD, f"{_STEP}{head} {{", *body, f"{_STEP}}}", "}", ""])

    def name(self, hint: str) -> str:
        """Return a name that no value has yet."""
        found = free_name(hint.strip("_") or "v", self._taken)
        self._taken.add(found)
        return f"%{found}"

    def line(self, text: str) -> None:
        """Write a line."""
        self.lines.append(f"{_STEP * self._depth}{text}")
        self._origins.append(self.span)

    def origin(self, number: int) -> Span:
        """Return the place in the program that a line of the module was written for, the first being 1."""
        place = number - 3 - len(self._heads)
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
    def branch(self, head: str) -> Generator[Callable[[], None]]:
        """Let lines stand in the first region of a branch, and in its second once what this gives is called."""

        def otherwise() -> None:
            self._depth -= 1
            self.line("} else {")
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
        tile = Tile(self.name(hint), dtype, shape, valid, memory, is_mask, room or room_of(dtype, shape, memory))
        words = ("valid_row", "valid_col")
        given = [f"{word} = {each.name}" for word, each in zip(words, valid, strict=True) if each.known is None]
        self.line(f"{tile.name} = {' '.join(['pto.alloc_tile', *([] if is_mask else given)])} : {tile.type}")
        return tile

    def op(self, name: str, ins: Sequence[Tile | Number], out: Tile, attributes: str = "") -> Tile:
        """Write a tile op; return what it writes."""
        operands = ", ".join(each.name for each in ins)
        types = ", ".join(each.type if isinstance(each, Tile) else element(each.dtype) for each in ins)
        end = f" {attributes}" if attributes else ""
        self.line(f"pto.{name} ins({operands} : {types}) outs({out.name} : {out.type}){end}")
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
