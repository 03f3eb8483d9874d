"""Lines: one function of PTO text while it is being written: its lines, regions, names and constants."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager

from tilewright import dtypes as dt
from tilewright.dtypes import DataType
from tilewright.frontend.names import free_name
from tilewright.programs.pto_text.pruning import names_in, wanted
from tilewright.programs.pto_text.values import Number, element
from tilewright.source import UNKNOWN, Span

_STEP = "  "


class Lines:
    """The lines of a function, each with the place in the program that it was written for."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.span: Span = UNKNOWN
        """The place in the program that is being written."""
        self._origins: list[Span] = []
        self.constants: dict[tuple[DataType, str], Number] = {}
        self._heads: list[str] = []
        self._taken: set[str] = set()
        self._tried: dict[str, int] = {}
        """The first number that may be free behind each name: those before it are taken, and stay so."""
        self._depth = 2
        self._start = 0
        """How many lines come before those that stand at the start."""
        self.loops = 0
        """How many loops are around what is being written."""
        self.ending: list[str] = []
        """What is written at the end of the region that is being written."""

    def function(self, head: str) -> list[str]:
        """Return the lines of the function around what was written."""
        return [f"{_STEP}{head} {{", *self._heads, *self.lines, f"{_STEP * 2}return", f"{_STEP}}}"]

    def name(self, hint: str) -> str:
        """Return a name that no value has yet."""
        plain = hint.strip("_") or "v"
        found = free_name(plain, self._taken, self._tried.get(plain, 1))
        self._tried[plain] = int(found.removeprefix(plain).removeprefix("_") or 0) + 1
        self._taken.add(found)
        return f"%{found}"

    def line(self, text: str) -> None:
        """Write a line."""
        self.lines.append(f"{_STEP * self._depth}{text}")
        self._origins.append(self.span)

    def origin(self, number: int) -> Span:
        """Return the place in the program that a line of the function was written for, the first being 1."""
        return self.place(number - 2 - len(self._heads))

    def place(self, index: int) -> Span:
        """Return the place in the program that one of the lines was written for."""
        return self._origins[index] if 0 <= index < len(self._origins) else UNKNOWN

    def keep(self, kept: list[int]) -> set[str]:
        """Drop all but some lines, and of those what nothing uses; return the names that something uses."""
        kept, used = wanted(self.lines, kept)
        self.lines, self._origins = [self.lines[n] for n in kept], [self._origins[n] for n in kept]
        self._heads = [line for line in self._heads if names_in(line)[0] in used]
        return used

    def drop(self, count: int) -> None:
        """Drop all lines but the first ones."""
        del self.lines[count:], self._origins[count:]

    @contextmanager
    def block(self, head: str) -> Generator[None]:
        """Let lines stand in a region, after what opens it."""
        self.line(f"{head} {{")
        is_loop = "scf.for " in head or "scf.while " in head
        self._depth, self.loops = self._depth + 1, self.loops + is_loop
        outer, self.ending = self.ending, []
        try:
            yield
            self.end()
        finally:  # where lines are dropped, others stand in their place
            self.ending = outer
            self._depth, self.loops = self._depth - 1, self.loops - is_loop
        self.line("}")

    def begin(self) -> None:
        """Let what stands at the start come behind all lines so far."""
        self._start = len(self.lines)

    @contextmanager
    def at_start(self) -> Generator[None]:
        """Let lines stand at the start of the function, before all regions."""
        behind, places = self.lines[self._start :], self._origins[self._start :]
        self.drop(self._start)
        depth, self._depth = self._depth, 2
        yield
        self._depth, self._start = depth, len(self.lines)
        self.lines += behind
        self._origins += places

    def end(self) -> None:
        """Write what a region ends with."""
        for line in self.ending:
            self.line(line)
        self.ending.clear()

    @contextmanager
    def counted(self, count: Number, hint: str) -> Generator[Number]:
        """Let lines stand in a loop that counts up to a number, and nowhere where that is zero."""
        turn, before = Number(self.name(hint), dt.INDEX, counts=True), len(self.lines)
        ends = f"{self.constant(0).name} to {count.name} step {self.constant(1).name}"
        with self.block(f"scf.for {turn.name} = {ends}"):
            yield turn
        if count.known == 0:
            self.drop(before)

    @contextmanager
    def all_counted(self, counts: Sequence[Number], hint: str) -> Generator[list[Number]]:
        """Let lines stand in loops inside each other, each of which counts up to a number."""
        with ExitStack() as loops:
            yield [loops.enter_context(self.counted(count, hint)) for count in counts]

    @contextmanager
    def branch(self, head: str) -> Generator[Callable[..., None]]:
        """Let lines stand in the first region of a branch, and in its second once what this gives is called."""

        def otherwise(word: str = "else") -> None:
            self.end()
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
